"""The attention of the CPU platform against a plain reference, over ragged and mixed batches on a paged pool."""

from __future__ import annotations

import pytest
import torch
from hypothesis import example, given, settings
from hypothesis import strategies as st
from torch import Tensor

from sglang_ext.engine.cpu.attention import TorchAttention
from sglang_ext.engine.cpu.attention_plan import Shape, padded, plan_attention
from sglang_ext.engine.cpu.compiled_attention import CompiledAttention, can_compute
from sglang_ext.engine.cpu.native.compiling import FLAGS, NotCompiled, compiled
from sglang_ext.engine.cpu.native.library import NativeLibrary

POOL = 1 << 15
# Of scores and weights that are rounded to 8 bits of mantissa on the way.
TOLERANCE = {torch.float32: 2e-5, torch.bfloat16: 4e-2}
Sequences = list[tuple[int, int]]
# Torch's path, and the C code for this machine and for lesser ones.
PATHS = {"torch": "", "compiled": "native", "compiled-avx512": "skylake-avx512", "compiled-avx2": "haswell"}


@pytest.fixture(scope="module", params=PATHS)
def library(request: pytest.FixtureRequest) -> NativeLibrary | None:
    machine = PATHS[request.param]
    if not machine:
        return None
    if machine == "skylake-avx512" and "AVX512" not in torch.backends.cpu.get_cpu_capability():
        pytest.skip("this CPU has no AVX-512")
    try:
        return NativeLibrary(compiled([flag.replace("native", machine) for flag in FLAGS]))
    except NotCompiled as error:
        pytest.skip(str(error))


def reference(query: Tensor, key: Tensor, value: Tensor, prefix: int, scale: float) -> Tensor:
    """Causal attention of one sequence, written out in float64.

    query: [new, heads, size]; key, value: [prefix + new, kv heads, size].
    """
    groups = query.shape[1] // key.shape[1]
    key, value = (x.double().repeat_interleave(groups, 1) for x in (key, value))
    scores = torch.einsum("qhd,khd->hqk", query.double(), key) * scale
    ahead = torch.arange(len(key)) > torch.arange(len(query))[:, None] + prefix
    return torch.einsum("hqk,khd->qhd", scores.masked_fill_(ahead, float("-inf")).softmax(-1), value)


