"""Workflows written as decorated functions."""

from __future__ import annotations

import pytest

from grape_dsl.compiler import compile
from grape_dsl.decorators import docstring_text, task, workflow
from grape_dsl.diagnostics import DiagnosticError
from grape_dsl.graph.micro_task import Source
from grape_dsl.prompt import ChatPrompt, Role, Turn
from grape_dsl.prompt_reading import assistant, raw, user
from grape_dsl.template import Reference, Template
from grape_dsl.variables import InputVar, IntermediateVar, OutputVar
from grape_dsl.workflow import Workflow


@task(task_output="query", max_tokens=32, stop="\n")
def rewrite(question):
    """
    Rewrite as one search query.
      Question: {{question}}
    Query:"""


@task(task_output="answer")
def reply(question, notes):
    """{{question}}
    Use: {{notes}}
    """


def refusal(code: str, function) -> str:
    """Message and hint of the one diagnostic that tracing `function` raises."""
    with pytest.raises(DiagnosticError) as caught:
        workflow(name="refused")(function)
    (diagnostic,) = caught.value.diagnostics
    assert diagnostic.code == code
    return f"{diagnostic.message} {diagnostic.hint}"


def test_the_same_as_add_calls():
    @workflow(temperature=0)
    def search(question, style="short"):
        """Searches."""
        query = rewrite(question)
        return {"answer": reply(question=question, notes=query)}

    assert isinstance(search, Workflow)
    del search.variables["style"]
    w = Workflow("search", "Searches.", type(search.defaults)(temperature=0))
    w.add_variable("question", InputVar)
    w.add_variable("query", IntermediateVar)
    w.add_variable("answer", OutputVar)
    text = "Rewrite as one search query.\n  Question: {{question}}\nQuery:"
    w.add_task("rewrite", text, task_output="query", max_tokens=32, stop=["\n"])
    w.add_task("reply", "{{question}}\nUse: {{query}}", task_output="answer")
    assert search == w


def test_defaults_of_parameters_are_defaults_of_inputs():
    @workflow
    def search(question="tea?"):
        return {"query": rewrite(question)}

    assert search.variables["question"].default == "tea?"
    assert search.variables["query"].kind is OutputVar


@pytest.mark.parametrize(
    ("docstring", "text"),
    [
        ("one line", "one line"),
        ("\n    a\n      b\n    ", "a\n  b"),
        ("first\n    second\n    third", "first\nsecond\nthird"),
        ("\n    a\n\n    b\n\n    ", "a\n\nb\n"),
        ("  kept blanks ", "  kept blanks "),
        ("", ""),
    ],
)
def test_docstrings_are_dedented(docstring, text):
    assert docstring_text(docstring) == text


def test_arguments_may_be_plain_text_which_is_no_template():
    @workflow
    def search(question):
        return {"answer": reply(question, " {{question}} ")}

    prompt = search.prompt("reply")
    assert prompt == ChatPrompt((Turn(Role.USER, Template.of(Reference("question"), "\nUse:  {{question}} ")),))


def test_strip_on_a_symbol_and_in_the_template():
    @task(task_output="answer")
    def stripped(a, b, c):
        """{{strip(a)}} {{b}} {{strip(c)}}"""

    @workflow
    def search(question):
        query = rewrite(question)
        return {"answer": stripped(query, query.strip(), "  text ")}

    sources = [node.source for node in compile(search).graph.chain("stripped") if node.source]
    assert sources == [Source("rewrite", True), Source("rewrite", True)]
    assert search.prompt("stripped").turns[0].content.parts[-1] == " text"


def test_a_returned_prompt_wins_over_the_docstring():
    @task(task_output="answer", system="Be brief.")
    def draw(question, count):
        """Says what the task is for."""
        return [user("{{question}}" * count), assistant("Answer:")]

    @task(task_output="more")
    def extend(answer):
        return raw("{{answer}} and")

    @workflow
    def search(question):
        answer = draw(question, 2)
        return {"answer": answer, "more": extend(answer)}

    roles = [turn.role for turn in search.prompt("draw").turns]
    assert roles == [Role.SYSTEM, Role.USER, Role.ASSISTANT]
    assert search.prompt("draw").turns[1].content == Template.of(Reference("question"), Reference("question"))
    assert search.prompt("extend").text == Template.of(Reference("answer"), " and")


def test_calls_with_names():
    @workflow
    def twice(question):
        first = rewrite(question)
        second = rewrite(first, name="again")
        third = rewrite(second, name="last", task_output="final")
        return {"final": third}

    assert {t.name: t.output for t in twice.tasks.values()} == {
        "rewrite": "query",
        "again": "again_query",
        "last": "final",
    }


def test_plain_python_control_flow_unrolls():
    @workflow
    def rounds(question):
        for number in range(3):
            question = rewrite(question, name=f"round{number}")
        return {"round2_query": question}

    assert list(rounds.tasks) == ["round0", "round1", "round2"]
    assert compile(rounds).graph.tasks() == ["round0", "round1", "round2"]


