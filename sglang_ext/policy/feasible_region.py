"""The feasible region of a step: loads whose time F keeps to the tightest SLO of the decodes in it.

Grape paper (SC 2026), section III-D: SLO_min is the tightest SLO among the highest-priority micro-tasks, and only
(N_seq, N_batch) with F <= SLO_min are taken. The running decodes are those micro-tasks. A budget between tokens
counts from a decode's last token, not from the step's start. The region bounds one step, not a request: the
deadline of a first token decides about order, and does not bound the step that works towards it.
"""

from __future__ import annotations

import math

from sglang_ext.policy.configuration import Configuration
from sglang_ext.policy.cost_model import Load
from sglang_ext.policy.snapshot import Prefill, Snapshot
from sglang_ext.policy.step_times import StepTimes


def slo_min(snapshot: Snapshot, assumed_tbt_s: float) -> float:
    """Seconds that this step may take, by the tightest deadline of its decodes that is not missed already.

    Args:
        assumed_tbt_s: for decodes without an SLO; 0 leaves them without one.

    Returns:
        Infinity where no decode has an SLO, 0 where all that have one have missed it: then the SLO cannot be met,
        and prefill gets no more than its due.
    """
    tightest = math.inf
    missed = False
    now = snapshot.now_s
    for decode in snapshot.decodes:
        tbt = decode.tbt_s if decode.tbt_s is not None else assumed_tbt_s
        if tbt <= 0:
            continue
        left = tbt if decode.last_token_s is None else decode.last_token_s + tbt - now
        if left <= 0:
            missed = True
        elif left < tightest:
            tightest = left
    return 0.0 if missed and tightest == math.inf else tightest


class Region:
    """The load of a step as it fills up, within the time that it may take.

    Args:
        limit_s: SLO_min.
    """

    def __init__(self, load: Load, times: StepTimes, limit_s: float) -> None:
        self.load = load
        self.times = times
        self.limit_s = limit_s

    @classmethod
    def of(cls, snapshot: Snapshot, times: StepTimes, configuration: Configuration) -> Region:
        """The region of a snapshot, with its decodes in it; without end if the part is off or nothing decodes."""
        limit = math.inf
        if configuration.has("region"):
            limit = slo_min(snapshot, configuration.assumed_tbt * times.model.decode_step())
        return cls(Load.of(snapshot.decodes), times, limit)

    def room(self, prefill: Prefill, given: int, most: int) -> int:
        """Tokens up to `most` that a prompt with `given` tokens in the step can still get."""
        if self.limit_s == math.inf:
            return most
        return self.times.room(self.load, prefill.context, self.limit_s, most, given)

    def left(self, most: int) -> int:
        """Tokens up to `most` that a prompt with nothing in KV can still get."""
        if self.limit_s == math.inf:
            return most
        return self.times.room(self.load, 0, self.limit_s, most)

    def take(self, prefill: Prefill, given: int, tokens: int) -> None:
        """Put tokens of a prompt into the load, behind `given` ones of it that are there."""
        self.load = self.load.plus(prefill.context, tokens, given)
