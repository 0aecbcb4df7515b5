"""The templates of pages."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from pkgrepo.web.rendering.pages import Assets, PageRenderer


def test_templates_are_read_before_an_upgrade_replaces_them(monkeypatch: pytest.MonkeyPatch) -> None:
    environment = PageRenderer(Assets())._environment

    def replaced(*_: Any, **__: Any) -> Any:
        raise FileNotFoundError("it is of another version")

    with monkeypatch.context() as patch:
        for name in ("open", "read_text", "read_bytes"):
            patch.setattr(Path, name, replaced)
        names = environment.list_templates()
        assert {"frame.html", "repositories/frame.html"} & {*names}
        for each in names:
            environment.get_template(each)
