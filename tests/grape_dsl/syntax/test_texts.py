"""Text literals and templates: escapes, indents, tags, and text that only looks like one."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from grape_dsl.diagnostics import DiagnosticError
from grape_dsl.prompt import RawPrompt
from grape_dsl.prompt_reading import read_text
from grape_dsl.syntax import parse_text
from grape_dsl.template import Reference, Template


def template(literal: str) -> Template:
    """The template that a literal holds as a raw prompt."""
    text = (
        "workflow w add_variable(x, InputVar) add_variable(y, InputVar) add_variable(out, OutputVar)"
        f'add_task(use, prompt = "{{{{x}}}}{{{{y}}}}", task_output = out)\nadd_variable(out2, OutputVar)\n'
        f"add_task(t, prompt = raw({literal}), task_output = out2)"
    )
    prompt = parse_text(text).workflow.tasks["t"].prompt
    assert isinstance(prompt, RawPrompt)
    return prompt.text


def text(literal: str) -> str:
    (part,) = template(literal).parts
    assert isinstance(part, str)
    return part


X, Y = Reference("x"), Reference("y")


@pytest.mark.parametrize(
    ("literal", "expected"),
    [
        (r'"a\n\t\"\\\u{1F600}\u{41}"', 'a\n\t"\\\U0001f600A'),
        (r'"# no comment"', "# no comment"),
        ('"""one line"""', "one line"),
        (r'"""\n \d+ \ """', r"\n \d+ \ "),
        ('"""\n  a\n    b\n\n  c\n  """', "a\n  b\n\nc"),
        ('"""\n  a\n  """', "a"),
        ('"""\n  a\n"""', "a"),
        ('"""\n  a\n\n  """', "a\n"),
        ('"""\n\n  a"""', "\na"),
        ('"""a\n  b\n    c"""', "a\nb\n  c"),
        ('"""\n\ta\n\t\tb\n\t"""', "a\n\tb"),
        ('"""\n  a\n \n  b"""', "a\n\nb"),
        ('"""\n    a\n  b\n"""', "  a\nb"),
        ('"""\n  he said "hi" and ""\n  """', 'he said "hi" and ""'),
    ],
)
def test_literals(literal: str, expected: str):
    assert text(literal) == expected


@pytest.mark.parametrize(
    ("literal", "parts"),
    [
        ('"{{x}}"', (X,)),
        ('"{{ x }}{{strip(y)}}"', (X, Reference("y", True))),
        ('"{{(x)}} {{strip((strip(x)))}}"', (X, " ", Reference("x", True))),
        ('"""\n  a {{x}}\n  {{y}} b\n  """', ("a ", X, "\n", Y, " b")),
        ('"""\n    {{x}}\n  b"""', ("  ", X, "\nb")),
        ('"""{{x}}"""', (X,)),
        ('"""{{"{{"}}x}} {{x}}"""', ("{{x}} ", X)),
        ('"""{{strip("  a  ")}}{{"}}"}}"""', ("a}}",)),
        (r'"\u{7B}{x}} {{x}}"', ("{{x}} ", X)),
        (r'"{{x}}\n{{y}}\\"', (X, "\n", Y, "\\")),
        ('"{ {x} }"', ("{ {x} }",)),
        ("x", (X,)),
        ("strip(x)", (Reference("x", True),)),
    ],
)
def test_templates(literal: str, parts: tuple):
    assert template(literal).parts == parts


def test_bug_14_braces():
    """A JSON example and LaTeX need no escaping; a tag ends where its expression does."""
    assert text('"""{"a": {"b": {"c": 1}}}"""') == '{"a": {"b": {"c": 1}}}'
    assert text(r'"""\frac{a}{b} and \sqrt{x_{1}}"""') == r"\frac{a}{b} and \sqrt{x_{1}}"
    assert template('"""{"q": "{{x}}"}"""').parts == ('{"q": "', X, '"}')
    assert template('"{{x}}}}"').parts == (X, "}}")
    with pytest.raises(DiagnosticError) as error:
        template('"""{{json({a: {b: x}})}} and {{x}}"""')
    (refused,) = error.value.diagnostics
    assert refused.code == "not-supported"
    assert (refused.span.end - refused.span.start) == len("json({a: {b: x}})")


def test_bug_14_values_are_never_parsed_again():
    """Text that a default or a plain string brings is text, whatever it has in it."""
    loaded = parse_text(
        'workflow w add_variable(x, InputVar, default = "{{y}} {x}") add_variable(out, OutputVar)\n'
        'add_task(t, prompt = """{{x}}{{"{{x}}"}}""", task_output = out, stop = "{{x}}")'
    )
    assert loaded.workflow.variables["x"].default == "{{y}} {x}"
    assert loaded.workflow.tasks["t"].options.stop == ("{{x}}",)
    (turn,) = loaded.workflow.tasks["t"].prompt.turns
    assert turn.content.parts == (X, "{{x}}")


def test_bug_15_special_token_text_is_text():
    """The language knows no special tokens: such text arrives in the template as it was written."""
    assert text('"<|im_end|><|im_start|>system</s>[INST]"') == "<|im_end|><|im_start|>system</s>[INST]"
    loaded = parse_text(
        'workflow w add_variable(x, InputVar, default = "<|im_end|>") add_variable(out, OutputVar)\n'
        'add_task(t, prompt = "a <|im_end|> {{x}}", task_output = out)'
    )
    assert loaded.workflow.variables["x"].default == "<|im_end|>"
    assert loaded.workflow.tasks["t"].prompt.turns[0].content.parts == ("a <|im_end|> ", X)


@given(st.text(st.characters(exclude_characters='\r"\\{', exclude_categories=["Cs"]), min_size=1))
def test_long_text_on_one_indent_is_kept(content: str):
    """Every text comes back from its long literal, indented by two."""
    lines = content.split("\n")
    if any(line.strip(" \t") != line or not line for line in lines):
        return
    assert text('"""\n' + "\n".join("  " + line for line in lines) + '\n  """') == content


@given(st.text(st.characters(exclude_categories=["Cs"]), min_size=1))
def test_every_text_can_be_written_in_escapes(content: str):
    escaped = "".join(c if c.isascii() and c.isalnum() else f"\\u{{{ord(c):X}}}" for c in content)
    assert text(f'"{escaped}"') == content


@given(st.lists(st.sampled_from(["a", "{", "}", "\n", '"', "\\n", X, Reference("y", True)]), max_size=8))
def test_python_strings_are_read_as_they_are(parts: list):
    """No escapes and no indent in a string that Python has read already."""
    wanted = Template.of(*(p for p in parts))
    written = "".join(
        ('{{"{{"}}' if p == "{{" else p.replace("{", '{{"{"}}'))
        if isinstance(p, str)
        else f"{{{{strip({p.name})}}}}"
        if p.strip
        else f"{{{{{p.name}}}}}"
        for p in parts
    )
    assert read_text(written) == wanted


@pytest.mark.parametrize(
    ("written", "code", "says"),
    [
        ("a {{x", "open-tag", "not closed"),
        ("{{x} } b", "bad-tag", "stand together"),
        ("{{x[{a: 1} b", "bad-tag", "expected an operator or `]`"),
        ("{{x(", "open-tag", "not closed"),
        ("a {{x y}} b", "bad-tag", "found `y`"),
        ("{{x.y}}", "not-supported", "`.y`"),
        ("{{for a in x}}{{a}}{{end}}", "not-supported", "for"),
        ("{{lowr(x)}}", "unknown-function", "lowr"),
    ],
)
def test_python_strings_are_refused_with_the_text(written: str, code: str, says: str):
    with pytest.raises(DiagnosticError) as error:
        read_text(written)
    first = error.value.diagnostics[0]
    assert (first.code, first.span) == (code, None)
    assert says in first.message
    assert repr(written) in first.message


def test_names_in_tags_have_their_spans():
    declared = "workflow w\nadd_variable(x, InputVar)\nadd_variable(o, OutputVar)\n"
    source = declared + 'add_task(t, prompt = """\n  é {{strip(x)}}""", task_output = o)'
    (reference,) = parse_text(source).workflow.tasks["t"].prompt.turns[0].content.references
    assert source[reference.span.start : reference.span.end] == "x"
    assert (reference.span.line, reference.span.column) == (5, 13)
