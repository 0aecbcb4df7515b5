"""Conversion of wheels: what the conda package contains, and which wheels are refused."""

import io
import json
import tarfile
import zipfile

import pytest
import zstandard

from pkgrepo.errors import Invalid
from pkgrepo.formats.conda.package_metadata import read_package
from pkgrepo.formats.conda.wheels import conversion
from pkgrepo.formats.conda.wheels.conversion import convert_wheel, read_wheel_name
from tests.support.python_packages import make_wheel

INFO = "demo-1.0.dist-info"
COMMANDS = "[console_scripts]\nDemo-run = demo.cli : main [extra]\n[gui_scripts]\nwin=demo:app.start\n[other]\nx = y\n"
FILES = {
    "demo/ünï.txt": b"data",
    "demo/__pycache__/__init__.cpython-311.pyc": b"compiled",
    "demo/" + "deep/" * 40 + "x.py": b"",
    f"{INFO}/entry_points.txt": COMMANDS.encode(),
    f"{INFO}/INSTALLER": b"pip",
    "demo-1.0.data/purelib/more.py": b"more = 1\n",
    "demo-1.0.data/platlib/most.py": b"most = 1\n",
    "demo-1.0.data/scripts/demo-script": b"#!python -E\nprint(1)\n",
    "demo-1.0.data/scripts/demo-shell": b"#!/bin/sh\n#!python\n",
    "demo-1.0.data/data/share/demo/x.txt": b"x",
}


def converted(**options):
    filename, data = make_wheel(options.pop("name", "demo"), options.pop("version", "1.0"), **options)
    return convert_wheel(data, filename, 1)


def unpack(package):
    """The files of a package by their paths, those of ``info`` first."""
    found = {}
    with zipfile.ZipFile(io.BytesIO(package.data)) as archive:
        for member in archive.namelist()[1:]:
            stream = zstandard.ZstdDecompressor().stream_reader(archive.read(member))
            with tarfile.open(fileobj=io.BytesIO(stream.read())) as tar:
                found |= {each.name: (tar.extractfile(each).read(), each.mode) for each in tar}
    return found


def test_a_wheel_becomes_a_package_that_a_channel_takes():
    package = converted(
        requires_python=">=3.8",
        summary="A demo",
        fields=[("License-Expression", "MIT"), ("Requires-Dist", "other>=2"), ("Home-page", "https://example.com")],
    )
    assert str(package.name) == "demo-1.0-py_0.conda"
    description = read_package(package.data, package.name)
    assert description.index["depends"] == ["python >=3.8", "other >=2"]
    assert (description.index["noarch"], description.index["subdir"]) == ("python", "noarch")
    assert description.about == {"home": "https://example.com", "license": "MIT", "summary": "A demo"}
    assert description == package.description


def test_files_have_the_places_of_a_noarch_package():
    found = unpack(converted(extra_files=FILES))
    site = {path.removeprefix("site-packages/") for path in found if path.startswith("site-packages/")}
    expected = {"demo/__init__.py", "demo/ünï.txt", "demo/" + "deep/" * 40 + "x.py", "more.py", "most.py"}
    names = ("METADATA", "WHEEL", "RECORD", "INSTALLER", "entry_points.txt")
    assert site == expected | {f"{INFO}/{name}" for name in names}
    assert found["python-scripts/demo-script"] == (b"#!/usr/bin/env python -E\nprint(1)\n", 0o755)
    assert found["python-scripts/demo-shell"] == (b"#!/bin/sh\n#!python\n", 0o755)
    assert found["share/demo/x.txt"] == (b"x", 0o644)
    assert found[f"site-packages/{INFO}/INSTALLER"][0] == b"conda\n"
    record = found[f"site-packages/{INFO}/RECORD"][0].decode()
    assert "demo/__init__.py" in record
    assert ".data/" not in record


def test_the_documents_list_commands_and_files():
    found = unpack(converted(extra_files=FILES))
    link = json.loads(found["info/link.json"][0])
    assert link["noarch"] == {"type": "python", "entry_points": ["Demo-run = demo.cli:main", "win = demo:app.start"]}
    paths = json.loads(found["info/paths.json"][0])["paths"]
    payload = {path: len(data) for path, (data, _) in found.items() if not path.startswith("info/")}
    assert {each["_path"]: each["size_in_bytes"] for each in paths} == payload
    assert found["info/files"][0].decode().splitlines() == [each["_path"] for each in paths] == sorted(payload)


def test_headers_of_members_are_those_of_tarfile(monkeypatch):
    def header(path, size, mode):
        member = tarfile.TarInfo(path)
        member.size, member.mtime, member.mode = size, conversion.SECONDS, mode
        return member.tobuf(tarfile.GNU_FORMAT)

    before = converted(extra_files=FILES | {"demo/big": bytes(100_000)})
    monkeypatch.setattr(conversion, "_header", header)
    assert converted(extra_files=FILES | {"demo/big": bytes(100_000)}).data == before.data


