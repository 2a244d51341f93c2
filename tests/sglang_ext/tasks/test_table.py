"""A task's life and the way from outputs to prompts, as a state machine over random runs."""

from __future__ import annotations

import itertools
from collections.abc import Sequence

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from sglang_ext.tasks.hint import Known, OutputHole, TaskHint, new_run_id, request_id
from sglang_ext.tasks.output_ids import Matched
from sglang_ext.tasks.outputs import OutputStream
from sglang_ext.tasks.state import ENDS, WAYS, IllegalTransition, TaskState, step
from sglang_ext.tasks.table import RunTable, TaskRefused
from sglang_ext.tasks.task import Task


class Plain:
    """A stream without stop strings: everything is settled at once."""

    def __init__(self) -> None:
        self.sent = 0

    def push(self, ids: Sequence[int]) -> list[int]:
        self.sent += len(ids)
        return list(ids)

    def finish(self, final_ids: Sequence[int], matched: Matched) -> list[int]:
        return list(final_ids)[self.sent :]


def plain(left: bool, right: bool) -> OutputStream:
    return Plain()


def chain(size: int, weight: int = 4) -> list[TaskHint]:
    """A run in which every task reads the one before it, between two known ids."""
    run = new_run_id()
    hints = []
    for i in range(size):
        hole = [OutputHole(task=f"t{i - 1}", weight=weight)] if i else []
        segments = [Known(ids=[100 + i]), *hole, Known(ids=[200 + i])]
        hints.append(TaskHint(run=run, task=f"t{i}", index=i, tasks=size, segments=segments))
    return hints


def test_ways_between_states() -> None:
    for state in TaskState:
        for target in TaskState:
            if target in WAYS[state]:
                assert step(state, target) is target
            else:
                with pytest.raises(IllegalTransition):
                    step(state, target)
    assert all(not WAYS[end] for end in ENDS)


@pytest.mark.parametrize("first_arrives", ["upstream", "reader"])
def test_chunks_of_the_weight_then_the_rest(first_arrives: str) -> None:
    table = RunTable()
    a_hint, b_hint = chain(2)
    if first_arrives == "upstream":
        a, b = table.add(a_hint, plain), table.add(b_hint, plain)
    else:
        b, a = table.add(b_hint, plain), table.add(a_hint, plain)
    table.grow(a)
    assert a.complete
    assert list(a.prompt) == [100, 200]
    a.move(TaskState.READY)
    a.move(TaskState.RUNNING)
    assert table.grow(b) == 1
    table.output(a).push([1, 2, 3])
    assert table.grow(b) == 0, "less than a chunk waits"
    table.output(a).push([4, 5])
    assert table.grow(b) == 4
    assert list(b.prompt) == [101, 1, 2, 3, 4]
    assert not table.upstreams_ended(b)
    table.finish(a, [1, 2, 3, 4, 5, 6], None)
    assert table.upstreams_ended(b)
    assert table.grow(b) == 3
    assert list(b.prompt) == [101, 1, 2, 3, 4, 5, 6, 201]
    assert b.complete
    assert b.streamed_within(0, 8) == 6
    assert b.streamed_within(3, 6) == 3


def test_an_empty_output_closes_its_hole() -> None:
    table = RunTable()
    a, b = (table.add(hint, plain) for hint in chain(2))
    table.grow(a)
    a.move(TaskState.READY)
    a.move(TaskState.RUNNING)
    table.finish(a, [], None)
    table.grow(b)
    assert list(b.prompt) == [101, 201]


def test_what_a_run_may_not_do() -> None:
    table = RunTable(max_tasks=5)
    first, second = chain(2)
    table.add(first, plain)
    with pytest.raises(TaskRefused, match="of that name already"):
        table.add(first, plain)
    with pytest.raises(TaskRefused, match="with number 0 already"):
        table.add(second.model_copy(update={"index": 0}), plain)
    with pytest.raises(TaskRefused, match="number 7 is not below the 2 tasks"):
        table.add(second.model_copy(update={"index": 7}), plain)
    with pytest.raises(TaskRefused, match="others said 2"):
        table.add(second.model_copy(update={"tasks": 3}), plain)
    with pytest.raises(TaskRefused, match="may have 5"):
        table.add(chain(6)[0], plain)
    table.end_run(first.run, "the client went away")
    with pytest.raises(TaskRefused, match="the client went away"):
        table.add(second, plain)


def test_missing_upstream_is_named_until_it_arrives() -> None:
    table = RunTable()
    a, b = chain(2)
    reader = table.add(b, plain)
    table.grow(reader)
    assert table.missing_upstream(reader) == "t0"
    table.add(a, plain)
    assert table.missing_upstream(reader) is None


def reading(tasks: dict[str, list[str]]) -> dict[str, TaskHint]:
    """A run of tasks that each read others."""
    run = new_run_id()
    return {
        name: TaskHint(run=run, task=name, index=i, tasks=len(tasks), segments=[OutputHole(task=u) for u in upstreams])
        for i, (name, upstreams) in enumerate(tasks.items())
    }


