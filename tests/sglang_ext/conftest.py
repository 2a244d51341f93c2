from __future__ import annotations

from pathlib import Path

import pytest

from grape_dsl.variables import InputVar, IntermediateVar, OutputVar
from grape_dsl.workflow import Workflow
from tests.sglang_ext.fake_engine import write_tokenizer


@pytest.fixture(scope="session")
def tokenizer_path(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_tokenizer(tmp_path_factory.mktemp("tokenizer"))


@pytest.fixture
def chain() -> Workflow:
    """question -> rewrite -> answer -> check, the last also reading the question."""
    workflow = Workflow("search")
    workflow.add_variable("question", InputVar)
    workflow.add_variable("tone", InputVar, default="calm")
    workflow.add_variable("query", IntermediateVar)
    workflow.add_variable("answer", OutputVar)
    workflow.add_variable("verdict", OutputVar)
    workflow.add_variable("report", OutputVar, value="{{answer}} / {{strip(verdict)}} ({{question}})")
    workflow.add_task("rewrite", "[rewrite] {{question}}", task_output="query", stop="\n")
    workflow.add_task("reply", "[reply] {{tone}}: {{query}} ?", task_output="answer", system="Be brief.")
    workflow.add_task("check", "[check] {{question}} | {{strip(answer)}}", task_output="verdict")
    return workflow
