"""Documents with one entry per line: binary search, and changes by copying the rest."""

from __future__ import annotations

import io
import json
import tempfile
from collections.abc import Mapping
from pathlib import Path

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pkgrepo.errors import Invalid
from pkgrepo.repositories.layout import line_documents
from pkgrepo.repositories.layout.line_documents import Form, LineWriter, open_document

FORM: Form[str] = Form(b'{"key":"app","entries":[', lambda entry: str(json.loads(entry)["n"]))
NAMES = st.text(st.sampled_from("ab\n,]é"), max_size=3)
ENTRIES = st.dictionaries(NAMES, st.integers(0, 3), max_size=12)
CHANGES = st.dictionaries(NAMES, st.none() | st.integers(0, 3), max_size=6)


def entry(name: str, value: int) -> bytes:
    return msgspec.json.encode({"n": name, "v": value})


def render(entries: Mapping[str, int]) -> bytes:
    return FORM.render(entry(name, entries[name]) for name in sorted(entries))


def change(data: bytes, changes: Mapping[str, int | None]) -> bytes | None:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "document")
        path.write_bytes(data)
        sink = io.BytesIO()
        with open_document(FORM, path) as document:
            written = document.write_changed(
                {name: None if value is None else entry(name, value) for name, value in changes.items()}, sink
            )
        return sink.getvalue() if written else None


def test_a_document_is_json_with_one_entry_per_line() -> None:
    data = render({"b": 1, "a": 2})
    assert json.loads(data) == {"key": "app", "entries": [{"n": "a", "v": 2}, {"n": "b", "v": 1}]}
    assert data.splitlines()[1:3] == [b'{"n":"a","v":2},', b'{"n":"b","v":1}']
    assert json.loads(render({})) == {"key": "app", "entries": []}


@given(ENTRIES, CHANGES)
def test_a_changed_document_equals_a_rendered_one(entries: dict[str, int], changes: dict[str, int | None]) -> None:
    after = {name: value for name, value in (entries | changes).items() if value is not None}
    assert change(render(entries), changes) == (None if after == entries else render(after))


@given(ENTRIES, NAMES)
def test_every_entry_is_found_and_nothing_else(entries: dict[str, int], other: str) -> None:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "document")
        path.write_bytes(render(entries))
        with open_document(FORM, path) as document:
            for name, value in entries.items():
                assert document.find(name) == entry(name, value)
            assert other in entries or document.find(other) is None


@given(ENTRIES, st.integers(1, 4))
def test_a_document_written_in_pages_is_the_same(entries: dict[str, int], size: int) -> None:
    sink = io.BytesIO()
    writer = LineWriter(FORM, sink)
    names = sorted(entries)
    for start in range(0, len(names), size):
        writer.add([entry(name, entries[name]) for name in names[start : start + size]])
    writer.add([])
    writer.end()
    assert sink.getvalue() == render(entries)


def test_copied_ranges_are_read_in_pieces() -> None:
    entries = {f"{number:05}": number for number in range(50_000)}
    document = render(entries)
    assert len(document) > 3 * line_documents._PIECE
    assert change(document, {"40000": 1, "50000": 2}) == render({**entries, "40000": 1, "50000": 2})


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"{}",
        render({"a": 1})[:-1],
        render({"a": 1}).replace(b"app", b"another"),
        json.dumps(json.loads(render({"a": 1})), indent=1).encode(),
    ],
)
def test_a_document_of_another_form_is_refused(data: bytes) -> None:
    with pytest.raises(Invalid):
        change(data, {"a": 2})


def test_a_missing_document_is_refused(tmp_path: Path) -> None:
    with pytest.raises(Invalid), open_document(FORM, tmp_path / "none"):
        pass
