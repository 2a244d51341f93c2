"""The report of a record of `grape bench workflows`."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from typing import Any

from sglang_ext.bench.load_result import LoadResult
from sglang_ext.bench.report.loads import load_note, load_title, series_of, workload_facts
from sglang_ext.bench.report.report import ABOUT, ArmText, Facts, Report, Section
from sglang_ext.bench.workflows.record import CalibrationRecord, WorkflowRecord, WorkloadResult


def workflow_report(record: WorkflowRecord) -> Report:
    machine = record.machine
    device = machine.accelerator or f"{machine.processor}, {machine.cpus} CPUs"
    workloads = ", ".join(result.workload for result in record.workloads)
    step_s = record.calibration.unloaded_s
    return Report(
        mark="",
        title=f"Workflows under load: {workloads}",
        warnings=list(_warnings(record)),
        summary=list(_summary(record, device)),
        facts={
            "Machine": {
                "processor": machine.processor,
                "CPUs": str(machine.cpus),
                "accelerator": machine.accelerator or "none",
                "memory": f"{machine.memory_bytes / 2**30:.1f} GiB",
                "system": machine.system,
                "load average": f"{record.load[0]:g} before, {record.load[1]:g} at the end",
                **machine.variables,
            },
            "Versions": record.versions,
            "Settings": {"mode": record.mode, **texts(record.settings)},
            "Calibration on stock's default": _calibration(record.calibration),
        },
        workloads=workload_facts(result.workload for result in record.workloads),
        loads=[
            "Rates with a name were found once, before any arm was measured, from a simulation of stock's settings "
            "with the cost model of the calibration; Grape has no say in them."
        ],
        step_s=step_s,
        ttft_s=record.ttft_s,
        tbt_s=record.tbt_s,
        arms={name: ArmText(arm.about, _engine(record, arm.engine)) for name, arm in record.arms.items()},
        sections=[section for result in record.workloads for section in _sections(result)],
        series=[s for result in record.workloads for s in series_of(result.workload, result.loads)],
        verdicts=record.verdicts,
    )


def _summary(record: WorkflowRecord, device: str) -> Iterator[str]:
    step_s = record.calibration.unloaded_s
    yield ABOUT
    yield (
        f"Whole workflows on real SGLang engines: Grape beside stock SGLang's settings, on {device}, with the model "
        f"{record.model}. The measurement, or the last part of one in several, began {_date(record.started)} and took "
        f"{record.seconds / 60:.0f} minutes."
    )
    yield (
        "Every arm was given the same runs with the same arrivals and output lengths, on the same machine, one after "
        "the other, another one first each time. Times are the ends of the engine's steps, in every arm."
    )
    yield (
        f"The unloaded decode step, u, was {step_s * 1000:.2f} ms. Service levels: TTFT {record.ttft_s / step_s:g} u, "
        f"{record.tbt_s / step_s:g} u between tokens."
    )
    if record.machine.accelerator is None:
        yield "On a machine without an accelerator only ratios and steps of one run mean something, not milliseconds."


def _warnings(record: WorkflowRecord) -> Iterator[str]:
    if record.indicative:
        yield "Indicative: this measurement was too short for a claim. The mode full measures enough."
    if record.unfinished:
        yield (
            "Not everything that was planned was measured: of the turns of an arm at a load, "
            f"{record.unfinished} {'is' if record.unfinished == 1 else 'are'} missing."
        )


def _sections(result: WorkloadResult) -> Iterator[Section]:
    for load in result.loads:
        # Of Grape's arms `grape` and `grape:POLICY` lack nothing.
        lacking = frozenset(name for name, arm in load.arms.items() if not arm.stock and re.search("[-/]", name))
        yield Section(load_title(result.workload, load), load_note(load), load, lacking)
    if result.ablations is not None:
        note = "Grape without one part or another. A part whose absence changes nothing earns nothing here."
        yield Section(f"{load_title(result.workload, result.ablations)}, parts off", note, result.ablations, parts=True)
    if result.screen is not None:
        yield _screen(result, result.screen)


def _screen(result: WorkloadResult, screen: LoadResult) -> Section:
    note = f"Every stock setting once. Kept for the comparison: {', '.join(result.kept) or 'none'}."
    return Section(f"{load_title(result.workload, screen)}, screen of stock's settings", note, screen, parts=True)


def _engine(record: WorkflowRecord, name: str) -> str:
    engine = record.engines.get(name)
    if engine is None:
        return name
    variables = " ".join(f"{key}={value}" for key, value in engine.environment.items())
    return f"{name}: {variables} {' '.join(engine.flags)}".strip()


def _date(started: str) -> str:
    return f"{datetime.fromisoformat(started).astimezone(UTC):%Y-%m-%d %H:%M} UTC"


def _calibration(found: CalibrationRecord) -> Facts:
    return {
        "unloaded decode step": f"{found.unloaded_s * 1000:.3f} ms",
        "cost model, s": ", ".join(f"{name} {value:.3g}" for name, value in found.cost.items()),
        "its error on steps held out": ", ".join(f"{name} {value:.1%}" for name, value in found.errors.items())
        or "none",
        "steps": f"{found.steps:,}",
        "matrix product": f"{found.matrix_flops / 1e9:,.1f} GFLOP/s",
        "plain client": f"{found.client_request_s * 1000:.2f} ms per request, {found.client_token_s * 1e6:.0f} us per "
        "token of processor time, against a server that computes nothing",
        "engines": f"{found.dtype}, {found.threads} threads, {found.kv_tokens:,} tokens of KV, chunks of "
        f"{found.chunk:,}",
    }


def texts(settings: Mapping[str, Any]) -> dict[str, str]:
    """Settings for reading."""
    return {name.replace("_", " "): _text(value) for name, value in settings.items()}


def _text(value: Any) -> str:
    if isinstance(value, bool):
        return "yes" if value else "no"
    if value is None or value in ([], {}):
        return "none"
    if isinstance(value, dict):
        return ", ".join(f"{name} {_text(inner)}" for name, inner in value.items())
    if isinstance(value, list):
        return " ".join(_text(inner) for inner in value)
    return f"{value:.4g}" if isinstance(value, float) else str(value)
