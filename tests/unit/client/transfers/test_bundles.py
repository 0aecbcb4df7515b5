"""What a bundle gets of a repository."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any

import msgspec
import pytest

from pkgrepo.archives.bundle_file import Facts
from pkgrepo.client.transfers.bundles import Bundling, add_listed, select


async def yanked_gems() -> AsyncIterator[Any]:
    """Gems of which two versions are yanked."""
    for version in ("1.0.0", "2.0.0"):
        gem = f"gems/left-{version}.gem"
        known = {"package": "left", "version": version, "publisher": "", "state": "yanked", "reason": ""}
        yield {"kind": "file", "path": f".yanked/{gem}", "address": gem, "withheld": True, **known}


@pytest.mark.parametrize("is_chosen", [False, True])
async def test_yanks_of_gems_travel_and_are_missing_for_lock_files(is_chosen: bool) -> None:
    writer: Any = None
    work = Bundling(None, "main/gems", writer, Facts(format="ruby"), {})
    await add_listed(work, yanked_gems(), is_chosen=is_chosen)
    assert {text: each.state for text, each in work.facts.packages["left"].versions.items()} == {
        "1.0.0": "yanked",
        "2.0.0": "yanked",
    }
    missing = [f"gems/left-{version}.gem: it is yanked" for version in ("1.0.0", "2.0.0")]
    assert work.withheld == (missing if is_chosen else [])


@pytest.mark.parametrize(
    ("document", "selection", "kept"),
    [
        (
            {
                "name": "left",
                "versions": {text: {"dist": {"tarball": f"http://x/left-{text}.tgz"}} for text in ("1", "2")},
                "dist-tags": {"latest": "2", "old": "1"},
                "time": {"1": "then", "2": "now", "modified": "now"},
            },
            {"files": {"versions": ["dist", "tarball"]}, "keys": ["time"], "values": ["dist-tags"], "whole": None},
            {
                "name": "left",
                "versions": {"1": {"dist": {"tarball": "http://x/left-1.tgz"}}},
                "dist-tags": {"old": "1"},
                "time": {"1": "then"},
            },
        ),
        (
            {"info": {"subdir": "noarch"}, "packages": {"left-1.tgz": {"a": 1}, "right-1.tgz": {}}, "removed": []},
            {"files": {"packages": [], "packages.conda": []}, "keys": [], "values": [], "whole": ["info"]},
            {"info": {"subdir": "noarch"}, "packages": {"left-1.tgz": {"a": 1}}, "packages.conda": {}},
        ),
    ],
)
def test_a_document_has_the_entries_of_the_files_that_are_there(document: Any, selection: Any, kept: Any) -> None:
    found = select(msgspec.json.encode(document), selection, {"left-1.tgz", "right-2.tgz"})
    assert msgspec.json.decode(found) == kept
