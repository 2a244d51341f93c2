"""The wire contract."""

from __future__ import annotations

from typing import Any

import pytest

from sglang_ext.tasks.hint import (
    ACTION_TYPE,
    ACTION_VERSION,
    HintError,
    Known,
    OutputHole,
    Strip,
    TaskHint,
    check_input_ids,
    envelope,
    input_ids,
    new_run_id,
    read_hint,
    read_request_id,
    request_id,
)


def actions(hint: TaskHint) -> list[tuple[str, str, Any]]:
    return [(a["action_type"], a["action_version"], a["payload"]) for a in envelope(hint)["actions"]]


def make(**changes: Any) -> TaskHint:
    values = {
        "run": new_run_id(),
        "task": "b",
        "index": 1,
        "tasks": 3,
        "segments": [Known(ids=[1, 2]), OutputHole(task="a")],
    }
    return TaskHint(**(values | changes))


def test_a_hint_survives_the_wire() -> None:
    hint = make(
        segments=[OutputHole(task="a", weight=3, transform=Strip(left=False)), Known(ids=[7])],
        readers=["c"],
        timeout={"run": 2.5},
        slo={"tbt": {"steps": 3}},
    )
    assert read_hint(actions(hint)) == hint
    assert hint.holes[0].sides == (False, True)


def test_other_actions_are_left_alone() -> None:
    assert read_hint([("prefetch", "3", {"anything": 1})]) is None


@pytest.mark.parametrize(
    ("change", "expected"),
    [
        ({"run": "abc"}, "run"),
        ({"segments": [{"ids": [1], "task": "x"}]}, "segments"),
        ({"segments": [{"task": "a", "weight": 0}]}, "weight"),
        ({"segments": [{"task": "b"}]}, "own output"),
        ({"surprise": 1}, "surprise"),
        ({"tasks": 0}, "tasks"),
    ],
)
def test_a_bad_payload_is_refused_with_its_place(change: dict[str, Any], expected: str) -> None:
    payload = make().model_dump(mode="json") | change
    with pytest.raises(HintError, match=expected):
        read_hint([(ACTION_TYPE, "1", payload)])


@pytest.mark.parametrize(
    ("slo", "message"),
    [
        ({"tbt": 0.06}, r"payload: slo.tbt: .*, got 0.06"),
        ({"tbt": {"seconds": 0}}, r"payload: slo.tbt.seconds: .*greater than 0, got 0"),
        ({"ttft": {"seconds": float("nan")}}, r"payload: slo.ttft.seconds: .*finite number.*, got nan"),
        ({"ttft": {"steps": "soon"}}, r"payload: slo.ttft.steps: .*valid number.*, got 'soon'"),
        ({"ttft": {"steps": 3, "seconds": 1}}, r"payload: slo.ttft: .*in seconds or in steps, one of the two"),
        ({"ttft": {}}, r"payload: slo.ttft: .*in seconds or in steps, one of the two"),
        ({"tpot": {"steps": 3}}, r"payload: slo.tpot: .*not permitted"),
        ("fast", r"payload: slo: .*, got 'fast'"),
    ],
)
def test_objectives_that_are_none_are_refused(slo: object, message: str) -> None:
    payload = make().model_dump(mode="json") | {"slo": slo}
    with pytest.raises(HintError, match=message):
        read_hint([(ACTION_TYPE, ACTION_VERSION, payload)])


def test_other_versions_and_two_tasks_are_refused() -> None:
    payload = make().model_dump(mode="json")
    with pytest.raises(HintError, match="version '2'"):
        read_hint([(ACTION_TYPE, "2", payload)])
    with pytest.raises(HintError, match="carries 2"):
        read_hint([(ACTION_TYPE, "1", payload)] * 2)


def test_no_request_id_is_a_prefix_of_another() -> None:
    run = new_run_id()
    ids = [request_id(run, i) for i in range(1200)]
    assert len({len(rid) for rid in ids}) == 1
    assert len(set(ids)) == len(ids)
    assert len(run) == 32
    assert [read_request_id(rid) for rid in ids] == [(run, i) for i in range(1200)]


@pytest.mark.parametrize("rid", ["", "mine", "a" * 32, f"{'a' * 32}.00001", f"{'g' * 32}.00001.", f"{'a' * 32}.1."])
def test_other_request_ids_are_no_tasks(rid: str) -> None:
    assert read_request_id(rid) is None


def test_a_request_has_the_first_known_ids_or_a_placeholder() -> None:
    assert input_ids([Known(ids=[4, 5]), OutputHole(task="a")]) == [4, 5]
    assert input_ids([OutputHole(task="a"), Known(ids=[4])]) == [0]
    assert input_ids([]) == [0]


@pytest.mark.parametrize("segments", [[Known(ids=[4, 5]), OutputHole(task="a")], [OutputHole(task="a")], []])
def test_its_own_ids_and_the_placeholder_do_not_contradict_a_hint(segments: list[Known | OutputHole]) -> None:
    check_input_ids(input_ids(segments), segments)
    check_input_ids([0], segments)


@pytest.mark.parametrize(
    ("ids", "segments", "message"),
    [
        ([4], [Known(ids=[4, 5])], r"first segment, 2 ids \[4, 5\], or .* \[0\]; got 1 ids \[4\]; put the whole"),
        ([4, 5, 6], [Known(ids=[4, 5]), OutputHole(task="a"), Known(ids=[6])], r"got 3 ids \[4, 5, 6\]"),
        (range(1, 300), [Known(ids=[1])], r"got 299 ids \[1, 2, 3, 4, 5, 6, \.\.\.\]"),
        ([4], [OutputHole(task="a"), Known(ids=[4])], r"own ids are the placeholder \[0\]; got 1 ids \[4\]"),
        ([0, 0], [], r"got 2 ids"),
    ],
)
def test_ids_that_contradict_a_hint_are_refused(ids: Any, segments: list[Known | OutputHole], message: str) -> None:
    with pytest.raises(HintError, match=f"^input_ids: .*{message}"):
        check_input_ids(ids, segments)


@pytest.mark.parametrize(
    ("segment", "message"),
    [
        ({"task": "a", "weight": 0}, r"segments.0.task.weight: .*greater than or equal to 1"),
        ({"ids": [-1]}, r"segments.0.ids.ids.0"),
        ({}, r"segments.0.ids.ids: Field required"),
        (7, r"segments.0.ids"),
    ],
)
def test_an_error_in_a_segment_speaks_of_its_own_kind(segment: object, message: str) -> None:
    payload = make(segments=[Known(ids=[1])]).model_dump(mode="json") | {"segments": [segment]}
    with pytest.raises(HintError, match=message):
        read_hint([(ACTION_TYPE, ACTION_VERSION, payload)])
