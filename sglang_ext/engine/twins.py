"""Fixed prefixes that several waiting tasks share: computed once, by the first of them."""

from __future__ import annotations

from collections.abc import Sequence

from sglang_ext.engine.task_request import TaskRequest

# Shorter common starts, such as a chat template's, are not worth a step of waiting.
WORTH_WAITING = 32


def without_twins(ready: Sequence[TaskRequest], step: int) -> list[TaskRequest]:
    """The requests without those that would now compute what another one is about to publish.

    A request without a row waits while an older one computes the fixed prefix that both share; then it
    finds that prefix in the tree. One that a policy was told of is looked at again when that is told anew.
    """
    leaders: dict[bytes, TaskRequest] = {}
    fresh = []
    for req in ready:
        if req.kv.holds_kv:
            if len(req.task.prompt) >= WORTH_WAITING and req.prefix_len < req.task.known_prefix:
                leaders.setdefault(_front(req), req)
        elif req.told_until > step:
            if req.front is not None:
                leaders.setdefault(req.front, req)
        elif not (req.task.complete or len(req.task.prompt) < WORTH_WAITING or req.found_in_cache):
            fresh.append(req)
    waits = set()
    for req in fresh:
        leader = leaders.setdefault(_front(req), req)
        if leader is not req and _shares_the_next(req, leader):
            waits.add(req.rid)
    return [req for req in ready if req.rid not in waits] if waits else list(ready)


def _front(req: TaskRequest) -> bytes:
    if req.front is None:
        req.front = req.task.prompt[:WORTH_WAITING].tobytes()
    return req.front


def _shares_the_next(req: TaskRequest, leader: TaskRequest) -> bool:
    """Whether what the leader computes next belongs to the request's prompt too."""
    upto = (leader.prefix_len if leader.kv.holds_kv else 0) + WORTH_WAITING
    return req.task.prompt[:upto] == leader.task.prompt[:upto]
