"""Programs that the tests of the commands run."""

from __future__ import annotations

from pathlib import Path

FLOW = """workflow pair(temperature = 0)
add_variable(question, InputVar)
add_variable(tone, InputVar, default = "calm")
add_variable(query, IntermediateVar)
add_variable(answer, OutputVar)
add_variable(verdict, OutputVar)
add_task(rewrite, prompt = "[rewrite] {{question}} {{tone}}", task_output = query)
add_task(reply, prompt = "[reply] {{query}}", task_output = answer)
add_task(check, prompt = "[check] {{answer}}", task_output = verdict)
"""
PYTHON = """
from grape_dsl.variables import InputVar, OutputVar
from grape_dsl.workflow import Workflow

workflow = Workflow("twin")
workflow.add_variable("question", InputVar)
workflow.add_variable("answer", OutputVar)
workflow.add_task("reply", "[reply] {{question}}", task_output="answer")
broken = Workflow("broken")
broken.add_variable("answer", OutputVar)
number = 7
"""


def write(folder: Path) -> Path:
    """Write `pair.flow` and `twin.py`; returns the folder."""
    (folder / "pair.flow").write_text(FLOW, encoding="utf-8")
    (folder / "two.py").write_text("from twin import broken as first, workflow as second\n", encoding="utf-8")
    (folder / "twin.py").write_text(PYTHON, encoding="utf-8")
    return folder
