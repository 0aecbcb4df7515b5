"""The packages that are made for drills: of the shape of the table, harmless, and read as those of an upstream."""

from __future__ import annotations

import hashlib
import io
import tarfile
import zipfile
from collections.abc import Iterator

import pytest

from pkgrepo.composition.core import make_formats
from pkgrepo.config import read_config
from pkgrepo.proxy.incidents.corpus import incidents
from pkgrepo.proxy.incidents.making import filler
from pkgrepo.proxy.incidents.shapes import UPSTREAM, Affected, Made, Published
from pkgrepo.proxy.parts.jobs import normaliser_of
from pkgrepo.proxy.parts.values import Context

FORMATS = make_formats(read_config(environ={}))
PACKAGES = [pytest.param(each.format, one, id=one.name) for each in incidents() for one in each.packages]
LARGEST = 64 * 1024  # bytes of an archive
HARMLESS = ("//", "#", "name:", "")


def made_of(format: str, package: Affected) -> dict[str, tuple[Published, Made]]:
    proxied = FORMATS[format].proxied
    assert proxied is not None
    assert proxied.drilled is not None
    return {each.version: (each, proxied.drilled.make(package.name, each)) for each in package.versions}


def members(made: Made) -> Iterator[tuple[str, bytes]]:
    """The files in an archive, and in one in it."""
    if zipfile.is_zipfile(io.BytesIO(made.content)):
        with zipfile.ZipFile(io.BytesIO(made.content)) as archive:
            yield from ((each, archive.read(each)) for each in archive.namelist())
        return
    with tarfile.open(fileobj=io.BytesIO(made.content)) as archive:
        for each in archive:
            file = archive.extractfile(each)
            assert file is not None
            content = file.read()
            yield each.name, content
            if each.name == "data.tar.gz":
                yield from members(Made("", content))


@pytest.mark.parametrize(("format", "package"), PACKAGES)
def test_an_archive_has_inside_what_the_table_says_and_is_small(format: str, package: Affected) -> None:
    look = FORMATS[format].inside
    assert look is not None
    for version, (published, made) in made_of(format, package).items():
        expected = set(published.inside)
        if "native_build" in expected or published.sdist:
            expected.add("install_script")  # by which it is built
        assert look(made.content, made.path).words == expected, version
        assert len(made.content) < LARGEST
        assert made_of(format, package)[version][1] == made  # the same each time


@pytest.mark.parametrize(("format", "package"), PACKAGES)
def test_no_archive_has_code_in_it(format: str, package: Affected) -> None:
    for _, made in made_of(format, package).values():
        for name, content in members(made):
            if name.endswith((".js", ".py", ".rb", ".pth")):
                assert all(line.startswith(("//", "#")) for line in content.decode().splitlines()), name
            if name.endswith(".sh"):
                assert content == b"#!/bin/sh\nexit 0\n"


@pytest.mark.parametrize(("format", "package"), PACKAGES)
def test_the_document_is_read_by_the_normaliser_with_its_times_and_digests(format: str, package: Affected) -> None:
    format_, made = FORMATS[format], made_of(format, package)
    proxied = format_.proxied
    assert proxied is not None
    assert proxied.drilled is not None
    request = proxied.document_request(format_.package_key(package.name))
    body = proxied.drilled.document(package.name, made, UPSTREAM)
    context = Context(name=request.name, url=next(iter(request.urls(UPSTREAM))))
    entries = {each.version: each for each in normaliser_of(request.normaliser)(body, context).entries}
    assert entries.keys() == made.keys()
    for version, (published, file) in made.items():
        entry = entries[version]
        assert entry.published_ms == published.at_ms
        (source,) = [each for each in entry.files if each.path == file.path]
        ((algorithm, digest),) = source.digests.items()
        assert digest == hashlib.new(algorithm, file.content).hexdigest()


def test_code_is_as_large_and_as_dense_as_the_table_says() -> None:
    at = incidents()[0].published_at
    lines = filler(Published("1", at, kib=4), "#")
    dense = filler(Published("1", at, kib=4, dense=True), "#")
    assert 4096 <= len(lines) < 4300
    assert 4000 <= len(dense) <= 4097
    assert (lines.count(b"\n") > 40, dense.count(b"\n")) == (True, 1)
