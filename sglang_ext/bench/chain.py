"""The chain that is measured: task A, and task B, whose prompt holds A's output."""

from __future__ import annotations

import random
from dataclasses import dataclass

from grape_dsl.encoding import TextEncoder
from grape_dsl.task import Options
from sglang_ext.bench.run_work import RunWork
from sglang_ext.driver.prompts import TaskPlan
from sglang_ext.tasks.hint import Known, OutputHole
from sglang_ext.tasks.output_ids import TextCodec

FIRST, SECOND = "A", "B"
_WORDS = (
    "river stone lamp window garden paper bridge morning engine letter forest table silver winter market honest "
    "travel music doctor simple copper island bottle answer number farmer corner yellow summer church castle "
    "winner planet ticket harbor spring carpet butter leader circle dinner finger ladder mirror nature orange "
    "pencil rabbit school temple valley wagon water writer basket camera desert flower guitar hammer jacket"
)


@dataclass(frozen=True, slots=True)
class ChainShape:
    """Sizes in tokens.

    Args:
        known: B's text before A's output.
        output: A's output.
        start: A's prompt.
        suffix: B's text behind A's output.
        answer: B's output.
    """

    known: int
    output: int
    start: int = 64
    suffix: int = 8
    answer: int = 32

    @property
    def prompt(self) -> int:
        """B's whole prompt."""
        return self.known + self.output + self.suffix


@dataclass(frozen=True, slots=True)
class ChainText:
    """The ids of one chain that are known before it starts."""

    start: list[int]
    known: list[int]
    suffix: list[int]

    def work(self, shape: ChainShape, weight: int, codec: TextCodec) -> RunWork:
        """Args: weight: tokens per streamed chunk, for the arms that stream."""
        known = (Known(ids=self.known),) if self.known else ()
        second = (*known, OutputHole(task=FIRST, weight=weight), Known(ids=self.suffix))
        plans = (
            TaskPlan(FIRST, 0, FIRST, Options(), (Known(ids=self.start),), (SECOND,)),
            TaskPlan(SECOND, 1, SECOND, Options(), second, ()),
        )
        return RunWork({plan.name: plan for plan in plans}, {FIRST: shape.output, SECOND: shape.answer}, codec)


class FreshText:
    """Text that no engine has seen: random words, so that a prefix cache never hits.

    Args:
        seed: equal seeds give equal texts, in the same order.
    """

    def __init__(self, encoder: TextEncoder, seed: int) -> None:
        self.codec = encoder
        self._random = random.Random(seed)

    def chain(self, shape: ChainShape) -> ChainText:
        return ChainText(self._ids(shape.start), self._ids(shape.known), self._ids(shape.suffix))

    def _ids(self, length: int) -> list[int]:
        # A word is one token or more.
        words = self._random.choices(_WORDS.split(), k=length)
        return self.codec.encode(" ".join(words))[:length]