def test_the_same_wheel_gives_the_same_bytes(monkeypatch):
    before = converted(extra_files=FILES)
    monkeypatch.setattr(zipfile.time, "time", lambda: 1e9)
    assert converted(extra_files=FILES).data == before.data


@pytest.mark.parametrize(
    ("filename", "package"),
    [
        ("Demo_Pkg-1.0rc1-py3-none-any.whl", "demo-pkg-1.0rc1-py_0.conda"),
        ("demo-1.0-7-py3-none-any.whl", "demo-1.0-py_7.conda"),
        ("demo-1.0-py2.py3-none-any.whl", "demo-1.0-py_0.conda"),
        ("demo-1!1.0.post1+local.2-py38-none-any.whl", "demo-1!1.0.post1+local.2-py_0.conda"),
        ("torch-2.0-py3-none-any.whl", "pytorch-2.0-py_0.conda"),
    ],
)
def test_the_file_name_says_the_package(filename, package):
    assert str(read_wheel_name(filename).package) == package


@pytest.mark.parametrize(
    "filename",
    [
        "demo-1.0-py2-none-any.whl",
        "demo-1.0-cp311-cp311-manylinux_2_17_x86_64.whl",
        "demo-1.0-py3-none-linux_x86_64.whl",
        "demo-1.0-cp311-abi3-any.whl",
        f"demo-1.0-{'9' * 30}-py3-none-any.whl",
        f"{'d' * 150}-1.0-py3-none-any.whl",
        "demo-1.0.whl",
    ],
)
def test_wheels_for_some_systems_only_are_refused(filename):
    with pytest.raises(Invalid):
        read_wheel_name(filename)


REFUSED = {
    "impure": {f"{INFO}/WHEEL": b"Wheel-Version: 1.0\nRoot-Is-Purelib: false\nTag: py3-none-any\n"},
    "headers": {"demo-1.0.data/headers/x.h": b""},
    "unknown kind": {"demo-1.0.data/x": b""},
    "script in a folder": {"demo-1.0.data/scripts/a/b": b""},
    "conda's history": {"demo-1.0.data/data/conda-meta/history": b""},
    "conda's folder in capitals": {"demo-1.0.data/data/INFO/index.json": b""},
    "site-packages": {"demo-1.0.data/data/site-packages/x.py": b""},
    "one place twice": {"x.py": b"", "demo-1.0.data/purelib/x.py": b""},
    "one place in two cases": {"x.py": b"", "X.py": b""},
    "second dist-info": {"other-1.0.dist-info/METADATA": b""},
    "command that leaves its folder": {f"{INFO}/entry_points.txt": b"[console_scripts]\n../x = a:b\n"},
    "command that is code": {f"{INFO}/entry_points.txt": b"[console_scripts]\nx = a:b;import os\n"},
    "malformed commands": {f"{INFO}/entry_points.txt": b"x\n"},
    "commands that are no text": {f"{INFO}/entry_points.txt": b"\xff"},
    "huge commands": {f"{INFO}/entry_points.txt": b"#" * 65537},
    "thousands of commands": {
        f"{INFO}/entry_points.txt": b"[console_scripts]\n" + b"".join(b"c%d = a:b\n" % n for n in range(1001))
    },
    "huge script": {"demo-1.0.data/scripts/x": bytes(1024 * 1024 + 1)},
}


@pytest.mark.parametrize("why", REFUSED)
def test_hostile_and_unfit_wheels_are_refused(why):
    with pytest.raises(Invalid):
        _convert_with(REFUSED[why])


def test_a_wheel_that_is_too_large_is_refused_before_it_is_unpacked(monkeypatch):
    filename, data = make_wheel("demo", "1.0", extra_files={"x": bytes(3000)})
    for limit in ("WHEEL_UNPACKED", "WHEEL_SIZE"):
        with monkeypatch.context() as patched:
            patched.setattr(conversion, limit, 200)
            patched.setattr(conversion, "_pack_payload", lambda _: pytest.fail("it was unpacked"))
            with pytest.raises(Invalid):
                convert_wheel(data, filename, 1)


def test_damaged_and_cut_wheels_are_refused():
    filename, data = make_wheel("demo", "1.0", pad=1000)
    at = data.index(b"padding.bin") + 500
    for broken in (b"", data[:-1], data[1:], data[:at] + b"damage" + data[at + 6 :]):
        with pytest.raises(Invalid):
            convert_wheel(broken, filename, 1)


def _convert_with(files):
    filename, data = make_wheel("demo", "1.0")
    with zipfile.ZipFile(io.BytesIO(data)) as old:
        members = {name: old.read(name) for name in old.namelist()} | files
    target = io.BytesIO()
    with zipfile.ZipFile(target, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in members.items():
            archive.writestr(name, content)
    return convert_wheel(target.getvalue(), filename, 1)
