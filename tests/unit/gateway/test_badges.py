from xml.etree import ElementTree as ET

import pytest

from pkgrepo.gateway.badges import COLOR, LONGEST, render_badge


@pytest.mark.parametrize("text", ["1.0", "<script>alert(1)</script>", "\"&'", "x" * 1000, "\x00\x07", "é", ""])
def test_a_badge_is_wellformed_whatever_its_texts(text):
    for color in (None, "f00", "00ff00", "green", '"/><script>', "#fff", "x" * 50, "url(x)"):
        svg = render_badge(text, text, color)
        root = ET.fromstring(svg)
        assert "script" not in {each.tag.rpartition("}")[2] for each in root.iter()}
        fills = {each.get("fill") for each in root.iter()} - {None, "#fff", "#555"}
        expected = {"f00": "#f00", "00ff00": "#00ff00", "green": "green"}.get(color, COLOR)
        assert fills == {expected}
        assert len(root[0].text) <= 2 * LONGEST + 2
