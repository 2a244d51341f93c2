"""transformers as an arm: a static batch, its own KV cache, in this process."""

from __future__ import annotations

import time
from statistics import median
from typing import Any

import torch
from torch import Tensor
from transformers import AutoModelForCausalLM, DynamicCache
from transformers.utils import logging

from sglang_ext.bench.point import Decode, Load, Mixed, Point, Prefill
from sglang_ext.bench.point_sample import DECODE_STEPS, PROBES, SHORT, PointSample
from sglang_ext.bench.point_text import PointText

EAGER = "eager"
# Tokens of the longest prompt that it prefills.
EAGER_PROMPT = 512


class TransformersModel:
    """A loaded model, which the arms of different attention share.

    Args:
        path: a folder or a Hugging Face name.
        dtype: as torch names it.
        text: gives prompts.
    """

    def __init__(self, path: str, dtype: str, text: PointText) -> None:
        logging.disable_progress_bar()  # there is one already
        self.model: Any = AutoModelForCausalLM.from_pretrained(path, dtype=getattr(torch, dtype)).eval()
        self.text = text
        self._caches: dict[tuple[int, int], Any] = {}

    def forward(self, ids: Tensor, cache: Any) -> Tensor:
        """Write the ids, [sequences, tokens], into the cache; returns the greedy next ids, [sequences, 1]."""
        # Logits of the last token only, as an engine computes them.
        output = self.model(ids, past_key_values=cache, use_cache=True, logits_to_keep=1)
        chosen: Tensor = output.logits[:, -1:].argmax(-1)
        return chosen

    def cached(self, sequences: int, context: int) -> Any:
        """A cache with so many tokens of each sequence, computed once."""
        key = (sequences, context)
        if key not in self._caches:
            cache = DynamicCache(config=self.model.config)
            # One at a time: its scores would take much memory together.
            parts = [self._prefilled(row, context) for row in range(sequences)]
            for layer, each in enumerate(zip(*(part.layers for part in parts), strict=True)):
                cache.update(torch.cat([own.keys for own in each]), torch.cat([own.values for own in each]), layer)
            self._caches[key] = cache
        cache = self._caches[key]
        if surplus := cache.get_seq_length() - context:
            cache.crop(-surplus)
        return cache

    def _prefilled(self, row: int, context: int) -> Any:
        cache = DynamicCache(config=self.model.config)
        self.forward(torch.tensor([self.text.row(row, context)]), cache)
        return cache

    def empty(self) -> Any:
        return DynamicCache(config=self.model.config)


class TransformersArm:
    """Args: name: ends in what transformers calls the attention, such as `-sdpa` or `-eager`."""

    def __init__(self, name: str, model: TransformersModel) -> None:
        self.name = name
        self._model = model
        self._attention = name.rpartition("-")[2]

    def takes(self, point: Point) -> bool:
        """Eager attention writes down all scores of a prompt: seconds of a long one, which nobody would choose."""
        return self._attention != EAGER or not isinstance(point, Prefill) or point.tokens <= EAGER_PROMPT

    async def measure(self, point: Point) -> PointSample:
        self._model.model.set_attn_implementation(self._attention)
        with torch.inference_mode():
            match point:
                case Decode():
                    return self._decode(point)
                case Prefill():
                    runs = PROBES if point.tokens <= SHORT else 1
                    return PointSample(seconds=self._prefill(point.tokens, point.prefix, runs), steps=runs)
                case Mixed():
                    return self._one_after_the_other(point)
                case Load():
                    return self._load(point)

    def _decode(self, point: Decode) -> PointSample:
        cache = self._model.cached(point.batch, point.context)
        ids = self._fresh(point.batch, 1)
        times = []
        for _ in range(DECODE_STEPS + 1):
            begin = time.perf_counter()
            ids = self._model.forward(ids, cache)
            times.append(time.perf_counter() - begin)
        # The first one copies the cache as a whole.
        return PointSample(seconds=median(times[1:]), steps=DECODE_STEPS)

    def _prefill(self, tokens: int, prefix: int, runs: int) -> float:
        times = []
        for _ in range(runs):
            ids = self._fresh(1, tokens)
            cache = self._model.cached(1, prefix) if prefix else self._model.empty()
            begin = time.perf_counter()
            self._model.forward(ids, cache)
            times.append(time.perf_counter() - begin)
        return median(times)

    def _one_after_the_other(self, point: Mixed) -> PointSample:
        own = self._decode(Decode(point.batch, point.context))
        chunk = self._prefill(point.tokens, point.prefix, PROBES)
        return PointSample(seconds=own.seconds + chunk, alone_s=own.seconds, steps=own.steps)

    def _load(self, point: Load) -> PointSample:
        ids = self._fresh(point.requests, point.prompt)
        cache = self._model.empty()
        begin = time.perf_counter()
        for _ in range(point.output):
            ids = self._model.forward(ids, cache)
        return PointSample(seconds=time.perf_counter() - begin)

    def _fresh(self, sequences: int, tokens: int) -> Tensor:
        return torch.tensor([self._model.text.fresh(tokens) for _ in range(sequences)])
