"""The queries for the content of an image use indexes, so their cost does not grow with the image."""

from __future__ import annotations

from typing import Any

import pytest

from pkgrepo.storage.catalog.images import contents
from tests.support.catalog import MemoryCatalog


class PlanRecorder:
    """A reader of an empty catalog that records the steps of each query plan."""

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
    "query",
    [
        lambda reader: contents.find_unreferenced(reader, 1, ["sha256:aa"]),
        lambda reader: contents.unreferenced_after(reader, 1, "", 10),
        lambda reader: contents.find_tags(reader, 1, ["v1"]),
        lambda reader: contents.tags_of(reader, 1, "sha256:aa", 10),
        lambda reader: contents.find_manifests(reader, 1, 1, ["sha256:aa"]),
        lambda reader: contents.find_parts(reader, 1, 1, ["sha256:" + "a" * 64]),
        lambda reader: contents.manifests_referring_to(reader, 1, ["sha256:aa"], 10),
        lambda reader: contents.children_of(reader, 1, "sha256:aa"),
    ],
)
def test_no_query_scans_all_rows_of_an_image(query: Any) -> None:
    def steps(reader: Any) -> list[str]:
        recorder = PlanRecorder(reader)
        query(recorder)
        return recorder.steps

    found = MemoryCatalog().peek(steps)
    assert found
    assert [step for step in found if step.startswith("SCAN") or step.endswith("(package_id=?)")] == []
