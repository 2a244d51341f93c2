"""Record snapshots of a real engine for tests/sglang_ext/policy: `python -m tests.engine.record_snapshots`.

Runs and strangers share a small pool. Of all steps the smallest snapshot is kept whose plan a policy's part changes.
"""

from __future__ import annotations

import asyncio
import json
import random
import tempfile
from pathlib import Path
from typing import Any

from tokenizers import Tokenizer

from grape_dsl.encoding import TextEncoder
from sglang_ext.embedded_model import ensure
from sglang_ext.policy.policies import policy_names
from tests.engine import extra_plugin, snapshot_recorder
from tests.engine import tiny_model as tiny
from tests.engine.client import new_client, submit
from tests.engine.graphs import random_graph, text
from tests.engine.server import serve
from tests.engine.setting import OBJECTIVES
from tests.sglang_ext.policy.recorded import FILE, differs, parts, steps_of

RUNS, AT_ONCE = 24, 16
FLAGS = ["--enable-mixed-chunk", "--max-total-tokens", "1536", "--max-running-requests", "8"]
# Under other objectives a policy has other reasons; without any it assumes some.
ENGINES: tuple[dict[str, str], ...] = (
    {"GRAPE_POLICY": "deadline", **OBJECTIVES},
    {"GRAPE_POLICY": "deadline", "GRAPE_SLO_TTFT": "2000x", "GRAPE_SLO_TBT": "50x"},
)


def record(folder: Path, settings: dict[str, str]) -> list[dict[str, Any]]:
    """Lines of an engine under load."""
    model = tiny.make(folder / "model", Path(ensure()))
    lines = folder / "snapshots.jsonl"
    codec = TextEncoder(Tokenizer.from_file(str(model / "tokenizer.json")))
    environment = settings | {snapshot_recorder.FILE: str(lines)}
    environment |= extra_plugin.variables(folder / "plugin", "tests.engine.snapshot_recorder:register")
    with serve(model, folder / "server", FLAGS, environment=environment) as server:

        async def main() -> None:
            gate = asyncio.Semaphore(AT_ONCE)
            async with new_client() as client:

                async def run(seed: int) -> None:
                    async with gate:
                        await submit(client, server.url, random_graph(seed, codec.encode))

                async def stranger(seed: int) -> None:
                    async with gate:
                        ids = codec.encode(text(random.Random(seed), 100 + 20 * seed))
                        request = {"input_ids": ids, "sampling_params": {"max_new_tokens": 20}}
                        await client.post(f"{server.url}/generate", json=request)

                await asyncio.gather(*(run(i) for i in range(RUNS)), *(stranger(i) for i in range(RUNS // 4)))

        asyncio.run(main())
    return [json.loads(line) for line in lines.read_text().splitlines()]


def choose(lines: list[dict[str, Any]]) -> dict[str, dict[str, Any]]:
    """For each part of each policy the smallest line whose plan it changes."""
    lines = sorted(lines, key=lambda line: len(json.dumps(line)))
    found: dict[str, dict[str, Any]] = {}
    for policy in policy_names():
        for part in parts(policy):
            line = next((line for line in lines if differs(policy, part, *steps_of(line))), None)
            if line is None:
                print(f"no snapshot shows what {policy} is without {part}")
            else:
                found[f"{policy} {part}"] = line
    return found


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as name:
        recorded = [record(Path(name) / str(i), settings) for i, settings in enumerate(ENGINES)]
    chosen = choose([line for lines in recorded for line in lines])
    FILE.write_text(
        "{\n" + ",\n".join(f"{json.dumps(name)}: {json.dumps(line)}" for name, line in chosen.items()) + "\n}\n"
    )
