"""The parser: positions, recovery, and text of every kind in linear time."""

from __future__ import annotations

import dataclasses
import time

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from grape_dsl.diagnostics import DiagnosticError
from grape_dsl.names import RESERVED
from grape_dsl.rendering import render, to_json
from grape_dsl.syntax import parse_text, tree
from grape_dsl.syntax.parser import MOST_ERRORS, parse
from grape_dsl.syntax.source import SourceText

WORDS = [
    *sorted(RESERVED),
    *("from", "x", "InputVar", "1", "60ms", "1e", '"text"', '"{{x}}"', '"""{{x}}"""'),
    *("(", ")", "[", "]", "{", "}", "{{", "}}", "=", ",", ":", ".", "+", "-", "<", "==", '"""', '"', "\\", "#"),
]


def nodes(node: tree.Node):
    yield node
    for field in dataclasses.fields(node):
        value = getattr(node, field.name)
        for child in value if isinstance(value, tuple) else (value,):
            if isinstance(child, tree.Node):
                yield from nodes(child)


def test_every_node_spans_its_text():
    text = 'workflow w # why\nwhen(a.b == [1, -x]) { add_task(t, f(k = "v"), {r: (2s)}[0]) } else { loop(l) {} }\n'
    parsed = parse(SourceText.of(text))
    spans = {type(n).__name__: text[n.start : n.end] for n in nodes(parsed.program)}
    assert spans["Header"] == "workflow w"
    assert spans["Comment"] == "# why"
    assert spans["When"] == text.split("\n")[1]
    assert spans["Branch"].endswith("[0]) }")
    assert spans["Binary"] == "a.b == [1, -x]"
    assert spans["Field"] == "a.b"
    assert spans["Unary"] == "-x"
    assert spans["Declaration"] == 'add_task(t, f(k = "v"), {r: (2s)}[0])'
    assert spans["Call"] == 'f(k = "v")'
    assert spans["Keyed"] == 'k = "v"'
    assert spans["Text"] == '"v"'
    assert spans["Index"] == "{r: (2s)}[0]"
    assert spans["Record"] == "{r: (2s)}"
    assert spans["Group"] == "(2s)"
    assert spans["Loop"] == "loop(l) {}"


def test_operators_bind_as_documented():
    text = "workflow w add_variable(x, y, value = not a == b - -c + d and e or f)"
    source = SourceText.of(text)
    value = parse(source).program.statements[1].arguments.items[2].value

    def shown(node):
        if isinstance(node, tree.Binary):
            return f"({shown(node.left)} {node.operator} {shown(node.right)})"
        return f"({node.operator} {shown(node.operand)})" if isinstance(node, tree.Unary) else node.text

    assert shown(value) == "(((not (a == ((b - (- c)) + d))) and e) or f)"


def test_comments_inside_texts_are_text():
    parsed = parse(SourceText.of('workflow w # one\nadd_test(t, "# no", """\n# no\n""") # two'))
    assert [c.text for c in parsed.program.comments] == ["# one", "# two"]


def test_one_mistake_does_not_hide_the_others():
    lines = ["workflow w"]
    for number in range(10):
        lines += [f"add_task(t{number}, prompt = = , task_output = a)", f"add_variable(v{number}, InputVar)"]
    parsed = parse(SourceText.of("\n".join(lines)))
    assert [d.span.line for d in parsed.diagnostics] == list(range(2, 22, 2))
    assert len(parsed.program.statements) == 11


def test_number_of_errors_is_bounded():
    parsed = parse(SourceText.of("workflow w\n" + "add_task(, )\n" * 500))
    assert len(parsed.diagnostics) == MOST_ERRORS


def test_error_inside_a_block_keeps_the_block():
    parsed = parse(SourceText.of("workflow w\nloop(l) {\n add_task(,)\n add_task(a)\n}\nadd_task(b)"))
    assert len(parsed.diagnostics) == 1
    loop = parsed.program.statements[1]
    assert isinstance(loop, tree.Loop)
    assert len(loop.body.statements) == 1