@pytest.mark.parametrize("order", list(itertools.permutations("xyz")))
def test_tasks_that_wait_for_each_other_are_refused(order: tuple[str, ...]) -> None:
    hints = reading({"x": ["w", "z"], "y": ["x"], "z": ["y"], "w": []})
    table = RunTable()
    table.add(hints["w"], plain)
    table.add(hints[order[0]], plain)
    table.add(hints[order[1]], plain)
    last = order[2]
    with pytest.raises(TaskRefused, match=f"wait for each other: '{last}' reads .* reads .* reads '{last}'"):
        table.add(hints[last], plain)


@pytest.mark.parametrize("order", list(itertools.permutations("abcd")))
def test_tasks_that_share_what_they_read_are_none(order: tuple[str, ...]) -> None:
    hints = reading({"a": [], "b": ["a"], "c": ["a", "b"], "d": ["c", "b", "c"]})
    table = RunTable()
    for name in order:
        table.add(hints[name], plain)
    assert len(table) == 4


def test_a_run_is_known_until_it_ends() -> None:
    table = RunTable()
    first, _ = chain(2)
    assert not table.knows(first.run)
    table.add(first, plain)
    assert table.knows(first.run)
    table.end_run(first.run, "cancelled")
    assert not table.knows(first.run)


def test_a_task_is_awaited_until_it_or_the_end_of_its_run_comes() -> None:
    table = RunTable()
    hints = chain(2)
    run = hints[0].run
    first, second = (request_id(run, hint.index) for hint in hints)
    assert table.awaits(second) == run, "no task has come"
    table.add(hints[0], plain)
    assert (table.awaits(first), table.awaits(second)) == (None, run)
    table.end_run(run, "cancelled")
    assert (table.awaits(first), table.awaits(second)) == (None, None)
    assert table.awaits("mine") is None


def test_a_run_that_ends_before_its_first_task_takes_none() -> None:
    table = RunTable()
    first, second = chain(2)
    assert table.end_run(first.run, "cancelled") == []
    for hint in (second, first):
        with pytest.raises(TaskRefused, match="has ended: cancelled"):
            table.add(hint, plain)
    assert len(table) == 0


class TableMachine(RuleBasedStateMachine):
    """Runs of chains arrive in any order, decode, give KV up, finish or are ended at any moment."""

    def __init__(self) -> None:
        super().__init__()
        self.table = RunTable()
        self.waiting: list[TaskHint] = []
        self.tasks: dict[str, Task] = {}
        self.ended: set[str] = set()
        self.outputs: dict[str, list[int]] = {}

    @rule(size=st.integers(1, 4), weight=st.integers(1, 5), order=st.randoms(use_true_random=False))
    def new_run(self, size: int, weight: int, order: object) -> None:
        hints = chain(size, weight)
        order.shuffle(hints)  # type: ignore[attr-defined]
        self.waiting.extend(hints)

    @precondition(lambda self: self.waiting)
    @rule()
    def arrive(self) -> None:
        hint = self.waiting.pop(0)
        if hint.run in self.ended:
            with pytest.raises(TaskRefused):
                self.table.add(hint, plain)
            return
        task = self.tasks[request_id(hint.run, hint.index)] = self.table.add(hint, plain)
        self.table.grow(task)

    @precondition(lambda self: self.living())
    @rule(data=st.data())
    def advance(self, data: st.DataObject) -> None:
        task = data.draw(st.sampled_from(self.living()))
        if task.state is TaskState.RUNNING:
            output = self.outputs.setdefault(task.rid, [])
            if len(output) >= 6:
                stirred = self.table.finish(task, output, None)
            else:
                output.append(len(output))
                stirred = self.table.push(task, output[-1:])
            for reader in stirred:
                self.table.grow(reader)
            assert not any(self.table.grow(other) for other in self.living()), "one could have grown and was not named"
            return
        self.table.grow(task)
        if task.complete:
            if task.state is not TaskState.READY:
                task.move(TaskState.READY)
            task.move(TaskState.RUNNING)
        elif task.state is TaskState.HELD:
            task.move(TaskState.PREFILLING)
        else:
            task.move(TaskState.HELD)

    @precondition(lambda self: self.living())
    @rule(data=st.data())
    def end(self, data: st.DataObject) -> None:
        run = data.draw(st.sampled_from(self.living())).hint.run
        others = [t for t in self.living() if t.hint.run != run]
        ended = self.table.end_run(run, "cancelled")
        self.ended.add(run)
        assert ended
        assert {t.hint.run for t in ended} == {run}
        assert self.living() == others, "another run was touched"
        assert self.table.end_run(run, "again") == []

    def living(self) -> list[Task]:
        return [task for task in self.tasks.values() if task.alive]

    @invariant()
    def the_table_holds_what_lives(self) -> None:
        assert len(self.table) == len(self.living())
        assert {t.rid for t in self.table} == {t.rid for t in self.living()}

    @invariant()
    def prompts_are_prefixes_of_the_spliced_prompt(self) -> None:
        for task in self.living():
            index = task.hint.index
            upstream = request_id(task.hint.run, index - 1) if index else ""
            spliced = [100 + index, *self.outputs.get(upstream, []), 200 + index]
            if task.complete:
                assert list(task.prompt) == spliced
            else:
                assert list(task.prompt) == spliced[: len(task.prompt)]
                assert task.certain_length <= len(spliced)


TestTableMachine = TableMachine.TestCase
TestTableMachine.settings = settings(max_examples=60, stateful_step_count=60, deadline=None)
