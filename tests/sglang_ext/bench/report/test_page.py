"""The page of a record: whole, closed in itself, and with everything that the record has."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from sglang_ext.bench.envelope import FIGURES
from sglang_ext.bench.load_result import LoadResult
from sglang_ext.bench.report.figure_names import READING, side, value_of
from sglang_ext.bench.report.loads import WORKLOADS
from sglang_ext.bench.report.page import page
from sglang_ext.bench.report.report import Report
from sglang_ext.bench.report.simulated_report import simulated_report
from sglang_ext.bench.report.tables import main_table
from sglang_ext.bench.report.workflow_report import workflow_report
from sglang_ext.bench.spread import Ratio
from sglang_ext.bench.workload import workloads
from tests.sglang_ext.bench.report.reading_html import Page
from tests.sglang_ext.bench.report.records import HOSTILE, simulation_record, workflow_record

REPORTS = {"measured": workflow_report(workflow_record()), "simulated": simulated_report(simulation_record())}
PAGES = {name: page(report) for name, report in REPORTS.items()}


@pytest.fixture(params=list(REPORTS))
def name(request) -> str:
    return request.param


def test_elements_are_closed_and_plots_have_numbers(name):
    read = Page(PAGES[name])
    tags = [tag for tag, _ in read.tags]
    assert tags.count("svg") > 10
    assert not re.search(r'"(nan|inf|-inf)"|[ ,"]nan[ ,"]', PAGES[name])


def test_every_place_in_a_plot_is_inside_it(name):
    inside = (0.0, 0.0)
    for tag, attributes in Page(PAGES[name]).tags:
        if tag == "svg":
            inside = (float(attributes["width"] or 0), float(attributes["height"] or 0))
        for key, size in (("x1", 0), ("x2", 0), ("cx", 0), ("y1", 1), ("y2", 1), ("cy", 1)):
            if key in attributes:
                assert 0 <= float(attributes[key] or -1) <= inside[size], (tag, attributes)


def test_nothing_comes_from_elsewhere(name):
    for tag, attributes in Page(PAGES[name]).tags:
        assert tag not in ("script", "link", "img", "iframe", "object", "embed")
        for key in ("src", "href", "xlink:href", "action", "data"):
            assert (attributes.get(key) or "#").startswith("#"), (tag, attributes)
        assert not [key for key in attributes if key.startswith("on")]
    assert "url(" not in PAGES[name] and "@import" not in PAGES[name] and "://" not in PAGES[name]


def test_links_lead_to_a_place(name):
    tags = Page(PAGES[name]).tags
    places = {attributes["id"] for _, attributes in tags if "id" in attributes}
    links = {(attributes["href"] or "")[1:] for tag, attributes in tags if tag == "a"}
    assert links and links <= places


def test_every_arm_has_its_figures(name):
    report: Report = REPORTS[name]
    rows = Page(PAGES[name]).rows
    for section in report.sections:
        for arm_name, arm in section.result.arms.items():
            own = [row[1:] for row in rows if row and row[0] == arm_name]
            values = []
            for figure in FIGURES:
                value = value_of(arm, figure)
                unit = 1.0 if figure.startswith("completion") else report.step_s
                values.append("-" if value is None else f"{value / unit:.2f}")
            assert any(row[1 : 1 + len(values)] == values for row in own), (section.title, arm_name)


def test_values_that_are_printed_alike_stand_out_alike():
    load = workflow_record().workloads[0].loads[0]
    own = load.arms["grape"]
    line = own.figures.line
    nearly = line.model_copy(update={"p95": line.p95 * 1.0001, "p99": line.p99 * 2})
    other = own.model_copy(update={"figures": own.figures.model_copy(update={"line": nearly})})
    first, second = main_table({"a": own, "b": other}, 0.1).rows
    at = ["viable", *FIGURES].index("gap P95")
    assert first.cells[at].kind == second.cells[at].kind == "best"
    assert (first.cells[at + 1].kind, second.cells[at + 1].kind) == ("best", "")


def test_every_ratio_with_its_interval():
    record = workflow_record()
    rows = Page(PAGES["measured"]).rows
    for load in record.workloads[0].loads:
        for ratios in load.arms["grape"].ratios.values():
            for figure, ratio in ratios.items():
                text = f"{ratio.value:.2f}{ratio.low:.2f} to {ratio.high:.2f}"
                assert any(text in row for row in rows if row and row[0] == figure), (load.load, figure)


def test_every_quantity_and_what_only_an_engine_has():
    arm = workflow_record().workloads[0].loads[1].arms["grape"]
    rows = [row for row in Page(PAGES["measured"]).rows if row and row[0] == "grape"]
    values = []
    for quantity in ("line", "chain", "switch", "worst", "ttft", "final_ttft", "completion"):
        gaps = getattr(arm.figures, quantity)
        values += [f"{v / (1.0 if quantity == 'completion' else 0.1):.2f}" for v in gaps.model_dump().values()]
    assert any(row[1:] == values for row in rows)
    assert any(row[-8:] == ["1.00%", "30.0%", "5.0%", "1.0", "3.0", "10%", "0.25", "88%"] for row in rows)


def test_names_are_text():
    assert HOSTILE not in PAGES["measured"]
    assert "<script" not in PAGES["measured"] and "<em>" not in PAGES["measured"] and "<fast>" not in PAGES["measured"]
    read = Page(PAGES["measured"])
    assert any(HOSTILE in row for row in read.rows)
    assert "a <fast> CPU" in read.text and "0.9 <em>" in read.text


def test_what_is_simulated_says_so_in_every_heading():
    headings = Page(PAGES["simulated"]).headings
    assert len(headings) > 20
    assert all(heading.startswith("Simulated: ") for heading in headings)
    assert not [heading for heading in Page(PAGES["measured"]).headings if "imulated" in heading]


def test_what_fell_short():
    html = PAGES["measured"]
    section = Page(html[html.index('<h2 id="short">') : html.index('<h2 id="goals">')].rsplit("<section>", 1)[0][:-11])
    assert "Goal missed: more than all. Found: 0.9 <em>." in section.text
    assert "Goal not measured: nobody asked." in section.text
    assert "switches 3 times shorter" not in section.text
    assert re.search(
        r"search, knee \(0.5 runs/s\): grape is behind the best viable stock setting in .*TTFT P95 \(2.00 times",
        section.text,
    )
    assert HOSTILE not in section.text, "an arm without a part is no shortcoming"


def test_at_a_glance_stand_the_arms_that_lack_nothing():
    rows = Page(PAGES["measured"]).rows
    record = workflow_record()
    for load, title in zip(
        record.workloads[0].loads, ("knee (0.5 runs/s)", "busy (0.9 runs/s)", "closed loop"), strict=True
    ):
        own = [row for row in rows if row and row[0] == f"search, {title}"]
        assert [row[1] for row in own] == ["best viable stock", "stock's default"]
        for row, by in zip(own, ("envelope", "default"), strict=True):
            ratio = load.arms["grape"].ratios[by]["gap P95"]
            assert row[3] == f"{ratio.value:.2f}{ratio.low:.2f} to {ratio.high:.2f}"
    lacking = REPORTS["simulated"].sections[0]
    named = LoadResult(
        load="2", rate=2.0, baselines={}, arms={n: lacking.result.arms["grape"] for n in ("p", "p -a", "p (static)")}
    )
    (section,) = simulated_report(simulation_record().model_copy(update={"loads": [named]})).sections
    assert list(section.whole) == ["p"]


def test_arms_workloads_and_loads_in_words():
    named = workflow_record().workloads[0].loads[0].arms["grape"]
    stock = named.model_copy(update={"stock": True})
    arms = {"p": named, "p -a -b (off)": named, "mixed-64/prewarm-priority": stock}
    load = LoadResult(load="knee", rate=2.0, baselines={}, arms=arms)
    report = simulated_report(simulation_record().model_copy(update={"loads": [load]}))
    assert report.arms["p"].about == "Grape, policy p"
    assert report.arms["p -a -b (off)"].about.startswith("Grape, policy p without a, b; the client sends each task")
    about = report.arms["mixed-64/prewarm-priority"].about
    assert "--enable-mixed-chunk --chunked-prefill-size 64" in about and "last in the queue" in about
    assert "passes 5%" in report.sections[0].note
    assert "safety checker" in Page(PAGES["measured"]).text and "an ordinary request" in Page(PAGES["measured"]).text


@pytest.mark.parametrize(
    ("low", "high", "expected"),
    [(0.5, 0.99, "better"), (0.5, 0.997, "open"), (1.003, 1.2, "open"), (1.01, 1.2, "worse")],
)
def test_sides_are_those_of_the_printed_interval(low, high, expected):
    assert side(Ratio(value=1.0, low=low, high=high)) == expected


def test_an_indicative_and_unfinished_record_says_so():
    html = PAGES["measured"]
    warnings = [a for tag, a in Page(html).tags if a.get("class") == "warning"]
    assert len(warnings) == 2
    finished = workflow_record().model_copy(update={"indicative": False, "unfinished": 0})
    assert 'class="warning"' not in page(workflow_report(finished))


def test_machine_versions_and_settings():
    text = Page(PAGES["measured"]).text
    for part in ("a/model", "0.5.23", "0.1 before, 2 at the end", "2026-01-01", "--tp-size 1", "A=b", "built in"):
        assert part in text


def test_figures_over_load_where_there_are_several():
    assert any("search over load" in heading for heading in Page(PAGES["measured"]).headings)
    record = workflow_record()
    alone = record.model_copy(update={"workloads": record.workloads[1:]})
    html = page(workflow_report(alone))
    assert "over load" not in "".join(Page(html).headings)
    assert "Gaps at a task switch" not in html, "tasks that nobody reads have no switch"


def test_definitions_are_those_of_the_documentation():
    docs = Path(__file__).parents[4] / "docs" / "benchmarks.md"
    text = " ".join(docs.read_text(encoding="utf-8").replace("*", "").replace("`", "").split())
    for term in ("gap", "switch", "worst", "strict", "fluid limit"):
        definition = dict(READING)[term].split(". ")[0].rstrip(".")
        assert definition in text, (term, definition)
    assert set(WORKLOADS) == set(workloads.WORKLOADS)
    for tasks in WORKLOADS.values():
        assert tasks in text
