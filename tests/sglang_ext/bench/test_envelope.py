"""Which stock settings count, and what the best of them is."""

from __future__ import annotations

from sglang_ext.bench.attainment import ServiceLevels
from sglang_ext.bench.envelope import envelope, viable
from sglang_ext.bench.run_figures import RunSet
from tests.sglang_ext.bench.recorded_runs import chain

LEVELS = ServiceLevels(ttft_s=2.0, tbt_s=3.0)


def arm(gaps: list[float], first: float = 1.0, switch: float | None = 1.0) -> RunSet:
    return RunSet([[chain(gaps, first=first, switch=switch)]], LEVELS)


def test_a_setting_that_delays_work_is_not_viable():
    sets = {"quick": arm([4.0, 4.0]), "slow": arm([1.0] * 12)}
    assert viable(sets, sets) == {"quick"}


def test_one_quarter_behind_is_still_viable():
    sets = {"quick": arm([3.0]), "slower": arm([4.25])}
    assert viable(sets, sets) == {"quick", "slower"}


def test_first_tokens_count_only_where_some_setting_is_in_time():
    late, in_time = arm([1.0], first=2.5), arm([2.0], first=2.0)
    assert viable({"late": late, "in time": in_time}, {"late": late, "in time": in_time}) == {"in time"}
    assert viable({"late": late}, {"late": late}) == {"late"}


def test_first_tokens_of_a_setting_that_delays_work_do_not_count():
    stock = {"late": arm([1.0], first=2.5), "slow": arm([1.0] * 12)}
    assert viable(stock, stock) == {"late"}


def test_our_own_arm_is_held_to_the_same():
    assert viable({"ours": arm([20.0])}, {"stock": arm([1.0])}) == set()


def test_best_is_found_figure_by_figure():
    stock = {"even": arm([2.0, 2.0], switch=2.0), "uneven": arm([1.0, 3.5], switch=1.0)}
    best = envelope(stock)
    assert best["gap P95"] == "even"
    assert best["switch P95"] == "uneven"


def test_runs_of_one_task_have_no_switch():
    best = envelope({"stock": arm([1.0], switch=None)})
    assert "switch P95" not in best
    assert best["gap P95"] == "stock"
