"""A scheduler's steps without an engine: real requests, tasks and policies, and a batch that takes what is planned.

What SGLang does of a step is imitated as far as decisions depend on it: it takes the queue in order, its rows give a
token each, and a step lasts as long as a cost model says.
"""

from __future__ import annotations

from array import array
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import pytest
from sglang.srt.managers.schedule_batch import FINISH_LENGTH
from sglang.srt.sampling.sampling_params import SamplingParams

from sglang_ext.engine import early_kv
from sglang_ext.engine.event_log import EventLog
from sglang_ext.engine.held_tasks import HeldTasks
from sglang_ext.engine.prefill_adder import TaskPrefillAdder
from sglang_ext.engine.scheduler import GrapeScheduler
from sglang_ext.engine.task_request import TaskRequest
from sglang_ext.policy.cost_model import CostModel
from sglang_ext.settings import EngineSettings
from sglang_ext.tasks.hint import Known, OutputHole, TaskHint, envelope, new_run_id, request_id

VOCAB, POOL, CHUNK, WEIGHT = 1000, 1_000_000, 512, 16
CPU = CostModel(fixed=0.042, row=0.0015, token=0.00135)


class Stepped:
    """A GrapeScheduler that was never started, and steps that run nothing.

    Args:
        rows: requests that decode side by side at most.
    """

    def __init__(self, monkeypatch: pytest.MonkeyPatch, rows: int, **settings: Any) -> None:
        _without_engine(monkeypatch)
        self.free, self.now_s, self.arrivals = POOL, 100.0, 0
        made: Any = GrapeScheduler.__new__(GrapeScheduler)
        made.waiting_queue, made.tokenizer, made.chunked_req = [], None, None
        made.model_config = SimpleNamespace(vocab_size=VOCAB, context_len=8192)
        made.max_req_input_len, made.max_new_tokens_limit, made.processed_tokens_counter = 8000, None, 0
        made.max_total_num_tokens, made.max_req_len = POOL, 8192
        made.server_args = SimpleNamespace(disable_radix_cache=False)
        made.tree_cache = SimpleNamespace(evictable_size=lambda: 0)
        made.token_to_kv_pool_allocator = SimpleNamespace(available_size=lambda: self.free)
        made.enable_overlap, made.device, made.is_mixed_chunk, made.page_size = False, "cpu", True, 1
        made.chunked_prefill_size, made.max_prefill_tokens, made.max_running_requests = CHUNK, 8192, rows
        made.enable_priority_scheduling = made.abort_on_priority_when_disabled = False
        made.init_req_max_new_tokens = lambda req: None
        made.held = self.held = HeldTasks(made, EngineSettings(profile="off", **settings), EventLog(""))
        self.scheduler = made
        self.running: list[Any] = []
        self.last: Any = None
        bound: Any = type("Adder", (TaskPrefillAdder,), {"held": self.held})
        self.adder = bound.__new__(bound)
        self.decided: Callable[[Callable[[], None]], None] = lambda decide: decide()
        """Runs what a step decides; to be replaced by who counts it."""

    def submit(self, tasks: list[tuple[list[Known | OutputHole], int]], run: str | None = None) -> list[TaskRequest]:
        """The tasks t0, t1 and so on of a run, each with its segments and the length of its output."""
        run = run or new_run_id()
        requests = []
        for index, (segments, length) in enumerate(tasks):
            hint = TaskHint(run=run, task=f"t{index}", index=index, tasks=len(tasks), segments=segments)
            sampling = SamplingParams(max_new_tokens=length, ignore_eos=True)
            sampling.normalize(SimpleNamespace(encode=lambda text, add_special_tokens: [0]))
            ids = array("q", segments[0].ids if isinstance(segments[0], Known) else [0])
            req = TaskRequest(request_id(run, index), "", ids, sampling, vocab_size=VOCAB)
            req.kv_hints = SimpleNamespace(actions=[SimpleNamespace(**a) for a in envelope(hint)["actions"]])
            req.arrival, self.arrivals = self.arrivals, self.arrivals + 1
            req.kv = SimpleNamespace(holds_kv=False, kv_committed_len=0)
            req.time_stats = SimpleNamespace(set_wait_queue_entry_time=lambda: None)
            requests.append(req)
            if not self.held.accept(req):
                assert not req.finished() and req.to_finish is None, req.finished_reason
                self.scheduler.waiting_queue.append(req)
        return requests

    def step(self) -> None:
        """One step, its forward included."""
        held, running = self.held, SimpleNamespace(reqs=self.running, batch_is_full=False)
        held.tick(self.now_s)

        def decide() -> None:
            early_kv.absorb(self.scheduler, self.last)
            held.begin_step(running, self.last)

        self.decided(decide)
        if self.last is not None:
            self.running += [req for req in self.last.reqs if req not in self.running]
        self.running = [req for req in self.running if not req.finished()]
        pieces = [req for req in list(self.scheduler.waiting_queue) if self._takes(req)]
        decoding = list(self.running)
        mode = SimpleNamespace(is_extend=lambda: bool(pieces))
        batch = SimpleNamespace(reqs=[*pieces, *decoding], decoding_reqs=decoding, forward_mode=mode, chunked_req=None)
        batch.filter_batch = self._filter
        self.last = batch if batch.reqs else None
        self.decided(lambda: held.end_step(self.last))
        self.now_s += CPU.predict((), ((0, req.extend_len) for req in pieces)) + CPU.row * len(decoding)
        for req in decoding:
            req.kv.kv_committed_len += 1
        for req in batch.reqs:
            if not req.middle_in_flight:
                req.output_ids.append(7)
                if len(req.output_ids) >= req.sampling_params.max_new_tokens:
                    self._finish(req)

    def _takes(self, req: TaskRequest) -> bool:
        """Launch what the plan allows of a request."""
        visible = self.held.told.visible(req)
        end = min(visible, req.prefix_len + self.held.planner.allowance(req), req.prefix_len + CHUNK)
        last = req.prompt_complete and end == visible
        if req.prefix_len >= end or (last and len(self.running) >= self.scheduler.max_running_requests):
            return False
        self.scheduler.waiting_queue.remove(req)
        req.kv.holds_kv = True
        req.extend_end = req.kv.kv_committed_len = end
        self.free -= end - req.prefix_len
        self.adder._launch(req, visible)
        return True

    def _filter(self, reqs_to_exclude: list[Any]) -> None:
        self.last.reqs = [req for req in self.last.reqs if req not in reqs_to_exclude]

    def _finish(self, req: TaskRequest) -> None:
        req.finished_reason = FINISH_LENGTH(len(req.output_ids))
        req.kv.holds_kv = False
        self.free += len(req.origin_input_ids)


