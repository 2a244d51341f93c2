"""A model on the CPU platform without a scheduler: greedy ids under several settings, in a process of its own.

As a program: `python -m tests.engine.model_alone MODEL TOKENS` takes a JSON object of prompts and of modes by
name on standard input, and prints what `run` gives as its last line.
"""

from __future__ import annotations

import gc
import json
import os
import subprocess
import sys
from array import array
from collections.abc import Mapping
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[2]


def run(
    model: Path,
    prompts: list[list[int]],
    tokens: int,
    modes: Mapping[str, Mapping[str, str]],
    environment: Mapping[str, str],
) -> dict[str, dict[str, Any]]:
    """By mode: `ids`, `tokens` of them per prompt, and what was in use: `stack`, `packed`, `kernel`, `bf16`, `isa`.

    Args:
        modes: variables of each; `ATTENTION` names the attention backend.
        environment: variables of the process.
    """
    done = subprocess.run(
        [sys.executable, "-m", "tests.engine.model_alone", str(model), str(tokens)],
        input=json.dumps({"prompts": prompts, "modes": {name: dict(mode) for name, mode in modes.items()}}),
        env=os.environ | {"SGLANG_PLUGINS": "grape_cpu", "OMP_NUM_THREADS": "1"} | environment,
        cwd=ROOT,
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr[-4000:]
    found: dict[str, dict[str, Any]] = json.loads(done.stdout.splitlines()[-1])
    return found


class Alone:
    def __init__(self, model: str, attention: str | None) -> None:
        from sglang.benchmark import one_batch
        from sglang.srt.distributed.bootstrap import reset_parallel_initialised
        from sglang.srt.distributed.parallel_state import destroy_distributed_environment, destroy_model_parallel
        from sglang.srt.runtime_context import SpawnRanks, publish
        from sglang.srt.server_args import PortArgs, ServerArgs

        arguments = ServerArgs(
            model_path=model,
            dtype="float32",
            max_total_tokens=4096,
            max_running_requests=8,
            skip_tokenizer_init=False,
            attention_backend=attention,
            log_level="info",
        )
        arguments.resolve_once()
        publish(arguments, role="scheduler", ranks=SpawnRanks(world_rank=0, gpu_id=0))
        one_batch._init_process_global_configs()
        reset_parallel_initialised()
        self._runner, _ = one_batch.load_model(arguments, PortArgs.init_new(arguments), 0, 0)
        self._end = (destroy_model_parallel, destroy_distributed_environment)

    def facts(self) -> dict[str, Any]:
        import torch

        from sglang_ext.engine.cpu.defaults import has_bf16
        from sglang_ext.engine.cpu.packed_linear import PACKED

        runner = self._runner.torch_runner
        return {
            "attention": type(runner.attn_backend).__name__,
            "kernel": type(getattr(runner.attn_backend, "attention", None)).__name__,
            "bf16": has_bf16(),
            "isa": torch.backends.cpu.get_cpu_capability(),
            "packed": sum(PACKED in layer.__dict__ for layer in runner.model.modules()),
            "stack": "DenseStack" in runner.model.model.forward.__qualname__,
            "fused": runner.model.model.norm._resolve_forward_method().__name__ == "rms_norm",
        }

    def generate(self, prompts: list[list[int]], tokens: int) -> list[list[int]]:
        from sglang.benchmark.one_batch import prepare_synthetic_inputs_for_latency_test

        requests = prepare_synthetic_inputs_for_latency_test(len(prompts), 0, [array("q", ids) for ids in prompts])
        ids, _, batch = self._runner.extend(requests)
        outputs = [ids.tolist()]
        for _ in range(tokens - 1):
            ids, _ = self._runner.decode(ids, batch)
            outputs.append(ids.tolist())
        return [list(column) for column in zip(*outputs, strict=True)]

    def close(self) -> None:
        for end in self._end:
            end()


def main() -> None:
    gc.disable()
    model, tokens = sys.argv[1], int(sys.argv[2])
    task = json.load(sys.stdin)
    found = {}
    for name, mode in task["modes"].items():
        os.environ.update(mode)
        alone = Alone(model, mode.get("ATTENTION"))
        found[name] = {"ids": alone.generate(task["prompts"], tokens), **alone.facts()}
        alone.close()
        for variable in mode:
            del os.environ[variable]
    print(json.dumps(found))


if __name__ == "__main__":
    main()
