"""The edge weight: how many tokens of a streamed output make a piece.

Grape paper (SC 2026), section III-E: the smallest chunk whose cost per token is within a few percent of a large
chunk's, bounded by the SLO. A small piece is dear since each piece reads the KV before it and costs the scheduler
time of its own. In a full step, where not even that chunk is free, pieces are twice as large. A program's own edge
weight bounds it from above.
"""

from __future__ import annotations

import math

from sglang_ext.policy.configuration import Configuration
from sglang_ext.policy.cost_model import CostModel, Load
from sglang_ext.policy.snapshot import Snapshot
from sglang_ext.policy.step_times import StepTimes

WEIGHTS = (1, 2, 4, 8, 16, 32, 64)
"""The edge weights there are; outputs of most tasks are not much longer than the largest."""
LARGE = 256
"""Tokens of the chunk that the others are compared with."""


def edge_weight(model: CostModel, load: Load, limit_s: float, context: int, share: float, piece_s: float) -> int:
    """The edge weight beside a load of decodes.

    Args:
        limit_s: seconds that a step may take; infinite without an SLO.
        context: tokens in KV before a typical piece.
        share: how much dearer per token than a large chunk a piece may be, 0.05 = 5%.
        piece_s: seconds of scheduling that each piece costs.
    """
    chosen = _without_limit(model, load, context, share, piece_s)
    return _within(model, load, limit_s, context, chosen)


def _without_limit(model: CostModel, load: Load, context: int, share: float, piece_s: float) -> int:
    alone = model.time(load)

    def per_token(tokens: int) -> float:
        return (model.time(load.plus(context, tokens)) - alone + piece_s) / tokens

    most = per_token(LARGE) * (1 + share)
    chosen = next((weight for weight in WEIGHTS if per_token(weight) <= most), WEIGHTS[-1])
    if model.ridge(load, share, chosen) < chosen:
        chosen = min(2 * chosen, WEIGHTS[-1])
    return chosen


def _within(model: CostModel, load: Load, limit_s: float, context: int, chosen: int) -> int:
    """`chosen`, or the largest below it with which the step takes no longer than it may."""
    room = chosen if limit_s == math.inf else model.room(load, context, limit_s, chosen)
    if room >= chosen:
        return chosen
    return max((weight for weight in WEIGHTS if weight <= room), default=WEIGHTS[0])


class EdgeWeights:
    """The edge weight of each step, chosen anew only where the model or the steps have changed much."""

    def __init__(self, configuration: Configuration, times: StepTimes) -> None:
        self._configuration = configuration
        self._times = times
        self._model: CostModel | None = None
        self._chosen: dict[tuple[int, int], int] = {}

    def at(self, snapshot: Snapshot, load: Load) -> int:
        """The edge weight beside the snapshot's decodes, whose load is given; 1 if the part is off."""
        configuration = self._configuration
        if not configuration.has("edge_weight"):
            return 1
        if configuration.weight is not None:
            return configuration.weight
        model = self._times.model
        if model is not self._model:
            self._model = model
            self._chosen.clear()
        limit_s = min((d.tbt_s for d in snapshot.decodes if d.tbt_s is not None), default=math.inf)
        context = load.kv // load.rows if load.rows else 0
        key = load.rows.bit_length(), context.bit_length()
        # For all steps with about this load the same, whichever came first.
        rows, context = 1 << key[0] >> 1, 1 << key[1] >> 1
        typical = Load(rows, kv=rows * context)
        if key not in self._chosen:
            share, piece_s = configuration.weight_share, configuration.piece_s
            self._chosen[key] = _without_limit(model, typical, context, share, piece_s)
        return _within(model, typical, limit_s, context, self._chosen[key])
