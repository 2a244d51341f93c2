"""What a policy is told of prompts, kept from step to step: a step looks at those alone that something happened to."""

from __future__ import annotations

from collections.abc import Iterable
from operator import attrgetter
from typing import TYPE_CHECKING, Any

from sglang.srt.mem_cache.common import match_kv_cache

from sglang_ext.engine.by_arrival import ByArrival
from sglang_ext.engine.piecewise_request import PiecewiseRequest
from sglang_ext.engine.task_request import TaskRequest
from sglang_ext.engine.twins import Twins
from sglang_ext.policy.snapshot import Holding, Prefill
from sglang_ext.settings import Streaming

if TYPE_CHECKING:
    from sglang_ext.engine.held_tasks import HeldTasks

# Steps for which the expectations of a prompt are told again, as long as nothing happens to it: they go by means of
# output lengths, and there can be hundreds of such prompts.
SAME_FOR = 8

_by_arrival = attrgetter("arrival")
_by_order = attrgetter("order")


class ToldPrompts:
    """Prompts with tokens to prefill, and who holds KV before it runs; equal on all ranks, as are the requests."""

    def __init__(self, held: HeldTasks) -> None:
        self.held = held
        # Prompts looked at so far, for the tests of what a step costs.
        self.looks = 0
        self._open: ByArrival[Prefill] = ByArrival()
        self._holding: ByArrival[Holding] = ByArrival()
        self._holders: dict[int, PiecewiseRequest] = {}
        self._rows: set[int] = set()
        self._changed: dict[PiecewiseRequest, None] = {}
        # By the step in which their expectations are to be told anew.
        self._due: dict[int, list[PiecewiseRequest]] = {}
        self._twins = Twins(lambda req: req.arrival in self._open)

    def changed(self, req: PiecewiseRequest) -> None:
        """What a policy was told of a request may no longer be so."""
        req.told_until = 0
        self._changed[req] = None

    def ready(self, queue: Iterable[Any]) -> tuple[Prefill, ...]:
        """What this step may prefill, oldest first.

        Args:
            queue: SGLang's, whose requests are complete.
        """
        self._look()
        held, step, complete = self.held, self.held.step, []
        for req in (*held.whole.values(), *held.cut.values(), *queue):
            if not isinstance(req, PiecewiseRequest) or req.rests_until > step:
                continue
            told = req.told if req.told_until > step and self._still(req) else self._tell_complete(req)
            if told is not None:
                complete.append(told)
        waiting = self._open.all()
        return tuple(sorted((*waiting, *complete), key=_by_order)) if complete else waiting

    def holding(self) -> tuple[Holding, ...]:
        """Who holds KV before it runs, oldest first."""
        self._look()
        return self._holding.all()

    def holders(self) -> list[PiecewiseRequest]:
        """The requests of those that hold KV, oldest first."""
        self._look()
        return sorted(self._holders.values(), key=_by_arrival)

    @property
    def rows(self) -> int:
        """How many tasks hold KV before they run."""
        return len(self._rows)

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

    def _look(self) -> None:
        """Look at the requests that something happened to since it was done last."""
        step = self.held.step
        changed, self._changed = self._changed, {}
        for req in self._due.pop(step, ()):
            if req.told_until == step or req.rests_until == step:
                changed[req] = None
        if (runs := self.held.table.take_changed()) and self._holders:
            # Others are nearer now to their turn.
            changed.update((req, None) for req in self._holders.values() if req.run_id in runs)
        while changed:
            released: dict[PiecewiseRequest, None] = {}
            for req in sorted(changed, key=_by_arrival):
                self.looks += 1
                self._look_at_kv(req)
                if isinstance(req, TaskRequest):
                    self._look_at(req)
                    released.update((other, None) for other in self._twins.released(req))
            changed = released

    def _look_at_kv(self, req: PiecewiseRequest) -> None:
        arrival = req.arrival
        if not (self.held.holds(req) and req.kv.holds_kv):
            self._holding.drop(arrival)
            self._holders.pop(arrival, None)
            self._rows.discard(arrival)
            return
        hops, rest = self._distance(req)
        told = Holding(req.rid, req.prefix_len, arrival, req.prompt_complete, hops, rest, req.piece_s)
        self._holding.put(arrival, told)
        self._holders[arrival] = req
        if req.growing:
            self._rows.add(arrival)
        else:
            self._rows.discard(arrival)

    def _look_at(self, req: TaskRequest) -> None:
        """Tell of an open prompt as it is now, or no longer."""
        held, step = self.held, self.held.step
        prefill = None
        if held.pending.get(req.rid) is req and not req.task.complete:
            if req.rests_until > step:
                self._due.setdefault(req.rests_until, []).append(req)
            elif held.scheduler.server_args.disable_radix_cache or not self._twins.waits(req):
                # Without a radix tree nothing can be found there.
                prefill = self._tell(req)
        if prefill is None:
            self._open.drop(req.arrival)
            self._twins.left(req)
            return
        self._open.put(req.arrival, prefill)
        # The farther its turn the seldomer, and not all of them in the same step.
        same_for = max(SAME_FOR, int(prefill.rest_steps / SAME_FOR))
        req.told_until = step + same_for + req.arrival % SAME_FOR
        self._due.setdefault(req.told_until, []).append(req)

    def _still(self, req: PiecewiseRequest) -> bool:
        """Whether what was told of a complete prompt still is so, its time of waiting aside."""
        told = req.told
        return (
            told is not None
            and told.pending + told.context == len(req.origin_input_ids) + len(req.output_ids)
            and told.has_row is req.kv.holds_kv
            and (told.stalled or not self.held.table.has_produced(req.run_id))
        )

    def _tell_complete(self, req: PiecewiseRequest) -> Prefill | None:
        told = self._tell(req)
        # How long it has waited decides about what it is due, at first.
        if told is not None and told.waited >= SAME_FOR:
            req.told, req.told_until = told, self.held.step + SAME_FOR
        return told

    def _tell(self, req: PiecewiseRequest) -> Prefill | None:
        held = self.held
        visible = self.visible(req)
        holds_kv = req.kv.holds_kv
        context = req.prefix_len if holds_kv else self._found(req, visible)
        if visible <= context:
            # Until more of it is known.
            held.pending.pop(req.rid, None)
            return None
        complete = req.prompt_complete
        if held.ticked:
            req.see(held.now_s)
        since_s = req.ready_s if complete else req.arrived_s
        since_s = held.now_s if since_s is None else since_s
        stalled = bool(req.output_ids) or (complete and held.table.has_produced(req.run_id))
        deadline_s = None
        to_come, hops, rest, weight = 0, 0, 0.0, 1
        if complete:
            ttft, tbt = held.objectives.of(req)
            bound = tbt if stalled else ttft
            deadline_s = None if bound is None else since_s + bound
        elif isinstance(req, TaskRequest):
            to_come = held.distances.to_come(req.task, visible)
            hops, rest = self._distance(req)
            weight = hole.weight if (hole := req.task.open_hole) is not None else 1
        if req.waits_from is None:
            req.waits_from = held.step
        return Prefill(
            req.rid,
            req.run_id,
            req.arrival,
            visible - context,
            context,
            holds_kv,
            complete,
            stalled,
            hops,
            to_come,
            rest,
            since_s,
            deadline_s,
            max(0, held.step - req.waits_from),
            weight,
        )

    def _found(self, req: PiecewiseRequest, visible: int) -> int:
        """How much of a prompt without a row the cache has; looked up once, and counted up by its siblings' finds."""
        if req.found_in_cache is None:
            match_kv_cache(req, self.held.scheduler.tree_cache, max_prefix_len=visible - 1)
            req.found_in_cache = req.num_matched_prefix_tokens
        return req.found_in_cache

    def _distance(self, req: PiecewiseRequest) -> tuple[int, float]:
        """Hops and expected steps until the prompt is complete."""
        if not isinstance(req, TaskRequest) or req.prompt_complete:
            return 0, 0.0
        distances = self.held.distances
        return distances.hops(req.task), distances.rest(req.task)
