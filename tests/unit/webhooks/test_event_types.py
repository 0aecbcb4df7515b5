"""The types of events, and the patterns that select them."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

import pkgrepo
from pkgrepo.errors import Invalid
from pkgrepo.storage.catalog.server import audit, jobs
from pkgrepo.webhooks.event_types import EVENT_TYPES, QUIET, check_patterns, matches, type_of

ROOT = Path(pkgrepo.__file__).parent


@pytest.mark.parametrize(
    ("type", "patterns", "selected"),
    [
        ("package.published", ["package.published"], True),
        ("package.published", ["package.*"], True),
        ("package.published", ["*"], True),
        ("package.published", ["tag.*", "package.yanked"], False),
        ("cache.stored", ["*"], False),
        ("cache.stored", ["*", "cache.*"], True),
        ("cache.stored", ["cache.stored"], True),
    ],
)
def test_patterns_select_types(type: str, patterns: list[str], selected: bool) -> None:
    assert matches(type, patterns) is selected


def test_patterns_that_select_nothing_are_refused() -> None:
    assert check_patterns(["tag.*", "*", "tag.*"]) == ["*", "tag.*"]
    for wrong in ([], ["packages.*"], ["package.publishe"], ["package.publishe?"], ["[p]ackage.published"], [""]):
        with pytest.raises(Invalid):
            check_patterns(wrong)


def test_every_type_is_in_the_documentation() -> None:
    page = (ROOT / "docs" / "webhooks.md").read_text()
    rows = dict(re.findall(r"^\| `([a-z.]+)` \| (.*) \|$", page, re.MULTILINE))
    assert rows == EVENT_TYPES


def test_every_kind_of_event_has_a_known_type() -> None:
    kinds = {*audit.ANNOUNCED.values(), *jobs.ANNOUNCED.values(), "published", "repository_removed", *QUIET}
    assert {type_of(each, {}) for each in kinds} <= EVENT_TYPES.keys()
    assert type_of("rebuilt", {}) is None
    assert type_of("restored", {"reason": ""}) == "package.unyanked"
    assert type_of("restored", {"files": []}) == "package.restored"
