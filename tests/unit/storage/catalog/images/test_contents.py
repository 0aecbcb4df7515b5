"""What an image consists of: looked for by what was named, however many tags the image has."""

from __future__ import annotations

from typing import Any

import pytest

from pkgrepo.storage.catalog.images import contents
from tests.support.catalog import MemoryCatalog


class Plans:
    """Answers queries as a catalog without a row does, and notes how it looked for what."""

    def __init__(self, reader: Any) -> None:
        self._reader = reader
        self.steps: list[str] = []

    def one(self, sql: str, parameters: Any = ()) -> Any:
        found = self.all(sql, parameters)
        return found[0] if found else None

    def all(self, sql: str, parameters: Any = ()) -> Any:
        self.steps += [str(row[3]) for row in self._reader.all(f"EXPLAIN QUERY PLAN {sql}", parameters)]
        return self._reader.all(sql, parameters)


@pytest.mark.parametrize(
    "look",
    [
        lambda reader: contents.find_loose(reader, 1, ["sha256:aa"]),
        lambda reader: contents.loose_after(reader, 1, "", 10),
        lambda reader: contents.find_tags(reader, 1, ["v1"]),
        lambda reader: contents.tags_of(reader, 1, "sha256:aa", 10),
        lambda reader: contents.find_manifests(reader, 1, 1, ["sha256:aa"]),
        lambda reader: contents.find_parts(reader, 1, 1, ["sha256:" + "a" * 64]),
        lambda reader: contents.manifests_naming(reader, 1, ["sha256:aa"], 10),
        lambda reader: contents.children_of(reader, 1, "sha256:aa"),
    ],
)
def test_nothing_is_looked_for_through_the_whole_image(look: Any) -> None:
    def steps(reader: Any) -> list[str]:
        plans = Plans(reader)
        look(plans)
        return plans.steps

    found = MemoryCatalog().peek(steps)
    assert found
    assert [step for step in found if step.startswith("SCAN") or step.endswith("(package_id=?)")] == []
