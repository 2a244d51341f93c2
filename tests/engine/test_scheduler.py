"""The scheduler's overrides and their neighbours, without an engine."""

from __future__ import annotations

from array import array
from types import SimpleNamespace
from typing import Any

import pytest
from sglang.srt.managers.io_struct import AbortReq
from sglang.srt.managers.schedule_batch import FINISH_ABORT, FINISH_MATCHED_STR
from sglang.srt.managers.scheduler import Scheduler
from sglang.srt.sampling.sampling_params import SamplingParams

from sglang_ext.engine import early_kv, intake
from sglang_ext.engine.event_log import EventLog
from sglang_ext.engine.held_tasks import HeldTasks
from sglang_ext.engine.scheduler import GrapeScheduler
from sglang_ext.engine.task_request import TaskRequest
from sglang_ext.settings import EngineSettings
from sglang_ext.tasks.hint import Known, OutputHole, TaskHint, envelope, new_run_id, request_id
from sglang_ext.tasks.state import TaskState

VOCAB = 100


@pytest.fixture
def scheduler() -> Any:
    """A GrapeScheduler that was never started."""
    made: Any = GrapeScheduler.__new__(GrapeScheduler)
    made.waiting_queue, made.retired = [], []
    made.tokenizer = None
    made.model_config = SimpleNamespace(vocab_size=VOCAB, context_len=1000)
    made.max_req_input_len, made.processed_tokens_counter = 900, 0
    made.tree_cache = None
    made.enable_overlap, made.device = False, "cpu"
    made.enable_priority_scheduling = made.abort_on_priority_when_disabled = False
    made.retire_unadmitted_request = made.retired.append
    made.held = HeldTasks(made, EngineSettings(max_held=2, profile="off"), EventLog(""))
    return made


def request(index: int = 0, run: str | None = None, ids: list[int] | None = None, **params: Any) -> TaskRequest:
    """A task that reads another, as it comes to the scheduler."""
    segments = [Known(ids=ids or [1, 2]), OutputHole(task="upstream")]
    hint = TaskHint(run=run or new_run_id(), task=f"t{index}", index=index, tasks=9, segments=segments)
    sampling = SamplingParams(max_new_tokens=4, **params)
    sampling.normalize(SimpleNamespace(encode=lambda text, add_special_tokens: [0] * len(text)))
    req = TaskRequest(request_id(hint.run, index), "", array("q", [1, 2]), sampling, vocab_size=VOCAB)
    actions = [SimpleNamespace(**action) for action in envelope(hint)["actions"]]
    req.kv_hints = SimpleNamespace(actions=actions)
    return req


def other(rid: str, priority: int = 0) -> Any:
    stats = SimpleNamespace(wait_queue_entry_time=0.0, trace_ctx=SimpleNamespace(abort=lambda abort_info: None))
    return SimpleNamespace(rid=rid, priority=priority, time_stats=stats)


@pytest.fixture(autouse=True)
def no_engine(monkeypatch: pytest.MonkeyPatch) -> None:
    """One rank, and nothing in the cache."""
    monkeypatch.setattr(intake, "match_kv_cache", lambda req, tree_cache, max_prefix_len: None)
    monkeypatch.setattr("sglang.srt.managers.schedule_batch.get_parallel", lambda: SimpleNamespace(tp_rank=0))
    monkeypatch.setattr("sglang.srt.managers.scheduler._make_abort_req", lambda req, finished_reason: None)


def failures(scheduler: Any) -> list[tuple[str, str, int]]:
    found: list[tuple[str, str, int]] = scheduler.held._failures
    return found


@pytest.mark.parametrize("token", [VOCAB, 2**63, 2**64])
def test_ids_outside_the_vocabulary_are_refused(scheduler: Any, token: int) -> None:
    req = request(ids=[1, token])
    assert scheduler.held.accept(req)
    assert scheduler.retired == [req]
    assert f"segment 0 has token id {token}" in req.to_finish.message
    assert req.to_finish.status_code == 400
    assert [(status, token > 0) for _, _, status in failures(scheduler)] == [(400, True)]


