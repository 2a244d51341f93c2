"""Fixed prefixes that several waiting tasks share: computed once, by the first of them."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from sglang_ext.engine.task_request import TaskRequest

# Shorter common starts, such as a chat template's, are not worth a step of waiting.
WORTH_WAITING = 32


class Twins:
    """Which requests would now compute what another one is about to publish.

    A request without a row waits while another one, its leader, computes the fixed prefix that both share; then it
    finds that prefix in the tree. It is to be looked at again when something happened to its leader.

    Args:
        offered: whether a policy is told of a request.
    """

    def __init__(self, offered: Callable[[TaskRequest], bool]) -> None:
        self._offered = offered
        # By the first ids of what they lead in.
        self._leaders: dict[bytes, TaskRequest] = {}
        # By the request ids of their leaders.
        self._followers: dict[str, list[TaskRequest]] = {}

    def waits(self, req: TaskRequest) -> bool:
        """Whether a request whose prompt is open waits for another; if not, it may lead from now on."""
        if req.kv.holds_kv:
            if self._computes_its_prefix(req):
                self._lead(req)
        elif len(req.task.prompt) >= WORTH_WAITING and not req.found_in_cache:
            leader = self._lead(req)
            if leader is not req and _shares_the_next(req, leader):
                self._followers.setdefault(leader.rid, []).append(req)
                return True
        return False

    def released(self, leader: TaskRequest) -> Iterable[TaskRequest]:
        """Something happened to this request: who waits for it, and is to be looked at again."""
        return self._followers.pop(leader.rid, ())

    def left(self, req: TaskRequest) -> None:
        """The request is told of no longer, and leads none."""
        if req.front is not None and self._leaders.get(req.front) is req:
            del self._leaders[req.front]

    def _lead(self, req: TaskRequest) -> TaskRequest:
        """Who leads in what the request begins with: itself, where there is none."""
        leader = self._leaders.get(_front(req))
        if leader is None or not self._leads(leader):
            leader = self._leaders[_front(req)] = req
        return leader

    def _leads(self, req: TaskRequest) -> bool:
        return self._computes_its_prefix(req) if req.kv.holds_kv else self._offered(req)

    @staticmethod
    def _computes_its_prefix(req: TaskRequest) -> bool:
        return len(req.task.prompt) >= WORTH_WAITING and req.prefix_len < req.task.known_prefix


def _front(req: TaskRequest) -> bytes:
    if req.front is None:
        req.front = req.task.prompt[:WORTH_WAITING].tobytes()
    return req.front


def _shares_the_next(req: TaskRequest, leader: TaskRequest) -> bool:
    """Whether what the leader computes next belongs to the request's prompt too."""
    upto = (leader.prefix_len if leader.kv.holds_kv else 0) + WORTH_WAITING
    return req.task.prompt[:upto] == leader.task.prompt[:upto]
