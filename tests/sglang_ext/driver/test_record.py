"""The record's JSON, held against its schema."""

from __future__ import annotations

import json
from pathlib import Path

import jsonschema
import pytest

from grape_dsl.workflow import Workflow
from sglang_ext.driver.engine import Engine
from sglang_ext.driver.errors import RunFailedError
from sglang_ext.driver.record import Record, json_schema
from tests.sglang_ext.fake_engine import FakeEngine, Reply

SCHEMA = Path(__file__).parents[3] / "docs" / "grape.record.schema.json"


def test_the_schema_in_docs_is_that_of_the_code() -> None:
    assert json.loads(SCHEMA.read_text(encoding="utf-8")) == json_schema()


@pytest.mark.parametrize("fails", [False, True])
def test_records_follow_the_schema(tokenizer_path: Path, chain: Workflow, fails: bool) -> None:
    def script(prompt: str) -> Reply | str:
        return Reply("x", abort=(500, "no")) if fails and "[reply]" in prompt else "x"

    with Engine(client=FakeEngine(tokenizer_path, script)) as engine:
        try:
            record = engine.run(chain, question="q")
        except RunFailedError as error:
            record = error.record
    value = json.loads(record.to_json())
    jsonschema.validate(value, json.loads(SCHEMA.read_text(encoding="utf-8")))
    assert list(value) == ["outputs", "tasks", "run"]
    assert value["run"]["status"] == ("failed" if fails else "ok")
    assert Record.model_validate(value) == record
    value["tasks"]["rewrite"]["end_s"] = "late"
    with pytest.raises(jsonschema.ValidationError):
        jsonschema.validate(value, json_schema())
