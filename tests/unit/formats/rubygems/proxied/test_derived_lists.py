"""Names and rows of the legacy index, derived from a list of versions."""

from __future__ import annotations

import gzip

import pytest

from pkgrepo.formats.rubygems.index.list_files import ListFile, ListWriter
from pkgrepo.formats.rubygems.legacy import join_rows, list_row
from pkgrepo.formats.rubygems.proxied import derived_lists
from pkgrepo.formats.rubygems.proxied.derived_lists import write_names, write_specs

SUM = "0" * 32
LINES = f"""\
b 1.0.0,1.1.0,1.1.0-java {SUM}
a 0.9,1.0.pre {SUM}
gone 1.0.0 {SUM}
b 2.0.0.rc1,1.10.0 {SUM}
gone -1.0.0 6105347ebb9825ac754615ca55ff3b0c
b -1.1.0 {SUM}
\xe4 1.0 {SUM}
b 1-2-,../x {SUM}
c 1.0.0 {SUM}
c -1.0.0 6105347ebb9825ac754615ca55ff3b0c
c 1.0.0 {SUM}
"""


@pytest.fixture(params=[20, 1024 * 1024])
def listed(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> ListFile:
    """The list, read in pieces of this length."""
    writer = ListWriter.new()
    writer.add(b"created_at: 2024-01-01T00:00:00Z\n---\n" + LINES.encode("latin-1"))
    monkeypatch.setattr(derived_lists, "READ", max(request.param, 40))
    return writer.end()


@pytest.mark.parametrize(
    ("file", "rows"),
    [
        ("specs.4.8.gz", ["a 0.9", "b 1.0.0", "b 1.1.0 java", "b 1.10.0", "c 1.0.0"]),
        ("latest_specs.4.8.gz", ["a 0.9", "b 1.10.0", "b 1.1.0 java", "c 1.0.0"]),
        ("prerelease_specs.4.8.gz", ["a 1.0.pre", "b 2.0.0.rc1"]),
    ],
)
def test_rows_are_those_of_live_versions(listed: ListFile, file: str, rows: list[str]) -> None:
    expected = [list_row(*(f"{each} ruby".split()[:3])) for each in rows]
    assert gzip.decompress(write_specs(listed, file).read()) == join_rows(expected)


def test_an_empty_list_has_no_rows() -> None:
    writer = ListWriter.new()
    writer.add(b"created_at: 2024-01-01T00:00:00Z\n---\n")
    assert gzip.decompress(write_specs(writer.end(), "specs.4.8.gz").read()) == join_rows([])


def test_names_are_those_with_live_versions(listed: ListFile) -> None:
    assert write_names(listed).read() == b"---\na\nb\nc\n\xe4\n"
