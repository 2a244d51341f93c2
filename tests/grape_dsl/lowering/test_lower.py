"""Lowering: which nodes and edges each kind of prompt becomes."""

from __future__ import annotations

import pytest

from grape_dsl.encoding import Hole
from grape_dsl.graph.micro_task import Edge, EdgeKind, InputPart, MicroTask, MicroTaskKind, Source, TurnEnd, TurnStart
from grape_dsl.lowering import lower
from grape_dsl.prompt_reading import assistant, raw, system, user
from grape_dsl.variables import InputVar, IntermediateVar, OutputVar
from grape_dsl.workflow import Workflow

STATIC, DYNAMIC, SUFFIX, DECODE = (
    MicroTaskKind.STATIC_PREFILL,
    MicroTaskKind.DYNAMIC_PREFILL,
    MicroTaskKind.SUFFIX_PREFILL,
    MicroTaskKind.DECODE,
)


def pair(prompt, **options) -> Workflow:
    """Task `first` writes x from input q; task `second` has `prompt` and writes y."""
    w = Workflow("pair")
    w.add_variable("q", InputVar)
    w.add_variable("x", IntermediateVar)
    w.add_variable("y", OutputVar)
    w.add_task("first", raw("Q {{q}}"), task_output="x")
    w.add_task("second", prompt, task_output="y", **options)
    return w


def kinds(workflow: Workflow, task: str = "second") -> list[MicroTaskKind]:
    return [node.kind for node in lower(workflow).chain(task)]


def test_text_around_a_hole_is_static_dynamic_suffix():
    graph = lower(pair(raw("pre {{x}} post"), max_tokens=7))
    assert graph.chain("second") == [
        MicroTask("second/0", "second", STATIC, parts=("pre ",), size=4),
        MicroTask("second/1", "second", DYNAMIC, source=Source("first")),
        MicroTask("second/2", "second", SUFFIX, parts=(" post",), size=5),
        MicroTask("second/decode", "second", DECODE, size=7, output="y"),
    ]
    edges = {(a, b): e for a, b, e in graph.edges()}
    assert edges == {
        ("first/0", "first/decode"): Edge(EdgeKind.STRONG),
        ("second/0", "second/1"): Edge(EdgeKind.STRONG),
        ("second/1", "second/2"): Edge(EdgeKind.STRONG),
        ("second/2", "second/decode"): Edge(EdgeKind.STRONG),
        ("first/decode", "second/1"): Edge(EdgeKind.PARTIAL, 16),
    }


@pytest.mark.parametrize(
    ("prompt", "expected"),
    [
        ("{{x}}", [DYNAMIC, DECODE]),
        ("{{x}} post", [DYNAMIC, SUFFIX, DECODE]),
        ("pre {{x}}", [STATIC, DYNAMIC, DECODE]),
        ("{{x}}{{x}}", [DYNAMIC, DYNAMIC, DECODE]),
        ("{{x}} and {{x}}", [DYNAMIC, SUFFIX, DYNAMIC, DECODE]),
        ("{{x}} and {{q}}", [DYNAMIC, SUFFIX, DECODE]),
        ("{{q}}", [STATIC, DECODE]),
        ("only text", [STATIC, DECODE]),
    ],
)
def test_raw_prompts(prompt, expected):
    assert kinds(pair(raw(prompt))) == expected


def test_a_chat_prompt_begins_and_ends_with_known_text():
    graph = lower(pair("{{x}}", system="Be brief."))
    static, dynamic, suffix, _ = graph.chain("second")
    assert static.parts == (TurnStart("system"), "Be brief.", TurnEnd(), TurnStart("user"))
    assert static.size == len("Be brief.")
    assert dynamic.source == Source("first")
    assert suffix.parts == (TurnEnd(),)
    assert suffix.size == 0


def test_only_a_final_assistant_turn_stays_open():
    turns = [system("s"), user("{{x}}"), assistant("a"), user("again"), assistant("Answer:")]
    suffix = lower(pair(turns)).chain("second")[2]
    ends = [part.open for part in suffix.parts if isinstance(part, TurnEnd)]
    assert ends == [False, False, False, True]


def test_inputs_are_known_text_and_count_nothing():
    graph = lower(pair(raw("{{strip(q)}}: {{x}}")))
    assert graph.chain("second")[0] == MicroTask(
        "second/0", "second", STATIC, parts=(InputPart("q", strip=True), ": "), size=2
    )


def test_strip_stays_with_the_source():
    assert lower(pair(raw("{{strip(x)}}"))).chain("second")[0].source == Source("first", strip=True)


def test_a_fragment_is_spliced_and_may_bring_a_hole():
    w = pair(raw("a {{note}} b"))
    w.add_variable("note", IntermediateVar, value="[{{x}}]")
    chain = lower(w).chain("second")
    assert [node.parts for node in chain] == [("a [",), (), ("] b",), ()]


def test_options_of_the_header_count_for_the_decode():
    w = pair(raw("{{x}}"))
    w.defaults = type(w.defaults)(max_tokens=9)
    assert lower(w).chain("second")[-1].size == 9


def test_edge_weight():
    edges = [e for _, _, e in lower(pair("{{x}}"), edge_weight=3).edges() if e.kind is EdgeKind.PARTIAL]
    assert edges == [Edge(EdgeKind.PARTIAL, 3)]
    with pytest.raises(ValueError, match="at least 1, got 0"):
        lower(pair("{{x}}"), edge_weight=0)


class WordCounter:
    """Counts words; remembers what it was asked."""

    def __init__(self):
        self.asked = []

    def known_tokens(self, pieces):
        self.asked.append(tuple(pieces))
        counts = [0]
        for piece in pieces:
            if isinstance(piece, Hole):
                counts.append(0)
            elif isinstance(piece, str):
                counts[-1] += len(piece.split())
            else:
                counts[-1] += 1
        return counts


def test_a_counter_gives_tokens():
    counter = WordCounter()
    graph = lower(pair("one two {{q}} {{x}}{{x}} three"), counter=counter)
    assert graph.unit == "tokens"
    assert [node.size for node in graph.chain("second")] == [3, None, None, 2, None]
    assert (TurnStart("user"), "one two ", " ", Hole("first"), Hole("first"), " three", TurnEnd()) in counter.asked


def test_a_counter_that_loses_a_stretch_is_refused():
    class Short:
        def known_tokens(self, pieces):
            return [1]

    with pytest.raises(ValueError, match="1 counts for a prompt with 1 holes"):
        lower(pair("{{x}}"), counter=Short())
