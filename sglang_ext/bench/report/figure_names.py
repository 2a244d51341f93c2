"""What the figures are called and how to read them."""

from __future__ import annotations

from typing import Literal

from sglang_ext.bench.envelope import FIGURES
from sglang_ext.bench.load_result import ArmFigures
from sglang_ext.bench.run_figures import Gaps
from sglang_ext.bench.spread import Ratio

Side = Literal["better", "worse", "open"]

QUANTITIES = {
    "line": "gap",
    "chain": "gap along chains",
    "switch": "switch",
    "worst": "worst",
    "ttft": "TTFT",
    "final_ttft": "final TTFT",
    "completion": "completion",
}
"""Fields of `RunFigures` by name."""

BASELINES = {
    "envelope": "best viable stock",
    "plain": "best with the plain client",
    "prewarm": "best that prewarms",
    "default": "stock's default",
}

READING = (
    ("arm", "one way to do the same work: Grape, or a setting of stock SGLang with a client."),
    ("run", "one workflow, from the submission of its inputs to its last token."),
    ("u", "the unloaded decode step: one row that decodes alone. Gaps and TTFT are given in it."),
    ("gap", "between neighbouring tokens of a run, all its tasks on one time line."),
    (
        "switch",
        "from a task's end to the first token of one that reads it; with several upstreams from the one that ended "
        "last.",
    ),
    ("worst", "each run's largest gap along its chains of tasks."),
    ("TTFT", "from a run's submission to its first token; final TTFT: to the first token of its final answer."),
    ("completion", "from a run's submission to its last token."),
    ("strict", "runs with every gap along their chains within the TBT service level."),
    (
        "attained",
        "runs with their TTFT within its service level and a mean gap within that of TBT. By the definition P90 it is "
        "the 90th percentile of a run's gaps that counts.",
    ),
    ("goodput", "runs per second that attained the levels."),
    (
        "viable",
        "an arm that does not buy one figure with another: its completion P95 is within 1.25 times the best stock "
        "setting's, and it keeps the TTFT level with its P95 where such a stock setting does. What is not viable is no "
        "baseline.",
    ),
    (
        "ratio",
        "an arm's figure over that of the best viable stock setting of this figure; below 1 is better. The interval is "
        "95%, by drawing repetitions and runs again, the same of both arms. One that holds 1, to two digits, says that "
        "no difference was seen.",
    ),
    (
        "fluid limit",
        "the gaps if the prefill of each 20 s were spread evenly over the steps that decode in them: a yardstick, no "
        "bound.",
    ),
    (
        "interference",
        "decode rows of a step on average, times tasks per token: the share of tokens that another task's prefill "
        "delays if a whole prompt runs in one step.",
    ),
    ("rows", "decodes of a step on average."),
    ("KV at most", "the most KV that was held, of the pool."),
    ("prefill computed", "prefill tokens computed, of those of all prompts; the prefix cache makes it less."),
)

READING_ENGINE = (
    ("forming", "the scheduler's time to form steps, of the time of the steps."),
    ("matrix rate", "operations of all steps, of what a large matrix product reaches on this machine in that time."),
    ("again", "prefill tokens that were computed though they had been before, over those that had to be."),
    ("late", "from the end of a token's step to its arrival at the client. All other times are those of the engine."),
    ("client", "processor time of the process with the clients, of the time measured."),
    ("others", "processors that processes outside of the measurement kept busy on average; it should be near 0."),
    ("same output", "runs whose output tokens are those of the first arm."),
)


def in_seconds(figure: str) -> bool:
    """Whether a figure is given in seconds; else in unloaded decode steps."""
    return FIGURES[figure].of == "completion"


def side(ratio: Ratio) -> Side:
    """On which side of 1 the interval is, as it is printed."""
    if round(ratio.high, 2) < 1:
        return "better"
    return "worse" if round(ratio.low, 2) > 1 else "open"


def value_of(arm: ArmFigures, figure: str) -> float | None:
    """A figure in seconds; None where the arm's runs have no such gaps."""
    about = FIGURES[figure]
    gaps: Gaps | None = getattr(arm.figures, about.of)
    if gaps is None:
        return None
    value: float = gaps.mean if about.share is None else getattr(gaps, f"p{about.share * 100:.0f}")
    return value
