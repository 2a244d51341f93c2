"""Objectives of tasks through an engine: what it says of their latency, and what it refuses."""

from __future__ import annotations

import asyncio

import pytest

from sglang_ext.tasks.hint import Latency, OutputHole, Slo
from tests.engine.client import ask, body, new_client, run_all
from tests.engine.graphs import build
from tests.engine.scenarios import Encode, known, pair, wait_for_nothing_left
from tests.engine.server import Server


def test_latency_is_measured_where_steps_end(engine: Server, encode: Encode) -> None:
    slo = Slo(ttft=Latency(seconds=30.0), tbt=Latency(steps=2.5))
    long = ([known(encode, 30, 5)], {"max_new_tokens": 40, "ignore_eos": True})
    single = ([known(encode, 8, 6), OutputHole(task="a")], {"max_new_tokens": 1})
    (answers,) = run_all(engine.url, [build({"a": long, "b": single}, slo=slo)], at_once=1)
    a, b = answers["a"].figures, answers["b"].figures
    assert a["slo"]["ttft_bound_s"] == b["slo"]["ttft_bound_s"] == 30.0
    assert a["slo"]["tbt_bound_s"] > 0
    assert a["slo"]["ttft_s"] == pytest.approx(a["first_token_s"] - a["complete_s"])
    decode_s = a["end_s"] - a["first_token_s"]
    assert decode_s / 39 <= a["slo"]["worst_gap_s"] <= decode_s
    assert b["slo"]["worst_gap_s"] is None
    (plain,) = run_all(engine.url, [pair(encode, tokens=8)], at_once=1)
    assert plain["a"].figures["slo"]["ttft_bound_s"] is plain["a"].figures["slo"]["tbt_bound_s"] is None


def test_objectives_that_are_none_are_refused(engine: Server, encode: Encode) -> None:
    graph = pair(encode)

    async def main() -> str:
        async with new_client() as client:
            request = body(graph.tasks[0], graph.sampling["a"])
            request["kv_hints"]["actions"][0]["payload"]["slo"] = {"tbt": {"seconds": -1}}
            return (await ask(client, engine.url, request)).message

    message = asyncio.run(main())
    assert "slo.tbt.seconds" in message and "greater than 0" in message and "-1" in message
    wait_for_nothing_left(engine)
