"""Links in the project's pages lead to files that exist."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PAGES = ("README.md", "pkgrepo/README.md")


@pytest.mark.parametrize("page", PAGES)
def test_links_to_files_resolve(page):
    text = (ROOT / page).read_text()
    links = re.findall(r"\]\(([^)#:]+)\)", text)
    assert links
    assert [link for link in links if not (ROOT / page).parent.joinpath(link).exists()] == []


@pytest.mark.parametrize("page", ["CONTRIBUTING.md", "pkgrepo/README.md", "pkgrepo/docs/architecture.md"])
def test_modules_that_pages_name_are_there(page):
    modules = {f"/{path.relative_to(ROOT).as_posix()}" for path in ROOT.glob("[pt]*/**/*.py")}
    named = set(re.findall(r"`([a-z][\w/]*\.py)`", (ROOT / page).read_text()))
    assert named
    assert [each for each in sorted(named) if not any(path.endswith(f"/{each}") for path in modules)] == []
