"""That the metadata of a file of an upstream cannot be read is kept with it: rules ask also when it is hosted."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from pkgrepo.formats.conda.format import conda
from pkgrepo.formats.conda.proxied.restoring import make_release as conda_release
from pkgrepo.formats.maven.format import maven
from pkgrepo.formats.maven.proxied.questions import release_of as maven_release
from pkgrepo.formats.npm.format import npm
from pkgrepo.formats.npm.packument.document import FULL, SHORT
from pkgrepo.formats.npm.proxied.upstream import release_of as npm_release
from pkgrepo.formats.python.format import python
from pkgrepo.formats.python.index.pages import JSON_PAGE
from pkgrepo.formats.python.proxied.upstream import make_release as python_release
from pkgrepo.formats.rubygems.format import ruby
from pkgrepo.formats.rubygems.proxied.upstream import make_release as gem_release
from pkgrepo.model.repositories import make_placeholder
from pkgrepo.proxy.parts.values import Entry, FileSource
from pkgrepo.proxy.remote_files import RemoteFile
from pkgrepo.repositories.clock import from_ms
from pkgrepo.repositories.policy.facts import facts_of_version
from tests.support.catalogs import NOW, make_blob

CASES = {
    "wheel": (python(), python_release, "packages/demo/1.0/demo-1.0-py3-none-any.whl"),
    "sdist": (python(), python_release, "packages/demo/1.0/demo-1.0.tar.gz"),
    "conda": (conda(), conda_release, "noarch/demo-1.0-0.conda"),
    "gem": (ruby(), gem_release, "gems/demo-1.0.gem"),
    "pom": (maven(), maven_release, "org/acme/demo/1.0/demo-1.0.pom"),
    "tarball": (npm(), npm_release, "demo/-/demo-1.0.tgz"),
}
FRAGMENTS = {JSON_PAGE: b"{}", "record.conda": b"{}", FULL: b'"1.0":{', SHORT: b'"1.0":{'}


@pytest.mark.parametrize("kind", CASES)
async def test_a_file_that_cannot_be_read_is_known_as_such_when_it_is_hosted(kind: str) -> None:
    format_, make, path = CASES[kind]
    content = b"no such file"

    async def inspect(_pool: object, _blob: object, work: Any, **_: object) -> Any:
        return work(content)

    source = FileSource(path, "", len(content), {}, "x", {})
    entry = Entry(b"1", path.rpartition("/")[2], "1.0", None, False, FRAGMENTS, [source])
    here = make_placeholder(1, "main", "here", format_.name)
    staged: Any = SimpleNamespace(inspect=inspect)
    pools: Any = SimpleNamespace(cpu=None)
    release = await make(RemoteFile(here, "demo", "up", source, entry), staged, make_blob(content), pools)
    kept: Any = [
        SimpleNamespace(attrs=each.attrs, origin=None, digests={}, sha256="", path=each.path) for each in release.files
    ]
    version: Any = SimpleNamespace(text="1.0", meta=release.meta, published_at=from_ms(NOW))
    assert facts_of_version(format_, here, "demo", version, kept).unreadable
