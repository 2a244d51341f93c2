"""A profile, and how well it says the steps of a run, for reading."""

from __future__ import annotations

from rich.console import Console
from rich.table import Table

from sglang_ext.bench.step_cost.check import StepCheck
from sglang_ext.policy.cost_model import Load
from sglang_ext.profile.profile import Profile

_REGIMES = ("decode", "mixed", "prefill", "all")
_TERMS = {
    "fixed": ("any step", 1e3, "ms"),
    "row": ("per sequence that decodes", 1e3, "ms"),
    "token": ("per prefill token", 1e3, "ms"),
    "prefill": ("any prefill", 1e3, "ms"),
    "piece": ("per piece of a prompt", 1e3, "ms"),
    "kv": ("per 1,000 tokens of KV read", 1e6, "ms"),
    "attention": ("per 1,000 prefill tokens x 1,000 of context", 1e9, "ms"),
    "knee": ("tokens of a step up to which they are hidden", 1, ""),
    "beyond": ("per token beyond them", 1e3, "ms"),
}


def show(profile: Profile, console: Console) -> None:
    key, cost = profile.key, profile.cost
    steps = sum(len(each.seconds) for each in profile.measurements)
    console.print(
        f"{key.model}, {key.dtype}, {key.device} ({key.processor}), {key.threads} threads, {key.ranks} ranks, "
        f"{key.attention}; SGLang {key.sglang}, torch {key.torch}",
        highlight=False,
    )
    console.print(
        f"{steps:,} steps of {len(profile.measurements):,} make-ups in {profile.length_s:.0f} s", highlight=False
    )
    terms = Table("a step's time", "", title_justify="left")
    for name, (about, factor, unit) in _TERMS.items():
        if value := getattr(cost, name):
            terms.add_row(about, f"{value * factor:.3g} {unit}".rstrip())
    terms.add_row("so a decode step of one sequence, 512 tokens", f"{1e3 * cost.time(Load(1, kv=512)):.3g} ms")
    console.print(terms)
    errors = Table("mean error", *_REGIMES)
    errors.add_row("on steps held out", *(_share(cost.errors.get(regime)) for regime in _REGIMES))
    errors.add_row("of a step by others like it", *(_share(profile.noise.get(regime)) for regime in _REGIMES))
    errors.add_row("by those at other times", *(_share(profile.drift.get(regime)) for regime in _REGIMES))
    console.print(errors)


def show_check(found: StepCheck, profile: Profile, console: Console) -> None:
    console.print(f"profile {profile.key.slug}; {found.left_out} steps before a pause left out", highlight=False)
    table = Table("expected", "steps", "", "mean error", "median", "95% below", "bias")
    for way, by_regime in found.errors.items():
        for regime in _REGIMES:
            if regime in by_regime:
                each = by_regime[regime]
                shares = (each.mean, each.median, each.p95)
                table.add_row(way, regime, f"{each.steps:,}", *map(_share, shares), f"{each.bias:+.1%}")
    console.print(table)


def _share(value: float | None) -> str:
    return "-" if value is None else f"{value:.1%}"
