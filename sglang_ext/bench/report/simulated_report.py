"""The report of a record of `grape bench simulate`."""

from __future__ import annotations

from sglang_ext.bench.load_result import LoadResult
from sglang_ext.bench.report.loads import LOADS, load_title, series_of
from sglang_ext.bench.report.report import ArmText, Report, Section
from sglang_ext.bench.report.workflow_report import texts
from sglang_ext.bench.simulation.record import SimulationRecord


def simulated_report(record: SimulationRecord) -> Report:
    name, settings = record.machine["name"], record.settings
    workload, step_s = settings["workload"], record.unloaded_s
    return Report(
        mark="Simulated: ",
        title=f"{workload} on {name}",
        warnings=["Every figure is simulated; none was measured on an engine."],
        summary=[
            f"Workflows of the kind {workload} on a simulated engine, {name}: the policies that the engine runs beside "
            "the settings of stock SGLang. A simulation says in which direction to look, and what a real run should "
            "find.",
            f"{settings['seeds']} repetitions of {settings['runs']} runs and {settings['seconds']:g} s of arrivals at "
            "least. Every arm was given the same runs with the same arrivals and output lengths.",
            f"The unloaded decode step, u, is {step_s * 1000:.2f} ms. Service levels: TTFT {record.ttft_s / step_s:g} "
            f"u, {record.tbt_s / step_s:g} u between tokens.",
        ],
        facts={"Simulated machine": texts(record.machine), "Settings": texts(settings)},
        loads=[*LOADS, "The rates were found from a simulation of stock's settings alone."],
        step_s=step_s,
        ttft_s=record.ttft_s,
        tbt_s=record.tbt_s,
        arms=_arms(record.loads),
        sections=[Section(load_title(workload, load), "", load) for load in record.loads],
        series=series_of(workload, record.loads),
        verdicts=[],
    )


def _arms(loads: list[LoadResult]) -> dict[str, ArmText]:
    found: dict[str, ArmText] = {}
    for load in loads:
        for name, arm in load.arms.items():
            setting, _, client = name.partition("/")
            about = f"stock SGLang's setting {setting}, client {client}" if arm.stock else "Grape with this policy"
            found[name] = ArmText(about)
    return found