def chain(tasks: int, known: int, length: int, first: int) -> list[tuple[list[Known | OutputHole], int]]:
    """Tasks that read each the one before; no two of them begin alike if `first` differs.

    Args:
        known: tokens of fixed text in front of the hole.
        length: of each output.
    """
    found: list[tuple[list[Known | OutputHole], int]] = []
    for index in range(tasks):
        ids = [(first + 7 * index + i * i) % VOCAB for i in range(known)]
        late: list[Known | OutputHole] = [OutputHole(task=f"t{index - 1}", weight=WEIGHT), Known(ids=[1, 2, 3, 4, 5])]
        found.append(([Known(ids=ids), *(late if index else [])], length))
    return found


def _without_engine(monkeypatch: pytest.MonkeyPatch) -> None:
    """One rank, a cache that has nothing, and no tokenizer."""

    def find_nothing(req: Any, tree_cache: Any, max_prefix_len: int) -> None:
        req.num_matched_prefix_tokens = 0

    def publish(req: Any, tree_cache: Any) -> None:
        req.prefix_len = req.extend_end

    monkeypatch.setattr("sglang_ext.engine.intake.match_kv_cache", find_nothing)
    monkeypatch.setattr("sglang_ext.engine.told_prompts.match_kv_cache", find_nothing)
    monkeypatch.setattr("sglang_ext.engine.early_kv.checkpoint_kv_cache", publish)
    monkeypatch.setattr("sglang_ext.engine.output_streams.codec", lambda tokenizer: None)
    monkeypatch.setattr("sglang_ext.tasks.streaming_output.SettledText", lambda codec: None)
    monkeypatch.setattr("sglang.srt.managers.schedule_batch.get_parallel", lambda: SimpleNamespace(tp_rank=0))
