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
