"""The grammar: no conflicts, tables that fit, every construct of the language, the reserved words."""

from __future__ import annotations

import logging
import pickle

import pytest
from lark import Lark, logger

from grape_dsl.names import RESERVED
from grape_dsl.syntax import tables
from grape_dsl.syntax.grammar import ReservedWords, grammar_path, parser
from grape_dsl.syntax.parser import parse
from grape_dsl.syntax.source import SourceText
from grape_dsl.syntax.tree_builder import TreeBuilder

GRAMMAR = grammar_path().read_text(encoding="utf-8")

EVERYTHING = r'''
# a comment
workflow everything(temperature = 0, about = "all of it", slo(tbt = 60ms, ttft = 3x), timeout(run = 2h, idle = 10m),)
import interview, Analyst from "interview.flow"

add_type(Plan, steps = list(text), done = bool, end = optional(text), when = int(min = 1, max = 6), in = json)
add_type(Review, tagged, verdict = one_of("pass", "fail"), advice = text)
add_type(Intent, one_of("a", "b"),)
add_type(Loaded, schema("f.json"))
add_type(Checked, regex("""\d+ "quoted" """))
add_type(Model, pydantic("mod:Class"))

add_variable(topic, InputVar, type = messages, default = [])
add_variable(size, InputVar, type = int(min = -1, max = 6), default = -3)
add_variable(limit, InputVar, type = float, default = 1.5e3)
add_variable(poem, OutputVar, value = last(draft))
add_variable(parts, IntermediateVar, value = each({name: g.name, "code": fixed, end: 1,}))
add_variable(many, IntermediateVar, value = [a, "b", [1, 2], {}, [],],)
add_variable(sum, IntermediateVar, value = chat + [user(q), assistant(a)] - -3 + (a.b[0].c(x, y = 1)))
add_variable(condition, IntermediateVar, value = not a == b and c in d or e not in f and g <= 1 or h >= 2 and i != j)
add_variable(other, IntermediateVar, value = first(missing(a), "else", file("x.txt"), find(t, """(a)""", group = 1)))
add_variable(more, IntermediateVar, value = a < 1 or not b > 2 or true or false)

add_task(write,
  system = "You write. JSON: {{Plan}}",
  prompt = [
    user("{{for i, x in xs}}{{i + 1}} {{json({a: {b: x}})}}{{end}}"),
    assistant("yes"), chat, user("""
      {{if a and not b}}
      {{join(xs, ", ")}}
      {{else}}
      {{x[0].name}} {{"{{"}} {{(a)}} {{-1}}
      {{end}}
      {for x} {"json": {"a": 1}}
      """),
  ],
  task_output = draft, max_tokens = 64, temperature = 0.5, top_p = 0.9, stop = ["\n", "\u{1F600}"], seed = 7,
  logprobs = 3, model = big, tools(python("web:search"), flow(risk), max_rounds = 4),
  retry(max_attempts = 3, initial_interval = 500ms, backoff = 2, max_interval = 30s, jitter = true,
    retry_on = [error, timeout, invalid]),
  timeout(run = 1.5s), ensure = len(draft) > 0 and lower(strip(draft)) != "none", on_error = skip)
add_task(look, python("module:function", arg = topic, top_k = 4), task_output = found)
add_task(get, http("https://x/{{id}}", method = "POST", headers = {key: env("KEY")}, json = {}, max_bytes = 200kB),
  task_output = page)
add_task(person, ask("text", choices = [1, 2]), task_output = reply)
add_task(hold, flow(interview, topic = topic), task_output = talk)
add_task(plain, prompt = raw("<s>{{topic}}"), task_output = text)

when(route.to == "refund") { add_variable(inner, IntermediateVar) } else when(route.to == "bug") {} else {
  foreach(s in plan.searches, width = 4, on_error = drop) {
    fold(part in chunks(document, tokens = 800, overlap = 0)) {
      loop(refine, max = 4, until = review.verdict == "pass", on_max = keep) {
        add_variable(advice, CarriedVar, start = "", next = review.advice)
      }
    }
  }
}
foreach(n in range(3),) {}
add_test(second_pass, inputs = {topic: "tea"},
  outputs = {write: ["a", "b"], "hold/ask": error("timeout")},
  expect = [poem == "b", calls(write) == 2, "x" in prompt(write, 2), not ("y" in prompt(write, 1))])
'''


def test_every_construct_parses():
    parsed = parse(SourceText.of(EVERYTHING))
    assert parsed.diagnostics == ()
    assert (
        len(parsed.program.statements) == 27
    )  # one header, one import, 6 types, 10 variables, 6 tasks, 2 blocks, one test
    assert [comment.text for comment in parsed.program.comments] == ["# a comment"]


def test_no_conflicts(caplog: pytest.LogCaptureFixture):
    """lark raises for two reductions, and only logs where it prefers to shift."""
    with caplog.at_level(logging.DEBUG, logger=logger.name):
        Lark(GRAMMAR, parser="lalr", lexer="contextual", start=list(tables.STARTS), debug=True)
    assert "conflict" not in caplog.text


@pytest.fixture
def grammar_file(tmp_path, monkeypatch):
    """A copy of the grammar; `.made` counts how often its tables were made."""
    copy = tmp_path / "flow.lark"
    copy.write_text(GRAMMAR, encoding="utf-8")
    made: list[str] = []
    make = tables.make
    monkeypatch.setattr(tables, "make", lambda grammar: made.append(grammar) or make(grammar))
    return copy, made


def everything_read_with(made: dict) -> str:
    loaded = Lark.__new__(Lark)._load(made, transformer=TreeBuilder(), postlex=ReservedWords())
    return repr(loaded.parse(EVERYTHING, start="program"))


def test_written_tables_are_used_and_read_the_language(grammar_file):
    copy, made = grammar_file
    tables.write(copy)
    assert len(made) == 1
    read = tables.read(copy)
    assert len(made) == 1
    assert everything_read_with(read) == everything_read_with(tables.make(GRAMMAR))


@pytest.mark.skipif(not grammar_path().with_suffix(".tables").exists(), reason="no tables were built in this tree")
def test_tables_beside_the_grammar_fit_it_or_are_not_used():
    stamp, built = pickle.loads(grammar_path().with_suffix(".tables").read_bytes())
    if stamp == tables.stamp(GRAMMAR):
        assert everything_read_with(built) == everything_read_with(tables.make(GRAMMAR))
    assert everything_read_with(tables.read(grammar_path())) == everything_read_with(tables.make(GRAMMAR))


@pytest.mark.parametrize("content", [None, b"", b"junk", b"\x80\x05."], ids=["missing", "empty", "junk", "cut off"])
def test_tables_that_cannot_be_read_are_made_anew(grammar_file, content):
    copy, made = grammar_file
    if content is not None:
        copy.with_suffix(".tables").write_bytes(content)
    tables.read(copy)
    assert len(made) == 1


def test_tables_of_another_grammar_are_not_used(grammar_file):
    copy, made = grammar_file
    tables.write(copy)
    copy.write_text(GRAMMAR + "// changed", encoding="utf-8")
    tables.read(copy)
    assert len(made) == 2


def test_reserved_words_are_the_keywords_of_the_grammar():
    keywords = {
        t.pattern.value for t in parser().terminals if t.pattern.type == "str" and t.pattern.value.isidentifier()
    }
    assert keywords - {"from"} == RESERVED
