"""The record's JSON, held against its schema."""

from __future__ import annotations

import json
from pathlib import Path

import jsonschema
import pytest

from grape_dsl.workflow import Workflow
from sglang_ext.driver.engine import Engine
from sglang_ext.driver.errors import RunFailedError
from sglang_ext.driver.record import Objective, Record, TaskSlo, json_schema
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


def figures(**values: float | None) -> dict[str, float | None]:
    return {"ttft_bound_s": None, "tbt_bound_s": None, "ttft_s": 0.2, "worst_gap_s": 0.05} | values


def test_objectives_are_met_up_to_their_bounds() -> None:
    both = TaskSlo.of(figures(ttft_bound_s=0.2, tbt_bound_s=0.049))
    assert both.ttft == Objective(bound_s=0.2, met=True)
    assert both.tbt == Objective(bound_s=0.049, met=False)
    assert (both.ttft_s, both.worst_gap_s) == (0.2, 0.05)
    none = TaskSlo.of(figures())
    assert none.ttft is None and none.tbt is None and none.worst_gap_s == 0.05


def test_a_single_token_has_no_gap_to_miss() -> None:
    assert TaskSlo.of(figures(tbt_bound_s=0.001, worst_gap_s=None)).tbt == Objective(bound_s=0.001, met=True)


def test_the_record_says_what_the_engine_measured(tokenizer_path: Path, chain: Workflow) -> None:
    with Engine(client=FakeEngine(tokenizer_path, lambda prompt: "x")) as engine:
        held = engine.run(chain, question="q")
    with Engine(client=FakeEngine(tokenizer_path, lambda prompt: "x"), streaming="off") as engine:
        off = engine.run(chain, question="q")
    for task in held.tasks.values():
        assert task.slo is not None and task.slo.ttft is not None and task.slo.tbt is not None
        assert (task.slo.ttft.met, task.slo.tbt.met) == (True, False)
    assert all(task.slo is None for task in off.tasks.values())
