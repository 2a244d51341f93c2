"""SGLang's own adder and budget over a pool that is nearly full, without an engine."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest
from sglang.srt.managers.schedule_policy import AddReqResult
from sglang.srt.mem_cache.prefill_budget import PrefillBudget

from sglang_ext.engine.prefill_adder import TaskPrefillAdder
from sglang_ext.settings import Streaming
from tests.engine.stepped import Stepped, chain

ROWS, HELD = 3, 20


def adder_with(stepped: Stepped, free: int, page: int = 1) -> Any:
    """An adder for a step with some decodes in it, which may write 10 tokens each."""
    row = SimpleNamespace(sampling_params=SimpleNamespace(max_new_tokens=10, ignore_eos=True), output_ids=[])
    tree = SimpleNamespace(evictable_size=lambda: 0, supports_mamba=lambda: False, supports_prefix_sharing=lambda: True)
    pool = SimpleNamespace(page_size=page, available_size=lambda: free, request_slot_reserve=lambda **_: 0)
    pool.create_prefill_budget = lambda tree, num_mixed_decode_tokens: PrefillBudget(
        pool, tree, num_mixed_decode_tokens=num_mixed_decode_tokens
    )
    bound: Any = type("Adder", (TaskPrefillAdder,), {"held": stepped.held})
    batch = SimpleNamespace(reqs=[row] * ROWS)
    return bound(page, tree, pool, batch, 1.0, 8192, 512, num_mixed_decode_tokens=ROWS)


def waiting(monkeypatch: pytest.MonkeyPatch, complete: bool) -> tuple[Stepped, Any]:
    """A task behind a writing one, with KV of the first part of its prompt."""
    stepped = Stepped(monkeypatch, 1, streaming=Streaming.ON)
    writer, reader = stepped.submit(chain(2, 60, 40, 1))
    req = writer if complete else reader
    req.kv, req.prefix_len = SimpleNamespace(holds_kv=True, req_pool_idx=0), HELD
    req.init_next_round_input()
    if complete:
        stepped.held.cut[req.rid] = req
        req.cut = True
    return stepped, req


@pytest.mark.parametrize("complete", [False, True])
@pytest.mark.parametrize(
    ("free", "planned", "taken"),
    [
        (ROWS, False, 0),
        (ROWS, True, 0),
        (ROWS + 7, True, 7),
        # What decodes may still write does not cut a planned piece.
        (ROWS + 10 * ROWS + 3, True, 30),
        (ROWS + 10 * ROWS, False, 0),
        (ROWS + 10 * ROWS + 7, False, 7),
    ],
)
def test_a_prompt_that_holds_kv_gets_no_more_than_there_is(
    monkeypatch: pytest.MonkeyPatch, complete: bool, free: int, planned: bool, taken: int
) -> None:
    stepped, req = waiting(monkeypatch, complete)
    planner = stepped.held.planner
    planner.planned = planned
    planner._allowances = {req.rid: 30}
    adder = adder_with(stepped, free)
    result = adder.add_one_req(req, False, None)
    assert sum(each.extend_len for each in adder.can_run_list) == taken
    if not taken:
        # A complete one makes the others yield, and none goes before it; an early one is in nobody's way.
        assert result == (AddReqResult.NO_TOKEN if complete else AddReqResult.CONTINUE)
        assert planner.short is complete


def test_where_no_row_is_free_those_that_hold_one_go_on(monkeypatch: pytest.MonkeyPatch) -> None:
    """As SGLang's own chunked prompt; it would form no prefill at all, and a cut prompt could wait for ever."""
    stepped, req = waiting(monkeypatch, complete=True)
    scheduler, planner = stepped.scheduler, stepped.held.planner
    free = 0
    scheduler.req_to_token_pool = SimpleNamespace(available_size=lambda: free)
    scheduler.beam_coordinator = SimpleNamespace(pending_member_rows=lambda batch: 0)
    scheduler.running_batch = None
    parallel = SimpleNamespace(pp_max_micro_batch_size=8)
    monkeypatch.setattr("sglang.srt.managers.scheduler.get_parallel", lambda: parallel)
    (fresh,) = stepped.submit(chain(1, 40, 5, 500))
    fresh.init_next_round_input()
    assert scheduler.get_num_allocatable_reqs(ROWS) == 0
    planner.begin(SimpleNamespace(reqs=[], batch_is_full=False), None)
    assert planner.rows_offered == 1
    assert scheduler.get_num_allocatable_reqs(ROWS) == 1
    adder = adder_with(stepped, free=5000)
    assert adder.add_one_req(fresh, False, None) == AddReqResult.CONTINUE and not adder.can_run_list
    adder.add_one_req(req, False, None)
    assert adder.can_run_list == [req]


def test_the_rest_of_its_last_page_is_its_own(monkeypatch: pytest.MonkeyPatch) -> None:
    stepped, req = waiting(monkeypatch, complete=True)
    planner = stepped.held.planner
    planner.planned, planner._allowances = True, {req.rid: 30}
    adder = adder_with(stepped, free=16, page=16)
    adder.add_one_req(req, False, None)
    assert [each.extend_len for each in adder.can_run_list] == [-HELD % 16]
