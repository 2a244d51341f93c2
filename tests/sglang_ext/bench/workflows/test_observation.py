"""The arithmetic of a cell: from step lines and streams to runs and steps."""

from __future__ import annotations

import asyncio
from types import SimpleNamespace

import pytest

from sglang_ext.bench.clients import PlainClient
from sglang_ext.bench.step_log import End, Launch
from sglang_ext.bench.workflows.observation import (
    complete_prompts,
    distinct,
    lateness,
    recorded,
    repetition,
    steps_of,
    token_times,
)
from sglang_ext.driver.errors import EngineError
from sglang_ext.tasks.hint import request_id
from tests.sglang_ext.bench.fake_source import FakeSource
from tests.sglang_ext.bench.works import work

LAUNCHES = [
    Launch(launch=10.0, decodes=0, chunks=((0, 100),), step=1, held=100, plan=0.001),
    Launch(launch=10.5, decodes=1, chunks=((64, 6),), step=2, kv=100 + 64, held=170),
    Launch(launch=10.8, decodes=2, chunks=(), step=3, kv=171, waiting=0, held=180),
    # Behind a pause.
    Launch(launch=20.0, decodes=0, chunks=((0, 4),), step=4, waiting=1),
    # Its results are not there yet.
    Launch(launch=20.25, decodes=1, chunks=(), step=5),
]
ENDS = [
    End(step=1, end=10.6, tokens={"a": 1}),
    End(step=2, end=10.9, tokens={"a": 1, "b": 1}),
    End(step=3, end=11.0, tokens={"a": 2}),
    End(step=4, end=20.5, tokens={}),
]


def test_a_token_has_the_time_at_which_its_step_ended():
    assert token_times(ENDS) == {"a": [10.6, 10.9, 11.0, 11.0], "b": [10.9]}


def test_a_step_lasts_to_the_next_launch_or_to_its_own_end_before_a_pause():
    steps = steps_of(LAUNCHES, ENDS, 0)
    assert [(step.start_s, step.end_s) for step in steps] == [(10.0, 10.5), (10.5, 10.8), (10.8, 11.0), (20.0, 20.25)]
    mixed = steps[1]
    assert (mixed.rows, mixed.tokens, mixed.kv, mixed.attention) == (1, 6, 164, 6 * (64 + 3))
    assert [step.waiting for step in steps] == [0, 0, 0, 1]
    assert [step.pieces for step in steps] == [1, 1, 0, 1]


def test_where_a_step_is_formed_while_another_runs_it_runs_from_the_next_launch_on():
    steps = steps_of(LAUNCHES, [End(1, 10.7, {}), End(2, 10.85, {}), End(3, 11.2, {}), End(4, 20.5, {})], 1)
    # The third is the last before a pause, the fourth has one behind it that has not ended.
    assert [(step.start_s, step.end_s) for step in steps] == [(10.5, 10.7), (10.8, 10.85), (10.85, 11.2), (20.25, 20.5)]


@pytest.fixture
def done():
    """A run of two tasks, as its client saw it."""
    own = work({"a": [3], "b": [2, "a"]}, {"a": 2, "b": 1})
    streams = asyncio.run(PlainClient().run(FakeSource(), own))
    return SimpleNamespace(index=7, workload="test"), 1.0, streams


def rid(done, index):
    return request_id(done[2].run, index)


def test_a_run_has_the_steps_times(done):
    ends = [
        End(step=1, end=1.5, tokens={rid(done, 0): 1}),
        End(step=2, end=2.0, tokens={rid(done, 0): 1}),
        End(step=3, end=4.0, tokens={rid(done, 1): 1}),
    ]
    run = recorded(done, token_times(ends))
    assert (run.index, run.submitted_s) == (7, 1.0)
    assert [(task.name, task.upstream, task.token_s) for task in run.tasks] == [
        ("a", (), (1.5, 2.0)),
        ("b", ("a",), (4.0,)),
    ]
    assert run.switch_gaps() == [2.0]
    found = repetition([done], complete_prompts([done]), LAUNCHES[:2], ends, 0)
    assert (found.computed, found.needed, found.kv_high) == (106, 3 + 4, 170)
    stamps = [stamp for stream in done[2].by_task.values() for stamp in stream.stamps]
    assert lateness([done], token_times(ends)) == [
        came - left for left, came in zip((1.5, 2.0, 4.0), stamps, strict=True)
    ]


def test_tokens_that_no_step_gave_are_an_error(done):
    ends = [End(step=1, end=1.5, tokens={rid(done, 0): 2})]
    with pytest.raises(EngineError, match=r"gave 0 tokens to task 'b', its client got 1"):
        recorded(done, token_times(ends))


def test_distinct_counts_common_beginnings_once():
    assert distinct([[1, 2, 3], [1, 2, 4, 5], [9], [1, 2, 3]]) == 3 + 2 + 1
    assert distinct([]) == 0
    # What two prompts have in common in the middle is computed twice.
    assert distinct([[1, 7, 7], [2, 7, 7]]) == 6
