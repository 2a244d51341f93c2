"""How many tokens of KV the pool of a CPU engine holds where the user does not say."""

from __future__ import annotations

from dataclasses import dataclass

from sglang_ext.engine.cpu.machine import Machine

GIB = 1 << 30
# What the engine's other processes and the buffers of its steps take, measured at 1.9 GiB with a model of no size.
PROCESSES = 2 * GIB
# Of the rest; the machine has other work too.
SHARE = 0.8
# A pool's worth is in what it keeps for later prompts, and more whole contexts than this are hardly ever alive.
WHOLE_CONTEXTS = 16


class NotEnoughMemory(ValueError):
    """The memory that is free does not hold the model and one context of it."""


@dataclass(frozen=True, slots=True)
class ModelSize:
    """What a model asks of memory, all ranks together.

    Args:
        weights: bytes, copies included.
        token: bytes of the KV of one token.
        context: tokens of the longest prompt with its output.
    """

    weights: int
    token: int
    context: int


def room(machine: Machine) -> int | None:
    """Bytes for weights and KV on this machine; None where free memory is unknown."""
    return None if machine.free_memory is None else max(0, int(SHARE * (machine.free_memory - PROCESSES)))


def pool_tokens(machine: Machine, model: ModelSize) -> int:
    """Tokens that the pool should hold: what memory allows, at most `WHOLE_CONTEXTS` contexts.

    Raises:
        NotEnoughMemory: less than one context fits.
    """
    most = WHOLE_CONTEXTS * model.context
    bytes_free = room(machine)
    if bytes_free is None:
        return most
    fits = max(0, bytes_free - model.weights) // model.token
    if fits < model.context:
        assert machine.free_memory is not None
        raise NotEnoughMemory(
            f"one context of this model does not fit into memory: {_gib(machine.free_memory)} are free "
            f"({machine.memory_source}), {_gib(bytes_free)} of it for weights and KV; the weights take "
            f"{_gib(model.weights)}, the KV of {model.context} tokens {_gib(model.context * model.token)}. "
            + _advice(fits)
        )
    return min(most, fits)


def _advice(fits: int) -> str:
    """What to do where only `fits` tokens fit; the smallest context that is worth it is set at 256."""
    shorter = "" if fits < 256 else f"a shorter context (`--context-length {fits // 256 * 256}`), "
    return (
        f"Give the engine more memory, a smaller model, {shorter}weights that stand in memory once "
        "(GRAPE_CPU_PACKED_LINEAR=off, slower), or the pool's size yourself (`--max-total-tokens N`)."
    )


def _gib(size: int) -> str:
    return f"{size / GIB:.1f} GiB"