def test_negative_ids_are_refused(scheduler: Any) -> None:
    req = request()
    req.kv_hints.actions[0].payload["segments"][0]["ids"] = [1, -1]
    assert scheduler.held.accept(req)
    assert "greater than or equal to 0" in req.to_finish.message


def test_ids_of_its_own_that_contradict_its_hint_are_refused(scheduler: Any) -> None:
    req = request(ids=[1, 3])
    assert scheduler.held.accept(req)
    assert scheduler.retired == [req]
    assert "first segment, 2 ids [1, 3]" in req.to_finish.message
    assert "got 2 ids [1, 2]" in req.to_finish.message
    assert req.to_finish.status_code == 400
    assert [status for _, _, status in failures(scheduler)] == [400]
    assert set(scheduler.held.counts().values()) == {0}


def test_a_stop_regex_is_refused(scheduler: Any) -> None:
    req = request(stop_regex="a+")
    assert scheduler.held.accept(req)
    assert "stop_regex" in req.to_finish.message


def test_what_nobody_foresaw_ends_one_request(scheduler: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(held: Any, req: Any) -> None:
        raise OverflowError("a surprise")

    with monkeypatch.context() as patch:
        patch.setattr(intake, "_note_cached", fail)
        req = request()
        assert scheduler.held.accept(req)
    assert scheduler.retired == [req]
    assert "OverflowError('a surprise')" in req.to_finish.message
    assert req.to_finish.status_code == 500
    assert not scheduler.held.requests
    scheduler.held.end_run(*failures(scheduler)[0])
    assert set(scheduler.held.counts().values()) == {0}
    assert scheduler.held.accept(request())
    assert len(scheduler.held.growing) == 1


def test_an_abort_that_overtakes_its_task_ends_the_run(scheduler: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Scheduler, "abort_request", lambda self, recv_req: None)
    run = new_run_id()
    scheduler.abort_request(AbortReq(rid=request_id(run, 0)))
    for index in (1, 0):
        late = request(index, run)
        assert scheduler.held.accept(late)
        assert "has ended: it was cancelled before" in late.to_finish.message
    assert set(scheduler.held.counts().values()) == {0}


def test_an_abort_that_comes_too_late_or_from_a_stranger_ends_no_run(
    scheduler: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Scheduler, "abort_request", lambda self, recv_req: None)
    run = new_run_id()
    ended = request(0, run)
    assert scheduler.held.accept(ended)
    del scheduler.held.requests[ended.rid], scheduler.held.growing[ended.rid]
    for rid in (ended.rid, "mine"):
        scheduler.abort_request(AbortReq(rid=rid))
    assert scheduler.held.accept(request(1, run))
    assert len(scheduler.held.growing) == 1


def test_only_so_many_tasks_are_held(scheduler: Any) -> None:
    for _ in range(2):
        assert scheduler.held.accept(request())
    late = request()
    assert scheduler.held.accept(late)
    assert scheduler.retired == [late]
    assert "GRAPE_MAX_HELD" in late.to_finish.message
    assert late.to_finish.status_code == 503
    assert len(scheduler.held.growing) == len(scheduler.held.requests) == 2


def test_a_step_takes_back_what_it_offered_and_no_more(scheduler: Any) -> None:
    """Not the state decides: a request that is not held is SGLang's to answer."""
    kept, refused = request(), request()
    scheduler.held.accept(kept)
    scheduler.held.accept(refused)
    del scheduler.held.growing[refused.rid]
    assert refused.task.state is TaskState.HELD
    scheduler.waiting_queue = [kept, refused]
    scheduler.held.end_step(None)
    assert scheduler.waiting_queue == [refused]


@pytest.mark.parametrize(("limit", "refused"), [(1, True), (2, False)])
def test_offered_pieces_are_no_queue(scheduler: Any, limit: int, refused: bool) -> None:
    pieces = [request(), request()]
    for piece in pieces:
        scheduler.held.accept(piece)
    told = []
    scheduler.send_abort_output = lambda abort_req, req: told.append(req.rid)
    scheduler.max_queued_requests = limit
    queue = [pieces[0], other("first"), pieces[1]]
    scheduler.waiting_queue = list(queue)
    assert scheduler._abort_on_queued_limit(other("second")) is refused
    assert scheduler.waiting_queue == queue
    assert told == (["second"] if refused else [])


def test_an_offered_piece_is_not_thrown_out_for_a_higher_priority(scheduler: Any) -> None:
    piece = request()
    scheduler.held.accept(piece)
    piece.priority = -100
    told = []
    scheduler.send_abort_output = lambda abort_req, req: told.append(req.rid)
    scheduler._release_aborted_request = lambda req: None
    scheduler.beam_coordinator = SimpleNamespace(retire_group=lambda req: None)
    scheduler.max_queued_requests, scheduler.enable_priority_scheduling = 1, True
    scheduler.schedule_low_priority_values_first = False
    scheduler.waiting_queue = [piece, other("low", 1)]
    assert not scheduler._abort_on_queued_limit(other("high", 2))
    assert scheduler.waiting_queue == [piece]
    assert told == ["low"]


def test_waiting_tasks_do_not_keep_a_paused_engine_busy(scheduler: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Scheduler, "is_fully_idle", lambda self, for_health_check, ignore_waiting: True)
    assert scheduler.is_fully_idle()
    req = request()
    scheduler.held.accept(req)
    assert not scheduler.is_fully_idle()
    assert scheduler.is_fully_idle(ignore_waiting=True)
    assert scheduler.is_fully_idle(for_health_check=True)
    scheduler.held.growing[req.rid] = SimpleNamespace(kv=SimpleNamespace(holds_kv=True))
    assert not scheduler.is_fully_idle(ignore_waiting=True)


def test_a_time_that_came_with_the_last_tasks_end_is_none_of_a_later_step(
    scheduler: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Scheduler, "get_next_batch_to_run", lambda self, running_batch, last_batch: None)
    scheduler.chunked_req = None
    scheduler.held.tick(5.0)
    scheduler.get_next_batch_to_run(SimpleNamespace(reqs=[]), None)
    assert not scheduler.held.ticked


def test_a_prompt_that_gives_up_its_kv_is_in_the_queue_once(scheduler: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sglang_ext.engine.early_kv.release_kv_cache", lambda req, tree_cache, checkpoint: None)
    monkeypatch.setattr(TaskRequest, "reset_for_retract", lambda self: None)
    for offered in ([], [(req := request())]):
        req = offered[0] if offered else request()
        scheduler.held.cut[req.rid], req.cut = req, True
        scheduler.waiting_queue = list(offered)
        early_kv.give_up(scheduler, req)
        assert scheduler.waiting_queue == [req] and not req.cut


@pytest.mark.parametrize("flushed", [True, False])
def test_a_flush_forgets_what_was_found_in_the_cache(
    scheduler: Any, flushed: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Scheduler, "flush_cache", lambda self, empty_cache: flushed)
    req = request()
    scheduler.held.accept(req)
    req.found_in_cache = 2
    assert scheduler.flush_cache() is flushed
    assert req.found_in_cache == (None if flushed else 2)


def test_logits_that_are_no_numbers_fail_the_task() -> None:
    req = request(stop=["NaN"])
    req.output_ids.append(-5)
    req.update_finish_state()
    assert isinstance(req.finished_reason, FINISH_ABORT)
    assert req.finished_reason.status_code == 500
    assert "NaN happened" in req.finished_reason.message


def test_a_stop_string_is_no_failure() -> None:
    req = request(stop=["NaN"])
    req.tokenizer = SimpleNamespace(decode=lambda ids, **options: "NaN")
    req.output_ids.append(5)
    req.update_finish_state()
    assert isinstance(req.finished_reason, FINISH_MATCHED_STR)
