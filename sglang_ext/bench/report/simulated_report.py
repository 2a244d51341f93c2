"""The report of a record of `grape bench simulate`."""

from __future__ import annotations

import re

from sglang_ext.bench.arms import grape_about
from sglang_ext.bench.load_result import LoadResult
from sglang_ext.bench.report.loads import load_note, load_title, series_of, workload_facts
from sglang_ext.bench.report.report import ABOUT, ArmText, Report, Section
from sglang_ext.bench.report.workflow_report import texts
from sglang_ext.bench.simulation.record import SimulationRecord
from sglang_ext.bench.simulation.simulated_arm import stock_arm
from sglang_ext.settings import Streaming

# As the benchmark names them: the policy, parts that are off, the way of streaming where it is not the usual one.
_OURS = re.compile(r"(?P<policy>\S+)(?P<parts>( -\S+)*)( \((?P<way>\w+)\))?")


def simulated_report(record: SimulationRecord) -> Report:
    name, settings = record.machine["name"], record.settings
    workload, step_s = settings["workload"], record.unloaded_s
    return Report(
        mark="Simulated: ",
        title=f"{workload} on {name}",
        warnings=["Every figure is simulated; none was measured on an engine."],
        summary=[
            ABOUT,
            f"Workflows of the kind {workload} on a simulated engine, {name}: the policies that the engine runs beside "
            "the settings of stock SGLang. A simulation says in which direction to look, and what a real run should "
            "find.",
            f"{settings['seeds']} repetitions of {settings['runs']} runs and {settings['seconds']:g} s of arrivals at "
            "least. Every arm was given the same runs with the same arrivals and output lengths.",
            f"The unloaded decode step, u, is {step_s * 1000:.2f} ms. Service levels: TTFT {record.ttft_s / step_s:g} "
            f"u, {record.tbt_s / step_s:g} u between tokens.",
        ],
        facts={"Simulated machine": texts(record.machine), "Settings": texts(settings)},
        workloads=workload_facts([workload]),
        loads=["Rates with a name were found from a simulation of stock's settings alone."],
        step_s=step_s,
        ttft_s=record.ttft_s,
        tbt_s=record.tbt_s,
        arms=_arms(record.loads),
        sections=[_section(workload, load) for load in record.loads],
        series=series_of(workload, record.loads),
        verdicts=[],
    )


def _section(workload: str, load: LoadResult) -> Section:
    lacking = frozenset(name for name, arm in load.arms.items() if not arm.stock and " " in name)
    return Section(load_title(workload, load), load_note(load), load, lacking)


def _arms(loads: list[LoadResult]) -> dict[str, ArmText]:
    found: dict[str, ArmText] = {}
    for load in loads:
        for name, arm in load.arms.items():
            found[name] = ArmText(stock_arm(name).about if arm.stock else _about(name))
    return found


def _about(name: str) -> str:
    found = _OURS.fullmatch(name)
    if found is None:
        return "Grape"
    without = ", ".join(part.removeprefix("-") for part in found["parts"].split())
    return grape_about(found["policy"], without, Streaming(found["way"] or Streaming.ON))
