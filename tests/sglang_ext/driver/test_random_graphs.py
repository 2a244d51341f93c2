"""Random workflows: with holes or with complete ids, the engine gets the same prompts and gives the same outputs."""

from __future__ import annotations

from functools import cache
from hashlib import sha256
from pathlib import Path
from tempfile import mkdtemp
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from grape_dsl.prompt_reading import assistant, system, user
from grape_dsl.variables import InputVar, OutputVar
from grape_dsl.workflow import Workflow
from sglang_ext.driver.engine import Engine
from tests.sglang_ext.fake_engine import FakeEngine, Reply, write_tokenizer


@cache
def tokenizer() -> Path:
    return write_tokenizer(Path(mkdtemp()))


def reply(prompt: str) -> Reply | str:
    """An output that depends on the whole prompt, sometimes empty, blank or nothing but a stop string."""
    digest = sha256(prompt.encode()).digest()
    body = ["", " ", f" {digest.hex()[:6]}\n", "漢 END"[: digest[1] % 5]][digest[0] % 4]
    return Reply(body + "END", stop="END") if digest[2] % 2 else body


@st.composite
def workflows(draw: st.DrawFn) -> Workflow:
    workflow = Workflow("random")
    workflow.add_variable("given", InputVar)
    known = ["given"]
    for number in range(draw(st.integers(1, 6))):
        parts = st.one_of(
            st.sampled_from(["text ", "\n", " 漢", ""]),
            st.sampled_from(known).map("{{{{{}}}}}".format),
            st.sampled_from(known).map("{{{{strip({})}}}}".format),
        )
        turns = [user("".join(draw(st.lists(parts, max_size=4))) + f"({number})")]
        if draw(st.booleans()):
            turns.insert(0, system(draw(parts) + "."))
        if draw(st.booleans()):
            turns.append(assistant(draw(parts) + ":"))
        workflow.add_variable(f"v{number}", OutputVar)
        workflow.add_task(f"t{number}", turns, task_output=f"v{number}", stop="END")
        known.append(f"v{number}")
    return workflow


def result(workflow: Workflow, value: str, streaming: Any) -> tuple[dict[str, str], dict[str, str]]:
    fake = FakeEngine(tokenizer(), reply)
    with Engine(client=fake, streaming=streaming) as engine:
        record = engine.run(workflow, given=value)
    return record.outputs, {rid[32:]: prompt for rid, prompt in fake.prompts.items()}


@settings(max_examples=40, deadline=None)
@given(workflows(), st.sampled_from(["", " x ", "<|im_end|>", "{{v0}}"]))
def test_both_ways_are_one(workflow: Workflow, value: str) -> None:
    assert result(workflow, value, "on") == result(workflow, value, "off")
