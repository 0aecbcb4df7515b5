"""Wheels, and damaged archives."""

import re
import tempfile
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from pkgrepo.errors import Invalid
from pkgrepo.formats.python import limits
from pkgrepo.formats.python.names import FileName, parse_filename
from pkgrepo.formats.python.upload.inspection import Inspection, inspect
from pkgrepo.formats.python.upload.metadata import meta_json, parse_metadata
from tests.support.python_packages import make_metadata, make_record, make_sdist, make_wheel, make_zip

INFO = "demo-1.0.dist-info"
NAME = "demo-1.0-py3-none-any.whl"

Inspect = Callable[..., Inspection]


@pytest.fixture
def look(tmp_path: Path) -> Inspect:
    def look_(data: bytes, filename: str = NAME) -> Inspection:
        path = tmp_path / "upload"
        path.write_bytes(data)
        return inspect(path, parse_filename(filename))

    return look_


def wheel(*, without: str = "", **members: bytes) -> bytes:
    """A wheel whose dist-info has these files; C{info} names the folder."""
    return wheel_in(INFO, without=without, **members)


def wheel_in(info: str, *, without: str = "", **members: bytes) -> bytes:
    content = {"METADATA": make_metadata("demo", "1.0"), "WHEEL": b"Wheel-Version: 1.0\n", **members}
    files = {"demo.py": b"", **{f"{info}/{name}": data for name, data in content.items() if name != without}}
    if without != "RECORD":
        files.setdefault(f"{info}/RECORD", make_record(files, f"{info}/RECORD"))
    return make_zip(files)


def test_wheel_gives_its_exact_metadata(look: Inspect) -> None:
    metadata = make_metadata("Demo.Pkg", "1.0", requires_python=">=3.8", description="Ünïcode\r\n\r\nand more")
    filename, data = make_wheel("Demo.Pkg", "1.0", metadata=metadata, pad=10_000, build="1")
    found = look(data, filename)
    assert found.metadata_bytes == metadata
    assert (found.kind, found.metadata.name, found.metadata.requires_python) == ("bdist_wheel", "Demo.Pkg", ">=3.8")


@pytest.mark.parametrize("info", [INFO, "Demo-1.0.dist-info", "demo-1.dist-info", "demo-v1.0.0.dist-info"])
def test_folder_may_spell_name_and_version_otherwise(look: Inspect, info: str) -> None:
    assert look(wheel_in(info)).metadata.name == "demo"


def test_metadata_that_is_not_utf_8_is_refused(look: Inspect) -> None:
    for metadata in (make_metadata("demo", "1.0") + b"\xff", b"Author: J\xfcrgen\n" + make_metadata("demo", "1.0")):
        with pytest.raises(Invalid, match="has a METADATA that is not UTF-8"):
            look(wheel(METADATA=metadata))


def test_vendored_metadata_further_down_does_not_count(look: Inspect) -> None:
    _, data = make_wheel("demo", "1.0", extra_files={"demo/vendor/other-2.0.dist-info/METADATA": b"x"})
    assert look(data).metadata.version == "1.0"


def test_record_quotes_odd_names_and_need_not_list_itself(look: Inspect) -> None:
    _, data = make_wheel("demo", "1.0", extra_files={'demo/a "quoted", name.txt': b"x", "demo/ä.txt": b"y"})
    assert look(data).metadata.name == "demo"
    files = {f"{INFO}/METADATA": make_metadata("demo", "1.0"), f"{INFO}/WHEEL": b""}
    record = b"".join(f"{name},,\r\n".encode() for name in files)
    signatures = {f"{INFO}/RECORD.jws": b"", f"{INFO}/RECORD.p7s": b""}
    assert look(make_zip({**files, **signatures, f"{INFO}/RECORD": record})).metadata.name == "demo"


@pytest.mark.parametrize(
    ("data", "why"),
    [
        (wheel(without="METADATA"), "must have METADATA, WHEEL and RECORD"),
        (wheel(without="WHEEL"), "must have METADATA, WHEEL and RECORD"),
        (wheel(without="RECORD"), "must have METADATA, WHEEL and RECORD"),
        (make_zip({}), "exactly one .dist-info folder, and has none"),
        (make_zip({"demo.py": b"", INFO: b""}), "exactly one .dist-info folder, and has none"),
        (make_zip({f"{INFO}/METADATA": b"", "demo-1.1.dist-info/METADATA": b""}), f"has {INFO} and demo-1.1"),
        (wheel_in("demo-1.1.dist-info"), "of another project or version"),
        (wheel_in("other-1.0.dist-info"), "of another project or version"),
        (wheel_in("demo.dist-info"), "of another project or version"),
        (wheel_in(".dist-info"), "of another project or version"),
        (wheel(RECORD=b""), "does not list, the first is 'demo.py'"),
        (wheel(RECORD=b"," * 2_000_000), "RECORD of more than"),
        (wheel(RECORD=b"a\n" * 500_000), "RECORD of more than"),
        (wheel(RECORD=b"\xff"), "RECORD that cannot be read"),
        (wheel(RECORD=b'"demo.py'), "RECORD that cannot be read"),
        (wheel(RECORD=b"a" * 200_000), "RECORD that cannot be read"),
        (wheel(METADATA=make_metadata("other", "1.0")), "its name is 'other'"),
        (wheel(METADATA=make_metadata("demo", "1.0.1")), "its version is '1.0.1'"),
        (wheel(METADATA=b""), "METADATA has no Metadata-Version"),
        (b"PK", "not a zip archive"),
    ],
)
def test_wheel_that_is_not_what_it_should_be_is_refused(look: Inspect, data: bytes, why: str) -> None:
    with pytest.raises(Invalid, match=why) as caught:
        look(data)
    assert str(caught.value).isprintable()


@pytest.mark.parametrize(("member", "limit"), [("METADATA", "METADATA_SIZE"), ("RECORD", "RECORD_SIZE")])
def test_members_that_are_read_are_limited(look: Inspect, member: str, limit: str) -> None:
    size = getattr(limits, limit)
    with pytest.raises(Invalid, match=f"{member} of more than {size} bytes"):
        look(wheel(**{member: bytes(size + 1)}))


BUILT = sorted(path for path in (Path(__file__).parents[4] / "data" / "python").glob("*/*.*"))


@pytest.mark.parametrize("path", BUILT, ids=[f"{path.parent.name}: {path.name}" for path in BUILT])
def test_what_build_tools_make_is_taken(path: Path) -> None:
    """One project, as six tools package it today; setuptools with the file names of its older releases."""
    metadata = inspect(path, parse_filename(path.name, project="demo-pkg")).metadata
    assert (metadata.name, metadata.version, metadata.summary) == ("Demo.Pkg", "1.0rc1", "A demo")
    assert (metadata.requires_python, metadata.provides_extra) == (">=3.8", ("extra",))
    needed = [re.split(r"[^a-z]", requirement)[0] for requirement in metadata.requires_dist]
    # This setuptools writes none into source distributions.
    assert needed == ([] if "setuptools" in path.parent.name and path.suffix == ".gz" else ["attrs", "click"])
    assert metadata.project_urls == ("Home, https://demo.example/",)
    assert metadata.description.rstrip() == "# Hello\n\nä"
    assert metadata.description_content_type == "text/markdown"
    assert "Jürgen" in metadata.author + metadata.author_email
    assert metadata.warnings == ()


def test_recorded_distributions_are_there() -> None:
    assert len(BUILT) == 12


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
