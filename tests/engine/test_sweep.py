"""Every policy with each of its parts off, and every order of eviction: minutes, and the ids must not change."""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from pathlib import Path

import httpx
import pytest

from grape_dsl.encoding import TextEncoder
from sglang_ext.policy.configuration import EVICTION_ORDERS
from sglang_ext.policy.policies import policy_names
from tests.engine import extra_plugin
from tests.engine.client import run_all
from tests.engine.graphs import random_graph
from tests.engine.reference import compare
from tests.engine.scenarios import wait_for_nothing_left
from tests.engine.server import Server
from tests.engine.setting import SETTINGS, SMALL_POOL, Setting
from tests.sglang_ext.policy.recorded import parts

FLAGS = ["--enable-mixed-chunk", *SMALL_POOL]
VARIANTS = {
    **{f"{name}-without-{part}": Setting(FLAGS, name, True, 0, {"GRAPE_POLICY_OFF": part})
       for name in policy_names() for part in parts(name)},
    **{f"{name}-{order}": Setting(FLAGS, name, False, 0, {"GRAPE_EVICTION": order})
       for name in ("deadline", "budget") for order in EVICTION_ORDERS},
    "stock": Setting(FLAGS, "stock"),
    **{f"scarce-{name}": Setting(SETTINGS["scarce"].flags, name, True, 23) for name in ("paper", "budget")},
}  # fmt: skip


@pytest.mark.slow
@pytest.mark.parametrize("name", VARIANTS)
def test_ids(
    name: str,
    tiny_model: Path,
    tmp_path: Path,
    stock: Server,
    codec: TextEncoder,
    encode: Callable[[str], list[int]],
) -> None:
    graphs = [random_graph(8000 + seed, encode) for seed in range(24)]
    with VARIANTS[name].serve(tiny_model, tmp_path) as server:
        answers = run_all(server.url, graphs, at_once=16)
        compare(stock.url, graphs, answers, codec)
        wait_for_nothing_left(server)


@pytest.mark.slow
def test_ranks_that_decide_differently_end_the_server(
    tiny_model: Path, tmp_path: Path, encode: Callable[[str], list[int]]
) -> None:
    """So that the settings with two ranks can fail."""
    plugin = extra_plugin.variables(tmp_path / "plugin", "tests.engine.diverging_ranks:register")
    with Setting(["--tp-size", "2"], "deadline", environment=plugin).serve(tiny_model, tmp_path) as server:
        with contextlib.suppress(httpx.HTTPError, AssertionError):
            run_all(server.url, [random_graph(8100, encode)], at_once=1)
        server.process.wait(60)
        assert "_decide returns result" in server.log.read_text(errors="replace")
