"""How far a waiting task is from its turn."""

from __future__ import annotations

from sglang_ext.tasks.distances import Distances
from sglang_ext.tasks.hint import Known, OutputHole, TaskHint, new_run_id
from sglang_ext.tasks.state import TaskState
from sglang_ext.tasks.table import RunTable
from sglang_ext.tasks.task import Task

LENGTHS = {"a": 10, "b": 20, "c": 5}


class Plain:
    """An output whose ids pass as they are."""

    def push(self, ids):
        return list(ids)

    def finish(self, final_ids, matched):
        return []


def diamond() -> tuple[RunTable, dict[str, Task], Distances]:
    """a is read by b and c, both by d."""
    table, run = RunTable(), new_run_id()
    reads = {"a": [], "b": ["a"], "c": ["a"], "d": ["b", "c"]}
    tasks = {}
    for index, (name, upstreams) in enumerate(reads.items()):
        holes = [OutputHole(task=each, weight=1) for each in upstreams]
        segments = [Known(ids=[1, 2, 3]), *holes, Known(ids=[4, 5])]
        hint = TaskHint(run=run, task=name, index=index, tasks=4, segments=segments)
        tasks[name] = table.add(hint, lambda left, right: Plain())
        table.grow(tasks[name])
    rest = Distances(table, lambda task: LENGTHS[task.hint.task] - table.output(task).seen)
    return table, tasks, rest


def end(table: RunTable, task: Task, ids: list[int]) -> None:
    task.move(TaskState.READY)
    task.move(TaskState.RUNNING)
    table.finish(task, ids, None)


def test_the_longest_way_counts():
    _, tasks, distances = diamond()
    assert [distances.hops(tasks[name]) for name in "abcd"] == [0, 1, 1, 2]
    assert [distances.rest(tasks[name]) for name in "abcd"] == [0, 10, 10, 30]


def test_what_has_come_is_no_more_to_come():
    table, tasks, distances = diamond()
    assert distances.to_come(tasks["b"], 3) == 10 + 2
    table.push(tasks["a"], [7] * 4)
    table.grow(tasks["b"])
    distances.begin_step()
    assert distances.rest(tasks["b"]) == 6
    assert distances.to_come(tasks["b"], 3) == 4 + 6 + 2
    assert distances.to_come(tasks["b"], 7) == 6 + 2


def test_an_end_brings_the_readers_nearer():
    table, tasks, distances = diamond()
    end(table, tasks["a"], [7] * 10)
    for name in "bcd":
        table.grow(tasks[name])
    assert [distances.hops(tasks[name]) for name in "bcd"] == [0, 0, 1]
    assert distances.rest(tasks["d"]) == 20
    assert distances.to_come(tasks["d"], 3) == 20 + 5 + 2


def test_an_upstream_that_has_not_come_is_one_decode():
    table = RunTable()
    segments = [Known(ids=[1]), OutputHole(task="late")]
    task = table.add(
        TaskHint(run=new_run_id(), task="b", index=1, tasks=2, segments=segments), lambda left, right: Plain()
    )
    table.grow(task)
    distances = Distances(table, lambda task: 1.0)
    assert (distances.hops(task), distances.rest(task), distances.to_come(task, 1)) == (1, 0.0, 0)


def test_a_chain_deeper_than_the_stack():
    table, run, size = RunTable(), new_run_id(), 3000
    tasks = []
    for index in range(size):
        segments = [Known(ids=[1]), *([OutputHole(task=f"t{index - 1}")] if index else [])]
        hint = TaskHint(run=run, task=f"t{index}", index=index, tasks=size, segments=segments)
        tasks.append(table.add(hint, lambda left, right: Plain()))
        table.grow(tasks[-1])
    distances = Distances(table, lambda task: 2.0)
    assert (distances.hops(tasks[-1]), distances.rest(tasks[-1])) == (size - 1, 2.0 * (size - 1))


def test_expected_steps_are_those_of_one_step():
    table, tasks, distances = diamond()
    assert distances.rest(tasks["b"]) == 10
    table.push(tasks["a"], [7] * 4)
    assert distances.rest(tasks["b"]) == 10
    distances.begin_step()
    assert distances.rest(tasks["b"]) == 6
