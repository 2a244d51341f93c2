"""What the policy is told of a step: SGLang's requests and the extension's, as plain data."""

from __future__ import annotations

from operator import attrgetter
from typing import TYPE_CHECKING, Any

from sglang.srt.mem_cache.common import match_kv_cache

from sglang_ext.engine.piecewise_request import PiecewiseRequest
from sglang_ext.engine.task_request import TaskRequest
from sglang_ext.engine.twins import without_twins
from sglang_ext.policy.snapshot import Decode, Holding, Prefill, Snapshot
from sglang_ext.settings import Streaming

if TYPE_CHECKING:
    from sglang_ext.engine.held_tasks import HeldTasks


# Steps for which the expectations of a prompt that is not complete are told again, as long as it does not grow: they
# go by means of output lengths, and there can be hundreds of such prompts.
SAME_FOR = 8


class SnapshotMaker:
    """Makes a step's snapshot; equal on all ranks, as are the requests and the lead rank's clock."""

    def __init__(self, held: HeldTasks) -> None:
        self.held = held
        self.scheduler = held.scheduler
        self._known: dict[str, tuple[tuple[int, bool, int], Holding]] = {}

    def ready(self, queue: list[Any]) -> list[PiecewiseRequest]:
        """The requests that this step may prefill, oldest first; some may turn out to have nothing to prefill."""
        step, pending = self.held.step, self.held.pending
        growing = [r for r in pending.values() if r.rests_until <= step]
        # Without a radix tree nothing can be found there.
        if not self.scheduler.server_args.disable_radix_cache:
            growing = without_twins(growing, step)
        waiting = [r for r in queue if isinstance(r, PiecewiseRequest) and r.rests_until <= step]
        cut = [r for r in self.held.cut.values() if r.rests_until <= step]
        return sorted((*growing, *cut, *waiting), key=attrgetter("arrival"))

    def make(self, ready: list[PiecewiseRequest], running_batch: Any, last_batch: Any, short: bool) -> Snapshot:
        scheduler = self.scheduler
        decodes = self._decodes(running_batch, last_batch)
        chunk = scheduler.chunked_prefill_size or scheduler.max_prefill_tokens
        holding = self.held.holding()
        return Snapshot(
            now_s=self.held.now_s,
            ready=self._prefills(ready),
            decodes=decodes,
            holding=self._holding(holding),
            kv_free=scheduler.token_to_kv_pool_allocator.available_size() + scheduler.tree_cache.evictable_size(),
            rows_free=self.held.settings.max_held_rows - sum(req.growing for req in holding),
            seats_free=scheduler.max_running_requests - len(decodes),
            chunk=max(0, chunk - len(decodes)) if scheduler.is_mixed_chunk else chunk,
            page=scheduler.page_size,
            short=short,
        )

    def holding(self) -> tuple[Holding, ...]:
        """Who holds KV before it runs, oldest first."""
        return self._holding(self.held.holding())

    def _holding(self, requests: list[PiecewiseRequest]) -> tuple[Holding, ...]:
        step, known = self.held.step, self._known
        self._known = {}
        for req in requests:
            if req.rests_until > step:
                continue
            # Most hold what they held; their distances are looked at anew when a piece comes, or a decode before ends.
            state = (req.prefix_len, req.prompt_complete, self._hops(req))
            found = known.get(req.rid)
            if found is None or found[0] != state:
                tokens, complete, hops = state
                rest = self._rest(req)
                found = state, Holding(req.rid, tokens, req.arrival, complete, hops, rest, req.piece_s)
            self._known[req.rid] = found
        return tuple(holding for _, holding in self._known.values())

    def visible(self, req: PiecewiseRequest) -> int:
        """How much of the prompt may be prefilled now."""
        if not isinstance(req, TaskRequest) or req.prompt_complete:
            return len(req.origin_input_ids) + len(req.output_ids)
        settings = self.held.settings
        if settings.streaming is Streaming.OFF or req.asked_logprob_start is not None:
            return 0
        task = req.task
        known = len(task.prompt) if settings.streaming is Streaming.ON else task.known_prefix
        # What may turn out to be the prompt's last token is left for the piece that samples behind it.
        return min(known, task.certain_length - 1)

    def _prefills(self, ready: list[PiecewiseRequest]) -> tuple[Prefill, ...]:
        found = []
        step = self.held.step
        for req in ready:
            if req.told is not None and req.told_until > step:
                found.append(req.told)
            elif (prefill := self._prefill(req)) is not None:
                found.append(prefill)
                if not prefill.complete:
                    # Not all of them in the same step.
                    req.told, req.told_until = prefill, step + SAME_FOR + req.arrival % SAME_FOR
        return tuple(found)

    def _prefill(self, req: PiecewiseRequest) -> Prefill | None:
        visible = self.visible(req)
        context = req.prefix_len if req.kv.holds_kv else self._found(req, visible)
        if visible <= context:
            # Until more of it is known.
            self.held.pending.pop(req.rid, None)
            return None
        complete = req.prompt_complete
        to_come = 0
        run, stalled = req.rid, bool(req.output_ids)
        if self.held.ticked:
            req.see(self.held.now_s)
        since_s = req.ready_s if complete else req.arrived_s
        since_s = self.held.now_s if since_s is None else since_s
        ttft, _ = self.held.objectives.of(req)
        if isinstance(req, TaskRequest) and req.has_task:
            run = req.task.hint.run
            stalled = stalled or (complete and self.held.has_produced(run))
            to_come = 0 if complete else self.held.distances.to_come(req.task, visible)
        deadline_s = since_s + ttft if complete and ttft is not None else None
        return Prefill(
            rid=req.rid,
            run=run,
            order=req.arrival,
            pending=visible - context,
            context=context,
            has_row=req.kv.holds_kv,
            complete=complete,
            stalled=stalled,
            hops=self._hops(req),
            to_come=to_come,
            rest_steps=self._rest(req),
            since_s=since_s,
            deadline_s=deadline_s,
            waited=req.waited,
        )

    def _found(self, req: PiecewiseRequest, visible: int) -> int:
        """How much of a prompt without a row the cache has; looked up once, and counted up by its siblings' finds."""
        if req.found_in_cache is None:
            match_kv_cache(req, self.scheduler.tree_cache, max_prefix_len=visible - 1)
            req.found_in_cache = req.num_matched_prefix_tokens
        return req.found_in_cache

    def _decodes(self, running_batch: Any, last_batch: Any) -> tuple[Decode, ...]:
        """Rows that decode next: after a prefill or a mixed step SGLang merges the last batch in later."""
        rows = {id(req): req for req in running_batch.reqs}
        if last_batch is not None and last_batch.forward_mode.is_extend():
            chunked = self.scheduler.chunked_req
            rows.update((id(req), req) for req in last_batch.reqs if req is not chunked)
        decodes = []
        for req in rows.values():
            if req.finished():
                continue
            context = len(req.origin_input_ids) + len(req.output_ids)
            if not isinstance(req, PiecewiseRequest):
                decodes.append(Decode(req.rid, req.rid, context))
                continue
            if self.held.ticked:
                req.see(self.held.now_s)
            run = req.task.hint.run if isinstance(req, TaskRequest) and req.has_task else req.rid
            _, tbt = self.held.objectives.of(req)
            decodes.append(Decode(req.rid, run, context, req.token_s, tbt))
        return tuple(decodes)

    def _hops(self, req: PiecewiseRequest) -> int:
        return self.held.distances.hops(req.task) if _open(req) else 0

    def _rest(self, req: PiecewiseRequest) -> float:
        return self.held.distances.rest(req.task) if _open(req) else 0.0


def _open(req: PiecewiseRequest) -> bool:
    return isinstance(req, TaskRequest) and not req.prompt_complete
