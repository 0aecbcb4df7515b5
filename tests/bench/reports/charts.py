"""Bar charts of results as SVG: a block for each scenario, a bar for each server, as long as its leading figure."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from xml.etree import ElementTree as ET

from tests.bench.arena import OURS, Result

from .tables import median

WIDTH, NAMES, VALUES = 820, 240, 190  # pixels: of the picture, of the column of names, and of that of figures
ROW, GAP, TITLE = 16, 14, 20  # pixels: heights of a bar with its space, of the space after a block, and of its title
COLOURS = {"ours": "#2f6f4f", "peer": "#b3b9c0"}


def render_chart(title: str, results: Iterable[Result]) -> str:
    """A picture of the results of one group; those that only one server has are left out."""
    blocks = [(result, _bars(result)) for result in results]
    blocks = [(result, bars) for result, bars in blocks if len(bars) > 1]
    height = 2 * TITLE + sum(TITLE + ROW * len(bars) + GAP for _, bars in blocks)
    picture = ET.Element(
        "svg",
        xmlns="http://www.w3.org/2000/svg",
        viewBox=f"0 0 {WIDTH} {height}",
        width=str(WIDTH),
        height=str(height),
        role="img",
    )
    ET.SubElement(picture, "title").text = title
    ET.SubElement(picture, "rect", width="100%", height="100%", fill="#ffffff")
    _text(picture, 12, TITLE, title, weight="bold", size=15)
    top = 2 * TITLE
    for result, bars in blocks:
        _text(picture, 12, top + 13, f"{result.scenario.about}: {result.scenario.metrics[0].title}", size=12)
        top = _block(picture, top + TITLE, result, bars) + GAP
    return ET.tostring(picture, encoding="unicode") + "\n"


def _bars(result: Result) -> Sequence[tuple[str, float]]:
    metric = result.scenario.metrics[0]
    figures = ((name, median(result, name, metric)) for name in result.scenario.lineup)
    return [(name, value) for name, value in figures if value is not None]


def _block(picture: ET.Element, top: int, result: Result, bars: Sequence[tuple[str, float]]) -> int:
    metric = result.scenario.metrics[0]
    longest = max(value for _, value in bars) or 1.0
    for name, value in bars:
        length = max(1.0, (WIDTH - NAMES - VALUES) * value / longest)
        colour = COLOURS["ours" if name.startswith(OURS) else "peer"]
        attributes = {"x": str(NAMES), "y": str(top + 2), "width": f"{length:.1f}", "height": str(ROW - 4)}
        ET.SubElement(picture, "rect", attributes, fill=colour)
        _text(picture, NAMES - 8, top + 12, f"{name} {result.versions.get(name, '')}".strip(), anchor="end")
        _text(picture, NAMES + length + 6, top + 12, metric.show(value))
        top += ROW
    return top


def _text(
    picture: ET.Element, x: float, y: float, text: str, *, anchor: str = "start", weight: str = "normal", size: int = 11
) -> None:
    attributes = {"x": f"{x:.1f}", "y": f"{y:.1f}", "text-anchor": anchor, "font-weight": weight}
    attributes |= {"font-family": "system-ui, sans-serif", "font-size": str(size), "fill": "#24292f"}
    ET.SubElement(picture, "text", attributes).text = text