def check(
    library: NativeLibrary | None,
    sequences: Sequences,
    dtype: torch.dtype,
    heads: tuple[int, int] = (9, 3),
    page: int = 1,
    size: int = 64,
    group: int = 8192,
    threads: int = 2,
) -> None:
    """Compare a batch of (prefix, new tokens) on a pool whose pages are dealt out at random."""
    generator = torch.Generator().manual_seed(len(sequences))
    new = sum(length for _, length in sequences)
    needed = sum(prefix + length + page for prefix, length in sequences) + page
    slots_in_all = max(POOL, -(-needed // page) * page)
    # A part of a wider product, as a layer gives it.
    query = torch.randn(new, sum(heads), size, generator=generator).to(dtype)[:, : heads[0]]
    keys, values = (torch.full((slots_in_all, heads[1], size), float("nan")).to(dtype) for _ in range(2))
    pages = torch.randperm(slots_in_all // page - 1, generator=generator) + 1
    table = torch.full((len(sequences) + 1, max(p + n for p, n in sequences)), slots_in_all - 1, dtype=torch.int32)
    # Slots that are nobody's hold anything; torch's path multiplies what it finds in the first one by 0.
    keys[0], values[0] = 0, 0
    taken = 0
    for row, (prefix, length) in enumerate(sequences, 1):
        count = -(-(prefix + length) // page)
        slots = (pages[taken : taken + count, None] * page + torch.arange(page)).flatten()[: prefix + length]
        table[row, : prefix + length] = slots
        for pool in (keys, values):
            pool[slots] = torch.randn(len(slots), heads[1], size, generator=generator).to(dtype)
        taken += count
    prefixes, lengths = (list(column) for column in zip(*sequences, strict=True))
    attention: TorchAttention | CompiledAttention
    if library is None:
        attention = TorchAttention(heads[1], size, dtype, group)
    else:
        attention = CompiledAttention(library, *heads, size, dtype)
    output = torch.full((new, heads[0], size), float("nan"), dtype=dtype)
    before = torch.get_num_threads()
    torch.set_num_threads(threads)
    try:
        attention.plan(table, range(1, len(sequences) + 1), prefixes, lengths)
        attention.attend(query, output, keys, values, size**-0.5)
    finally:
        torch.set_num_threads(before)
    start = 0
    for row, (prefix, length) in enumerate(sequences, 1):
        slots = table[row, : prefix + length].long()
        part = slice(start, start + length)
        expected = reference(query[part], keys[slots], values[slots], prefix, size**-0.5)
        torch.testing.assert_close(output[part].double(), expected, atol=TOLERANCE[dtype], rtol=TOLERANCE[dtype])
        start += length


BATCHES = st.lists(st.tuples(st.integers(0, 700), st.one_of(st.just(1), st.integers(1, 150))), min_size=1, max_size=16)


@settings(deadline=None, max_examples=40)
@given(
    sequences=BATCHES,
    dtype=st.sampled_from([torch.float32, torch.bfloat16]),
    heads=st.sampled_from([(9, 3), (4, 4), (8, 1), (14, 2)]),
    page=st.sampled_from([1, 16]),
    size=st.sampled_from([16, 64, 80, 96, 128]),
    group=st.sampled_from([1, 500, 8192]),
    threads=st.sampled_from([1, 2, 5]),
)
@example([(0, 1)], torch.float32, (9, 3), 1, 64, 8192, 2)
@example([(511, 1)] * 16, torch.bfloat16, (9, 3), 16, 64, 8192, 2)
@example([(5, 1), (300, 17), (699, 1), (0, 150)], torch.float32, (9, 3), 1, 64, 8192, 2)
def test_any_batch(
    library: NativeLibrary | None,
    sequences: Sequences,
    dtype: torch.dtype,
    heads: tuple[int, int],
    page: int,
    size: int,
    group: int,
    threads: int,
) -> None:
    check(library, sequences, dtype, heads, page, size, group, threads)


@pytest.mark.slow
@settings(deadline=None, max_examples=40)
@given(
    sequences=st.lists(
        st.tuples(st.integers(0, 4096), st.one_of(st.just(1), st.integers(1, 700))), min_size=1, max_size=16
    ),
    dtype=st.sampled_from([torch.float32, torch.bfloat16]),
    heads=st.sampled_from([(9, 3), (4, 4), (8, 1), (32, 8)]),
    page=st.sampled_from([1, 16]),
    size=st.sampled_from([64, 96, 128, 256]),
    threads=st.sampled_from([1, 2, 3]),
)
def test_any_wide_batch(
    library: NativeLibrary | None,
    sequences: Sequences,
    dtype: torch.dtype,
    heads: tuple[int, int],
    page: int,
    size: int,
    threads: int,
) -> None:
    check(library, sequences, dtype, heads, page, size, threads=threads)


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
@pytest.mark.parametrize("sequences", [[(4095, 1)], [(4000, 96)], [(0, 1024)], [(2048, 1), (4095, 1), (3, 1)]])
def test_long_contexts(library: NativeLibrary | None, sequences: Sequences, dtype: torch.dtype) -> None:
    check(library, sequences, dtype)


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_scores_far_apart(library: NativeLibrary | None, dtype: torch.dtype) -> None:
    """One key takes all the weight, by a score of hundreds above or below the others'."""
    size, context = 32, 200
    attention = TorchAttention(1, size, dtype) if library is None else CompiledAttention(library, 1, 1, size, dtype)
    for at in (0, 70, 199):
        for sign in (1, -1):
            keys = torch.zeros(context, 1, size, dtype=dtype)
            keys[at] = 4.0 * sign
            values = torch.arange(context)[:, None, None].expand(-1, 1, size).to(dtype).contiguous()
            query, output = torch.full((1, 1, size), 4.0, dtype=dtype), torch.empty(1, 1, size, dtype=dtype)
            attention.plan(torch.arange(context, dtype=torch.int32)[None], [0], [context - 1], [1])
            attention.attend(query, output, keys, values, 1.0)
            expected = reference(query, keys, values, context - 1, 1.0)
            torch.testing.assert_close(output.double(), expected, atol=1e-4, rtol=TOLERANCE[dtype])


def test_what_the_compiled_code_computes() -> None:
    assert can_compute({(9, 3, 64)}, torch.bfloat16) and can_compute({(1, 1, 256)}, torch.float32)
    assert not can_compute({(9, 3, 64)}, torch.float16)
    assert not can_compute({(9, 3, 64), (9, 9, 64)}, torch.float32), "layers that differ"
    assert not any(can_compute({(8, 8, size)}, torch.float32) for size in (8, 72, 272))


def test_contexts_of_unlike_length_are_not_padded_to_one_another() -> None:
    table = torch.zeros(4, 4096, dtype=torch.int32)
    plan = plan_attention(table, [0, 1, 2, 3], [4095, 40, 50, 4000], [1, 1, 1, 1], Shape(1, torch.float32, 1 << 20))
    assert sorted(group.longest for group in plan.decodes) == [padded(51), padded(4096)]
    assert sorted(group.rows.tolist() for group in plan.decodes if group.rows is not None) == [[0, 3], [2, 1]]


def test_work_is_in_proportion_to_new_tokens_and_context() -> None:
    """A chunk gathers its own context, once, and no query row but its own."""
    plan = plan_attention(torch.zeros(1, 512, dtype=torch.int32), [0], [500], [8], Shape(3, torch.float32, 8192))
    (chunk,) = plan.chunks
    assert len(chunk.slots) == 3 * padded(508)
    assert (chunk.start, chunk.end) == (0, 8)
    assert not plan.decodes
