"""What the recorder writes of SGLang's batches: a launch, what it reads, and whose tokens left at its end."""

from __future__ import annotations

import json
from pathlib import Path
from types import SimpleNamespace

import pytest
from sglang.srt.model_executor.forward_batch_info import ForwardMode

from sglang_ext.bench.step_log import StepLog
from sglang_ext.bench.step_profiler import StepProfiler
from sglang_ext.bench.step_recorder import StepRecorder, held, kv_read, waiting


def req(rid: str, prompt: int, output: int, finished: bool = False) -> SimpleNamespace:
    return SimpleNamespace(rid=rid, origin_input_ids=[0] * prompt, output_ids=[0] * output, finished=lambda: finished)


def decode(*reqs: SimpleNamespace) -> SimpleNamespace:
    return SimpleNamespace(forward_mode=ForwardMode.DECODE, reqs=list(reqs), decoding_reqs=None, forward_iter=1)


def extend(piece: SimpleNamespace, *decoding: SimpleNamespace) -> SimpleNamespace:
    return SimpleNamespace(
        forward_mode=ForwardMode.MIXED if decoding else ForwardMode.EXTEND,
        reqs=[piece, *decoding],
        decoding_reqs=list(decoding) or None,
        prefix_lens=[64, *[0] * len(decoding)],
        extend_lens=[16, *[1] * len(decoding)],
        forward_iter=1,
    )


def test_what_a_step_reads() -> None:
    assert kv_read(decode(req("a", 10, 3), req("b", 20, 1)), []) == 34
    assert kv_read(extend(req("c", 80, 0), req("a", 10, 3)), [(64, 16)]) == 64 + 13
    assert kv_read(extend(req("c", 80, 0)), [(64, 16)]) == 64


def test_who_waits_while_a_prompt_is_computed_alone() -> None:
    running = decode(req("a", 10, 3), req("b", 20, 1, finished=True))
    assert waiting(running, extend(req("c", 80, 0)), 0) == 1
    assert waiting(decode(), extend(req("c", 80, 0), req("a", 10, 3)), 1) == 0
    assert waiting(running, running, 2) == 0


class FakeScheduler:
    """Gives a token to whoever is in its batch."""

    def __init__(self) -> None:
        self.tp_group = SimpleNamespace(rank_in_group=0)
        self.forward_ct = 0
        self.running_batch = decode()
        self.max_total_num_tokens = 1000
        self.token_to_kv_pool_allocator = SimpleNamespace(available_size=lambda: 600)
        self.tree_cache = SimpleNamespace(evictable_size=lambda: 250)

    def get_next_batch_to_run(self, batch: SimpleNamespace) -> SimpleNamespace:
        return batch

    def run_batch(self, batch: SimpleNamespace) -> None:
        self.forward_ct += 1
        batch.forward_iter = self.forward_ct

    def process_batch_result(self, batch: SimpleNamespace, result: None) -> None:
        for one in batch.reqs:
            one.output_ids.append(1)


def test_lines_of_steps(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sglang_ext.bench.step_recorder.first_line", lambda scheduler: {"threads": 2})
    file = tmp_path / "steps"
    run_batch = StepRecorder(file, StepProfiler([])).around(FakeScheduler.run_batch)
    scheduler = FakeScheduler()
    for batch in (decode(req("a", 10, 3), req("b", 20, 0)), decode(req("a", 10, 4))):
        run_batch(scheduler, scheduler.get_next_batch_to_run(batch))
        scheduler.process_batch_result(batch, None)
    lines = [json.loads(line) for line in file.read_text().splitlines()]
    assert lines[0] == {"threads": 2}
    log = StepLog(file)
    launches, ends = log.lines()
    assert [(own.step, own.decodes, own.kv, own.held) for own in launches] == [(1, 2, 33, 150), (2, 1, 14, 150)]
    assert [(end.step, end.tokens) for end in ends] == [(1, {"a": 1, "b": 1}), (2, {"a": 1})]
    assert launches[0].launch <= ends[0].end <= launches[1].launch
    # The first step was formed before anything could be timed.
    assert launches[0].plan == 0.0 < launches[1].plan
    assert held(scheduler) == 150
    log.restart()
    assert log.lines() == ([], [])
