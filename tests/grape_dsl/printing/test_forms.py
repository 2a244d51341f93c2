"""The printed forms of a graph."""

from __future__ import annotations

import json
import re
from pathlib import Path

import jsonschema
import pytest
from hypothesis import given, settings

from grape_dsl.compiler import compile
from grape_dsl.early_share import stats_of
from grape_dsl.graph.micro_task import EdgeKind, TurnEnd, TurnStart
from grape_dsl.graph.piece_text import excerpt
from grape_dsl.printing.diagram_forms import to_dot, to_mermaid
from grape_dsl.printing.json_form import from_json, to_json
from grape_dsl.printing.stats_form import stats_to_text
from grape_dsl.printing.text_form import to_text
from grape_dsl.syntax import parse_text
from grape_dsl.workflow import Workflow
from tests.strategies import workflows

ROOT = Path(__file__).parents[3]
PROGRAM = '''
workflow tea
add_variable(topic, InputVar)
add_variable(plan, IntermediateVar)
add_variable(text, OutputVar)
add_task(write,
  prompt = """
    About {{topic}}: {{strip(plan)}}
    Again: {{plan}} "Go!"
    """,
  task_output = text)
add_task(think, prompt = raw("Plan for {{topic}}"), task_output = plan, max_tokens = 12)
'''


@pytest.fixture
def tea():
    return compile(parse_text(PROGRAM).workflow, edge_weight=4).graph


def test_text(tea):
    assert (
        to_text(tea)
        == """\
workflow tea: 2 tasks, 8 micro-tasks, sizes in characters

task think writes plan
  think/0       static_prefill     9  at once: "Plan for " {{topic}}
  think/decode  decode          <=12  when its prompt is in

task write writes text, after think
  write/0       static_prefill   8  at once: [user] "About " {{topic}} ": "
  write/1       dynamic_prefill  -  as {{strip(plan)}} comes from think/decode, in chunks of 4 tokens
  write/2       suffix_prefill   8  when {{strip(plan)}} is complete: "\\nAgain: "
  write/3       dynamic_prefill  -  as {{plan}} comes from think/decode, in chunks of 4 tokens, once {{strip(plan)}} \
is complete
  write/4       suffix_prefill   6  when {{plan}} is complete: " "Go!"" [end]
  write/decode  decode           -  when its prompt is in
"""
    )


def test_stats_text(tea):
    assert (
        stats_to_text(stats_of(tea), tea.unit)
        == """\
stats: 2 tasks, 8 micro-tasks (2 static_prefill, 2 dynamic_prefill, 2 suffix_prefill, 2 decode)
  edges: 6 strong, 2 partial, 0 full; depth: 2 decodes
  of each prompt, before the last token of its upstream tasks (outputs count with their max_tokens):
    think  100%  9 of 9 characters
    write   34%  40 of 118 characters
"""
    )


def test_json_holds_everything(tea):
    document = json.loads(to_json(tea))
    assert document["format"] == "grape.graph/1"
    assert document["tasks"] == ["think", "write"]
    assert "stats" not in document
    assert document["nodes"][1] == {
        "id": "think/decode",
        "task": "think",
        "kind": "decode",
        "output": "plan",
        "max_tokens": 12,
    }
    assert document["nodes"][3] == {
        "id": "write/1",
        "task": "write",
        "kind": "dynamic_prefill",
        "source": {"task": "think", "strip": True},
    }
    assert {"source": "think/decode", "target": "write/1", "kind": "partial", "weight": 4} in document["edges"]
    assert {"source": "write/0", "target": "write/1", "kind": "strong", "weight": None} in document["edges"]
    with_stats = json.loads(to_json(tea, stats_of(tea)))
    assert with_stats["stats"]["prompts"][1]["early"] == 40


SCHEMA = jsonschema.Draft202012Validator(
    json.loads((ROOT / "docs" / "grape.graph.schema.json").read_text(encoding="utf-8"))
)


def test_the_schema_refuses_other_documents(tea):
    document = json.loads(to_json(tea))
    SCHEMA.validate(document)
    for broken in (
        document | {"format": "grape.graph/2"},
        document | {"more": 1},
        {name: value for name, value in document.items() if name != "format"},
        document | {"nodes": [document["nodes"][0] | {"kind": "decode"}]},
        document | {"edges": [{"source": "a", "target": "b", "kind": "partial", "weight": 0}]},
    ):
        with pytest.raises(jsonschema.ValidationError):
            SCHEMA.validate(broken)


@settings(max_examples=60, deadline=None)
@given(workflows())
def test_json_of_random_programs(program: Workflow):
    graph = compile(program).graph
    text = to_json(graph, stats_of(graph))
    SCHEMA.validate(json.loads(text))
    assert from_json(text) == graph


@settings(max_examples=60, deadline=None)
@given(workflows())
def test_diagrams_of_random_programs(program: Workflow):
    """Every node and edge is there once, and no text of a prompt gets out of its label."""
    graph = compile(program).graph
    mermaid = to_mermaid(graph).splitlines()
    assert mermaid[0] == "flowchart LR"
    assert sum(bool(re.fullmatch(r'    n\d+\["[^"\[\]{}]*"\]:::\w+', line)) for line in mermaid) == len(graph)
    arrows = [line for line in mermaid if re.fullmatch(r"  n\d+ (-->|-\.->\|16\|) n\d+", line)]
    assert len(arrows) == graph.digraph.number_of_edges()
    tasks = len(graph.tasks())
    assert len(mermaid) == 1 + 2 * tasks + len(graph) + len(arrows) + 4

    dot = to_dot(graph).splitlines()
    label = r'"(?:[^"\\]|\\.)*"'
    assert sum(bool(re.fullmatch(rf'    n\d+ \[label={label}, fillcolor="#\w+"\];', line)) for line in dot) == len(
        graph
    )
    assert sum(" -> " in line and line.startswith("  n") for line in dot) == graph.digraph.number_of_edges()
    assert len(dot) == 4 + 3 * tasks + len(graph) + len(arrows)


@settings(max_examples=60, deadline=None)
@given(workflows())
def test_text_of_random_programs(program: Workflow):
    """One line per node, in prompt order, and every partial edge with its source."""
    graph = compile(program).graph
    lines = to_text(graph).splitlines()
    shown = [line.split()[0] for line in lines if line.startswith("  ")]
    assert shown == [node.id for task in graph.tasks() for node in graph.chain(task)]
    partial = [(s, t) for s, t, edge in graph.edges() if edge.kind is EdgeKind.PARTIAL]
    for source, target in partial:
        (line,) = [line for line in lines if line.startswith(f"  {target} ")]
        assert f" comes from {source}, in chunks of 16 tokens" in line


def test_mermaid_and_dot(tea):
    assert "n0 --> n1" in to_mermaid(tea)
    assert "-.->|4|" in to_mermaid(tea)
    assert '[style=dashed, label="4"]' in to_dot(tea)


def test_excerpts_are_short():
    parts = (TurnStart("user"), "word " * 1000, TurnEnd(open=True))
    assert excerpt(parts, 60) == '[user] "word word word wo...d word word " [open]'
    assert len(excerpt(parts * 20, 60)) <= 60
