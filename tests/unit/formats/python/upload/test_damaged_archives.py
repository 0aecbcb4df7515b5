"""Whatever arrives, an upload is taken or refused with a sentence; nothing else comes out of it."""

import tempfile
from pathlib import Path

from hypothesis import example, given
from hypothesis import strategies as st

from pkgrepo.errors import Invalid
from pkgrepo.formats.python.names import FileName, parse_filename
from pkgrepo.formats.python.upload.inspection import inspect
from pkgrepo.formats.python.upload.metadata import meta_json, parse_metadata
from tests.support.python_packages import make_sdist, make_wheel

SAMPLES = [make_wheel("demo", "1.0"), make_sdist("demo", "1.0"), make_sdist("demo", "1.0", ending=".zip")]

patches = st.lists(st.tuples(st.floats(0, 1), st.binary(max_size=4), st.integers(0, 4)), min_size=1, max_size=4)


def outcome(data: bytes, filename: FileName) -> str:
    """The name in the metadata, or the sentence of the refusal."""
    with tempfile.NamedTemporaryFile() as file:
        file.write(data)
        file.flush()
        try:
            return inspect(Path(file.name), filename).metadata.name
        except Invalid as error:
            return str(error)


@given(st.sampled_from(SAMPLES), patches)
def test_damaged_upload_is_taken_or_refused(sample: tuple[str, bytes], changes: list[tuple[float, bytes, int]]) -> None:
    name, data = sample
    for place, new, gone in changes:
        at = int(place * len(data))
        data = data[:at] + new + data[at + gone :]
    assert outcome(data, parse_filename(name)).isprintable()


@given(st.sampled_from([name for name, _ in SAMPLES]), st.binary(max_size=1500))
def test_arbitrary_bytes_are_refused(name: str, data: bytes) -> None:
    assert outcome(data, parse_filename(name)).startswith(f"{name} ")


@given(st.binary())
@example(b"Requires-Dist: " + b"(" * 3000)
@example(b"From x\nName: y")
@example(b"Summary: =?utf-8?q?x?=\n")
@example(b": x\n")
@example(b"\x00: \x00\n")
def test_metadata_of_any_bytes_is_taken_or_refused(tail: bytes) -> None:
    for head in (b"", b"Metadata-Version: 2.1\nName: demo\nVersion: 1\n"):
        try:
            metadata = parse_metadata(head + tail, "METADATA")
        except Invalid:
            continue
        assert meta_json(metadata)["name"] == "demo"