def test_outputs_with_other_names_are_fragments():
    @workflow
    def search(question):
        query = rewrite(question)
        return {"found": query, "clean": query.strip(), "asked": question, "note": "fixed"}

    values = {v.name: v.value for v in search.variables.values() if v.kind is OutputVar}
    assert values == {
        "found": Template.of(Reference("query")),
        "clean": Template.of(Reference("query", True)),
        "asked": Template.of(Reference("question")),
        "note": Template.of("fixed"),
    }


USES = {
    "if": lambda s: 1 if s else 2,
    "not": lambda s: not s,
    "and": lambda s: s and 1,
    "for": lambda s: [c for c in s],
    "star": lambda s: [*s],
    "len": lambda s: len(s),
    "in": lambda s: "a" in s,
    "in list": lambda s: s in ["a"],
    "f-string": lambda s: f"{s}",
    "format": lambda s: "{}".format(s),  # noqa: UP032
    "percent": lambda s: "%s" % s,  # noqa: UP031
    "str": lambda s: str(s),
    "equals": lambda s: s == "a",
    "differs": lambda s: s != "a",
    "chained": lambda s: 1 < s < 2,
    "plus": lambda s: s + "a",
    "right plus": lambda s: "a" + s,
    "times": lambda s: s * 2,
    "index": lambda s: s[0],
    "slice": lambda s: s[:3],
    "int": lambda s: int(s),
    "field": lambda s: s.verdict,
    "method": lambda s: s.upper(),
}


@pytest.mark.parametrize("use", USES.values(), ids=USES)
def test_a_symbol_refuses_what_needs_its_value(use):
    def search(question):
        use(question)
        return {"query": rewrite(question)}

    message = refusal("symbol-use", search)
    assert "<symbol question>" in message
    assert "pass the symbol to a task" in message or "plain Python values" in message


def test_refusals_name_the_construct():
    assert "`if`" in refusal("symbol-use", lambda q: {"a": 1 if q else 2})
    assert "f-string" in refusal("symbol-use", lambda q: {"a": f"{q}"})
    assert "`.verdict`" in refusal("symbol-use", lambda q: {"a": q.verdict})


def test_a_second_call_without_a_name():
    message = refusal("duplicate-name", lambda q: {"query": rewrite(rewrite(q))})
    assert "name='rewrite_2'" in message


def test_a_call_outside_a_workflow():
    with pytest.raises(DiagnosticError, match="outside a function with @workflow"):
        rewrite("question")


def test_a_failed_trace_leaves_nothing_behind():
    with pytest.raises(ZeroDivisionError):
        workflow(name="fails")(lambda q: 1 / 0)
    with pytest.raises(DiagnosticError, match="no-workflow"):
        rewrite("question")


def test_a_symbol_of_another_workflow():
    kept = []

    @workflow
    def first(question):
        kept.append(question)
        return {"query": rewrite(question)}

    message = refusal("foreign-symbol", lambda q: {"query": rewrite(kept[0])})
    assert "'first'" in message


def test_wrong_returns():
    assert "NoneType" in refusal("no-outputs", lambda q: None)
    assert "Symbol" in refusal("no-outputs", lambda q: rewrite(q))
    assert "int" in refusal("bad-type", lambda q: {"a": 3})


def test_wrong_arguments():
    assert "missing a required argument: 'notes'" in refusal("bad-call", lambda q: {"answer": reply(q)})
    message = refusal("bad-type", lambda q: {"answer": reply(q, 3)})
    assert "'notes' of task 'reply' is given int" in message


def test_an_unknown_name_in_the_docstring():
    @task(task_output="a")
    def ask(question):
        """{{questoin}}"""

    message = refusal("unknown-name", lambda q: {"a": ask(q)})
    assert "did you mean 'question'?" in message


def test_an_unused_parameter():
    @task(task_output="a")
    def ask(question, style):
        """{{question}}"""

    assert "'style'" in refusal("unused-parameter", lambda q: {"a": ask(q, "short")})


def test_no_prompt():
    @task(task_output="a")
    def ask(question):
        pass

    assert "'ask'" in refusal("no-prompt", lambda q: {"a": ask(q)})


def test_signatures_that_cannot_be_traced():
    with pytest.raises(DiagnosticError, match=r"bad-parameter.*'args'"):
        task(task_output="a")(lambda *args: None)
    with pytest.raises(DiagnosticError, match=r"bad-name.*'name'"):
        task(task_output="a")(lambda name: None)
    with pytest.raises(DiagnosticError, match=r"bad-type.*int"):
        workflow(name="numbers")(lambda q=3: {})


def test_types_are_not_supported_yet():
    def count(text: int) -> str:
        """{{text}}"""

    def judge(text: str) -> bool:
        """{{text}}"""

    def fine(text: str) -> str:
        """{{text}}"""

    task(task_output="a")(fine)
    with pytest.raises(DiagnosticError, match=r"not-supported.*'text' of task 'count' is int"):
        task(task_output="a")(count)
    with pytest.raises(DiagnosticError, match=r"not-supported.*result of task 'judge' is bool"):
        task(task_output="a")(judge)


def test_unknown_options():
    with pytest.raises(DiagnosticError, match=r"unknown-option.*did you mean 'max_tokens'"):
        task(task_output="a", max_token=3)
    with pytest.raises(DiagnosticError, match=r"unknown-option.*did you mean 'temperature'"):
        workflow(temprature=0)
