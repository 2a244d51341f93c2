"""The drawing of a profile."""

from __future__ import annotations

import math
import xml.etree.ElementTree as ET

from sglang_ext.bench.step_cost.plot import draw
from sglang_ext.profile.profile import Measurement
from tests.sglang_ext.profile.profiles import profile

SVG = "{http://www.w3.org/2000/svg}"


def test_it_is_one_svg_with_each_measurement_and_the_models_lines() -> None:
    found = profile(model="a <model> & more")
    drawing = ET.fromstring(draw(found))
    text = "".join(drawing.itertext())
    assert "a <model> & more, bfloat16, a CPU, 2 threads: 3 make-ups of a step, mean error 4.0%" in text
    circles = drawing.findall(f"{SVG}circle")
    # Four of the legend, all over the tokens, those without prefill over the KV.
    assert len(circles) == 4 + 3 + 1
    assert len(drawing.findall(f"{SVG}polyline")) == 8
    numbers = [
        float(n) for line in drawing.iter(f"{SVG}polyline") for n in line.get("points", "").replace(",", " ").split()
    ]
    assert numbers and all(math.isfinite(n) for n in numbers)
    assert "http" not in draw(found).replace("http://www.w3.org/2000/svg", "")


def test_a_longer_step_stands_higher() -> None:
    slow, quick = (
        Measurement(setting=i, visit=i, rows=4, context=400, pieces=(), seconds=(seconds,))
        for i, seconds in enumerate((0.2, 0.02))
    )
    drawing = ET.fromstring(draw(profile(measurements=(slow, quick))))
    circles = [c for c in drawing.findall(f"{SVG}circle") if c.get("r") == "2.5"]
    assert float(circles[0].get("cy", "")) < float(circles[1].get("cy", ""))


def test_prefill_alone_and_one_measurement_can_be_drawn() -> None:
    only = Measurement(setting=0, visit=0, rows=0, context=0, pieces=((0, 8),), seconds=(0.03,))
    assert len(ET.fromstring(draw(profile(measurements=(only,)))).findall(f"{SVG}polyline")) == 4