def survives(text: str) -> None:
    try:
        parse_text(text, "f.flow")
    except DiagnosticError as error:
        source = SourceText.of(text).text
        render(error.diagnostics, {"f.flow": source})
        to_json(error.diagnostics)
        for diagnostic in error.diagnostics:
            span = diagnostic.span
            assert span is None or 0 <= span.start <= span.end <= len(source)


@given(st.text())
@example("workflow w\n\x00")
@example('workflow w add_task(a, prompt = "{{')
@example("{{{{}}}}")
def test_any_text_gives_diagnostics_or_a_workflow(text: str):
    survives(text)


@given(st.lists(st.sampled_from(WORDS) | st.sampled_from(["\n", "\n", " "])).map(" ".join))
def test_any_row_of_words_gives_diagnostics_or_a_workflow(text: str):
    survives(text)


@given(st.lists(st.sampled_from(WORDS)).map(" ".join))
def test_any_row_of_words_in_a_tag_gives_diagnostics_or_a_workflow(text: str):
    survives('workflow w\nadd_task(t, prompt = """{{' + text.replace('"""', "") + '}}""", task_output = x)')


DEEP = 3_000


@pytest.mark.parametrize(
    "value",
    [
        "[" * DEEP + "]" * DEEP,
        "(" * DEEP + "x" + ")" * DEEP,
        "strip(" * DEEP + "x" + ")" * DEEP,
        "not " * DEEP + "x",
        "-" * DEEP + "1",
        "x" + ".x" * DEEP,
        "x" + "[0]" * DEEP,
        "x" + " + x" * DEEP,
        "{a: " * DEEP + "1" + "}" * DEEP,
        "[" * DEEP,
        "]" * DEEP,
        '"{{' + "(" * DEEP + '"',
        '"' + "{{" * DEEP + '"',
    ],
    ids=lambda value: value[:8],
)
@pytest.mark.parametrize("option", ["value", "prompt", "stop", "task_output"])
def test_deep_nesting(value: str, option: str):
    word = "add_variable(v, IntermediateVar" if option in ("value", "default") else "add_task(t"
    survives(f"workflow w\n{word}, {option} = {value})")


def test_deep_blocks():
    survives("workflow w\n" + "when(x) { " * DEEP + "}" * DEEP)
    survives("workflow w\n" + "when(x) { " * DEEP)


def chain(tasks: int) -> str:
    lines = ["workflow chain", "add_variable(v0, InputVar)"]
    for i in range(1, tasks + 1):
        kind = "OutputVar" if i == tasks else "IntermediateVar"
        lines.append(f"add_variable(v{i}, {kind})")
        lines.append(f'add_task(t{i}, prompt = "Go on: {{{{v{i - 1}}}}}\\n", task_output = v{i}, max_tokens = 16)')
    return "\n".join(lines)


def seconds(text: str) -> float:
    def once() -> float:
        start = time.perf_counter()
        survives(text)
        return time.perf_counter() - start

    return min(once() for _ in range(3))


@pytest.mark.parametrize(
    "make",
    [
        chain,
        lambda n: chain(n) + "\nadd_task(",
        lambda n: "workflow w\n" + "add_task(, )\n" * 10 * n,
        lambda n: "workflow w\n" + "x " * 100 * n,
        lambda n: "workflow w\n" + '"' * 100 * n,
        lambda n: "workflow w\n" + '"""' * 33 * n,
        lambda n: "workflow w\n" + "{{" * 50 * n,
        lambda n: "workflow w\n" + "}" * 100 * n,
        lambda n: "workflow w\nadd_task(t, prompt = [" + '"{{x}} {{" ,' * 10 * n,
        lambda n: 'workflow w\nadd_task(t, prompt = "' + "{{x}} " * 10 * n + '", task_output = x)',
        lambda n: 'workflow w\nadd_task(t, prompt = """' + "\n  {{x " * 10 * n + '""", task_output = x)',
    ],
    ids=[
        "chain",
        "open chain",
        "errors",
        "words",
        "quotes",
        "long quotes",
        "braces",
        "closers",
        "open",
        "tags",
        "open tags",
    ],
)
def test_time_grows_linearly(make):
    small, large = seconds(make(50)), seconds(make(400))
    assert large < 8 * 3 * small + 0.05
