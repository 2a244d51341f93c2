"""The record of `grape bench numerics` for reading."""

from __future__ import annotations

from rich.box import SIMPLE
from rich.console import Console
from rich.table import Table

from sglang_ext.bench.numerics.pair import Pair, Share
from sglang_ext.bench.numerics.record import DtypeResult, NumericsRecord

_COLUMNS = ("first token differs", "output differs", "first at", "logprobs mean", "P95", "largest", "widest tie")


def show(record: NumericsRecord, console: Console) -> None:
    """Per dtype a table of pairs of arms, the ratio of the rates, and what seeds reproduce."""
    for result in record.results:
        console.print(_table(result))
        for line in _lines(result):
            console.print(line, highlight=False, markup=False)
    for line in _legend(record):
        console.print(line, highlight=False, markup=False)


def _table(result: DtypeResult) -> Table:
    table = Table(title=f"{result.dtype}, the same prompts", title_justify="left", box=SIMPLE)
    table.add_column("arms", no_wrap=True)
    for header in _COLUMNS:
        table.add_column(header, justify="right", no_wrap=True)
    for pair in result.pairs:
        table.add_row(f"{pair.arm} / {pair.other}", *_cells(pair))
    return table


def _cells(pair: Pair) -> list[str]:
    apart = pair.logprobs
    return [
        _share(pair.first_token),
        _share(pair.output),
        "" if pair.where is None else f"{pair.where:g}",
        *(f"{value:.2g}" for value in (apart.mean, apart.p95, apart.most)),
        "" if pair.widest_tie is None else f"{pair.widest_tie:.2g}",
    ]


def _share(share: Share) -> str:
    return f"{share.count}: {share.value:.1%} [{share.low:.1%}-{share.high:.1%}]"


def _lines(result: DtypeResult) -> list[str]:
    ratio, seeds = result.flip_ratio, result.seeds
    flips = (
        "The two chunkings never differ, so there is no ratio of the rates."
        if ratio is None
        else f"Outputs differ {ratio.value:.2f} [{ratio.low:.2f}-{ratio.high:.2f}] times as often between streamed and "
        "monolithic as between the two chunkings."
    )
    return [
        flips,
        f"A streamed prompt: {result.prompt_tokens:.0f} tokens, {result.early_tokens:.0f} of them early in "
        f"{result.early_chunks:.1f} chunks.",
        f"Sampled with a seed: {seeds.again.count} of {seeds.again.of} outputs come out alike when sent again, "
        f"{seeds.streamed.count} of {seeds.streamed.of} streamed. SGLang takes seeds into account in its deterministic "
        "mode only.",
    ]


def _legend(record: NumericsRecord) -> list[str]:
    settings, machine = record.settings, record.machine
    device = machine.accelerator or f"{machine.processor}, {machine.cpus} CPUs"
    return [
        f"{settings['prompts']} prompts, inputs: {settings['inputs']}; {settings['streamed']} of their tokens "
        f"streamed; outputs of {settings['answer']} tokens, greedy. Shares with 95% intervals. first at: the median "
        "place of the first token that differs.",
        "logprobs: of the first output token, the largest difference among the 20 most likely ones of both. widest "
        "tie: where first tokens differ, the most that the second arm preferred its own.",
        f"{device}; load before {record.load[0]}; {record.seconds:.0f} s; {record.model}",
    ]
