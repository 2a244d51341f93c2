"""The workloads' jobs: what they hold, and that a driver would send just that."""

from __future__ import annotations

import json

import pytest

from grape_dsl.encoding import ChatEncoder
from sglang_ext.bench.workload.arrivals import Poisson
from sglang_ext.bench.workload.counting import tokenizer_count
from sglang_ext.bench.workload.items import Items
from sglang_ext.bench.workload.job import Hole, Text
from sglang_ext.bench.workload.jobs import JobSource
from sglang_ext.bench.workload.summary import PART_TOKENS, split
from sglang_ext.bench.workload.workloads import WORKLOADS, find
from sglang_ext.driver.errors import InputError
from sglang_ext.driver.prompts import plan_tasks
from sglang_ext.tasks.hint import Known, OutputHole


def jobs(name: str, number: int = 12, seed: int = 1, **settings: object):
    return JobSource(find(name), **settings).jobs(number, Poisson(1.0), seed)


def test_equal_seeds_give_equal_jobs_and_others_do_not():
    first, again, other = jobs("search"), jobs("search"), jobs("search", seed=2)
    assert [job.tasks for job in first] == [job.tasks for job in again]
    assert [job.arrival_s for job in first] == [job.arrival_s for job in again]
    assert [job.tasks for job in first] != [job.tasks for job in other]


@pytest.mark.parametrize(("name", "tasks"), [("search", 4), ("code", 5), ("chat", 1)])
def test_number_of_tasks(name, tasks):
    assert {len(job.tasks) for job in jobs(name)} == {tasks}


@pytest.mark.parametrize("name", list(WORKLOADS))
def test_arrivals_never_decrease_and_outputs_are_forced(name):
    found = jobs(name)
    assert [job.arrival_s for job in found] == sorted(job.arrival_s for job in found)
    for job in found:
        assert job.forced
        assert job.outputs == {task.name: task.output for task in job.tasks}
        assert all(1 <= task.output <= task.limit for task in job.tasks)
        assert set(job.inputs) >= {v.name for v in job.program.workflow.variables.values() if v.kind == "InputVar"}


def test_summary_is_a_chain_of_at_most_four_parts():
    for job in jobs("summary"):
        assert 1 <= len(job.tasks) <= 4
        for task, before in zip(job.tasks[1:], job.tasks, strict=False):
            assert task.upstream == (before.name,)


def test_parts_are_cut_between_words_and_lose_none():
    text = " ".join(f"word{n}" for n in range(1000))
    parts = split(text, lambda piece: len(piece.split()))
    assert " ".join(parts) == text
    assert [len(part.split()) for part in parts] == [PART_TOKENS, PART_TOKENS, 200]
    assert split("", len) == [""]


def test_runs_share_the_programs_text_and_no_more():
    first, second = jobs("search", 2)
    for own, other in zip(first.tasks, second.tasks, strict=True):
        shared = [a for a, b in zip(own.segments, other.segments, strict=True) if isinstance(a, Text) and a == b]
        fixed = [s for s in own.segments if isinstance(s, Text) and s.key.startswith(("<|", "\n"))]
        assert shared == fixed


def test_share_of_ordinary_requests():
    kinds = [job.workload for job in jobs("code", 200, chat=0.3)]
    assert 0.2 < kinds.count("chat") / len(kinds) < 0.4
    assert set(kinds) == {"chat", "code"}


def test_length_of_a_prompt_counts_the_outputs_in_it():
    job = jobs("code", 1)[0]
    planner = job.by_name["project_planner"]
    texts = sum(segment.tokens for segment in planner.segments if isinstance(segment, Text))
    assert job.prompt_tokens(planner) == texts + job.outputs["product_planner"] + job.outputs["framework_designer"]
    assert job.readers["product_planner"] == ("framework_designer", "project_planner")


@pytest.mark.parametrize("name", list(WORKLOADS))
def test_a_driver_would_send_the_same_prompts(name, embedded_model):
    """Holes in the same order, and known text of the same length but for tokens that join at its ends."""
    encoder = ChatEncoder.from_folder(embedded_model)
    for job in jobs(name, 3, count=tokenizer_count(embedded_model)):
        plans = plan_tasks(job.program, job.inputs, encoder)
        for task in job.tasks:
            sent = plans[task.name].segments
            assert [s.task for s in sent if isinstance(s, OutputHole)] == [
                s.task for s in task.segments if isinstance(s, Hole)
            ]
            known = sum(len(s.ids) for s in sent if isinstance(s, Known))
            # SmolLM2's template gives a prompt without a system turn one of its own.
            assert abs(known - task.known) <= (8 if name != "chat" else 32)


def test_inputs_from_a_folder(tmp_path):
    (tmp_path / "code_some.jsonl").write_text(
        json.dumps({"text": "Add two numbers.", "test_list": ["assert add(1, 2) == 3"]}) + "\n"
    )
    job = jobs("code", 1, items=Items(tmp_path))[0]
    assert "Add two numbers." in job.inputs["request"]
    assert "assert add(1, 2) == 3" in job.inputs["request"]


@pytest.mark.parametrize(
    ("content", "said"),
    [("nonsense\n", "line 1"), ("[1]\n", "an object is needed"), ('{"a": 1}\n', "'text'"), ("", "no inputs")],
)
def test_inputs_that_cannot_be_used(tmp_path, content, said):
    (tmp_path / "code_some.jsonl").write_text(content)
    with pytest.raises(InputError, match=said):
        jobs("code", 1, items=Items(tmp_path))


def test_a_folder_without_the_workloads_files(tmp_path):
    with pytest.raises(InputError, match=r"search_\*\.jsonl"):
        jobs("search", 1, items=Items(tmp_path))


def test_unknown_workload():
    with pytest.raises(InputError, match="did you mean search"):
        find("serach")
