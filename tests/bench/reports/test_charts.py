"""Bar charts."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from xml.etree import ElementTree as ET

from tests.bench.arena import RATE, Arena, Result, Scenario, Trial
from tests.bench.reports.charts import render_chart

SVG = "{http://www.w3.org/2000/svg}"


def prepare(arena: Arena, name: str) -> Trial:
    raise AssertionError("a report runs nothing")


def result(about: str, rounds: Mapping[str, Sequence[Mapping[str, float]]]) -> Result:
    lineup = ("pkgrepo", "peer", "absent")
    scenario = Scenario(name="x", about=about, lineup=lineup, metrics=(RATE,), prepare=prepare, stock="any")
    return Result(scenario=scenario, rounds=rounds, versions={"peer": "1.2"})


def test_a_bar_is_as_long_as_its_figure() -> None:
    text = render_chart("a < b", [result("reads & more", {"pkgrepo": [{"rate": 1000.0}], "peer": [{"rate": 250.0}]})])
    picture = ET.fromstring(text)
    ours, peer = (float(bar.attrib["width"]) for bar in picture.findall(f"{SVG}rect")[1:])
    assert abs(ours / peer - 4) < 0.01
    texts = [each.text for each in picture.findall(f"{SVG}text")]
    assert texts == ["a < b", "reads & more: requests/s", "pkgrepo", "1,000", "peer 1.2", "250"]


def test_a_scenario_with_one_server_has_no_block() -> None:
    picture = ET.fromstring(render_chart("one", [result("alone", {"pkgrepo": [{"rate": 1.0}]})]))
    assert [each.text for each in picture.findall(f"{SVG}text")] == ["one"]


def test_a_figure_of_nothing_has_a_bar() -> None:
    nothing: Mapping[str, Sequence[Mapping[str, float]]] = {"pkgrepo": [{"rate": 0.0}], "peer": [{"rate": 0.0}]}
    picture = ET.fromstring(render_chart("nothing", [result("none", nothing)]))
    assert len(picture.findall(f"{SVG}rect")) == 3
