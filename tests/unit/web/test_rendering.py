"""The templates of pages."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from pkgrepo.gateway.format import Look
from pkgrepo.web.rendering.pages import Assets, PageRenderer


def test_templates_are_read_before_an_upgrade_replaces_them(monkeypatch: pytest.MonkeyPatch) -> None:
    renderer = PageRenderer(Assets())
    environment = renderer._environment(renderer.languages["en"])

    def replaced(*_: Any, **__: Any) -> Any:
        raise FileNotFoundError("it is of another version")

    with monkeypatch.context() as patch:
        for name in ("open", "read_text", "read_bytes"):
            patch.setattr(Path, name, replaced)
        names = environment.loader.list_templates()
        assert {"frame.html", "repositories/frame.html"} & {*names}
        for each in names:
            environment.get_template(each)


def test_icons_and_colours_are_those_that_formats_say() -> None:
    drawn = Look(icon='<path d="M1 2"/>', light="#111111", dark="#eeeeee")
    assets = Assets((("drawn", drawn), ("plain", Look())))
    icons, style = (
        assets._documents[assets.address(name).rpartition("/")[2]].body.decode() for name in ("icons.svg", "style.css")
    )
    assert '<symbol id="f-drawn" viewBox="0 0 24 24"><path d="M1 2"/></symbol>' in icons
    assert f'<symbol id="f-plain" viewBox="0 0 24 24">{Look().icon}</symbol>' in icons
    light, _, dark = style.rpartition("@media (prefers-color-scheme: dark)")
    assert ".f-drawn { --tone: #111111 }" in light
    assert ".f-drawn { --tone: #eeeeee }" in dark
    assert ".f-plain" not in style
