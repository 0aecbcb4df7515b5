"""Releases with which a catalog is filled: one small file each, of which only the bytes are missing."""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Callable, Mapping
from datetime import date
from typing import Any

from pkgrepo.formats.conda.description import Description
from pkgrepo.formats.conda.files import Upload
from pkgrepo.formats.conda.files import make_release as make_conda_release
from pkgrepo.formats.conda.index.packages import index_package as index_conda
from pkgrepo.formats.conda.names import parse_file_name as parse_conda
from pkgrepo.formats.maven.metadata.joining import index_artifact
from pkgrepo.formats.maven.names import Coordinates
from pkgrepo.formats.maven.upload.release import make_release as make_maven_release
from pkgrepo.formats.npm.indexing import Publishing
from pkgrepo.formats.npm.paths import tarball_path
from pkgrepo.formats.npm.semver import parse_version
from pkgrepo.formats.python.index.indexing import index_project
from pkgrepo.formats.python.names import file_path, parse_filename
from pkgrepo.formats.rubygems.gemspec import Dependency, GemSpec, meta_of
from pkgrepo.formats.rubygems.indexer import apply_change
from pkgrepo.formats.rubygems.names import sort_key
from pkgrepo.formats.rubygems.paths import gem_path
from pkgrepo.model import Actor, BlobInfo, NewFile
from pkgrepo.repositories.publish.index import Indexer
from pkgrepo.repositories.publish.releases import Release
from pkgrepo.repositories.publish_policy import PublishPolicy

from .filler import VERSIONS
from .modules import GROUP
from .tarballs import NodePackage

ACTOR = Actor(name="bench")
MANY = "many"  # the project of the kind "versions"
_PERSON = {"name": ACTOR.name, "email": ""}


def wheel(number: int) -> Release:
    """Return the only release of a project whose name no scenario uses."""
    return _wheel(f"filler_{number}-1.0.0-py3-none-any.whl", {"summary": "A package made to be counted"})


def version(number: int) -> Release:
    """Return one of the releases of a project that has all of them, with a readme of 4 KB."""
    texts = {
        "summary": "A package with many versions",
        "description": f"# Version {number}\n\n" + "All about it. " * 290,
    }
    needs = {"requires_dist": [f"filler-{each}>=1" for each in range(10)], "description_content_type": "text/markdown"}
    return _wheel(f"{MANY}-1.{number}.0-py3-none-any.whl", {**texts, **needs})


def node_package(number: int) -> Release:
    """Return the only version of an npm package."""
    package = NodePackage(f"filler-{number}", "1.0.0")
    parsed = parse_version(package.version)
    blob = _blob(package.filename)
    integrity = base64.b64encode(hashlib.sha512(package.filename.encode()).digest()).decode()
    dist = {"integrity": f"sha512-{integrity}", "shasum": "0" * 40, "fileCount": 3, "unpackedSize": blob.size}
    return Release(
        package_key=package.name,
        package_name=package.name,
        version_key=parsed.key,
        version_text=parsed.text,
        sort=parsed.sort,
        files=(NewFile(path=tarball_path(package.name, parsed.text), blob=blob),),
        meta={**package.manifest, "_npmUser": _PERSON, "maintainers": [_PERSON], "dist": dist},
    )


def artifact(number: int) -> Release:
    """Return the only version of a Java artifact, with its jar."""
    coordinates = Coordinates(GROUP, f"filler-{number}", "1.0")
    path = f"{coordinates.directory}/{coordinates.artifact}-{coordinates.version}.jar"
    attrs = {"classifier": "", "extension": "jar"}
    return make_maven_release(coordinates, [NewFile(path=path, blob=_blob(path), attrs=attrs)])


def gem(number: int) -> Release:
    """Return one of the ten releases of a gem whose name no scenario uses."""
    spec = GemSpec(
        name=f"filler_{number // VERSIONS}",
        number=f"1.{number % VERSIONS}.0",
        platform="ruby",
        original_platform="ruby",
        rubygems_version="3.6.9",
        date=date(2024, 5, 6),
        summary="A gem made to be counted",
        dependencies=(Dependency("rack", "runtime"),),
    )
    return Release(
        package_key=spec.name,
        package_name=spec.name,
        version_key=spec.full_version,
        version_text=spec.full_version,
        sort=sort_key(spec.number, spec.platform),
        files=(NewFile(path=gem_path(spec.full_name), blob=_blob(spec.full_name)),),
        meta=meta_of(spec),
    )


def conda_package(number: int) -> Release:
    """Return one of the ten releases of a conda package whose name no scenario uses."""
    name = parse_conda(f"filler-{number // VERSIONS}-1.{number % VERSIONS}.0-py311h{number % 10**6:06}_0.conda")
    index = {
        "arch": None,
        "build": name.build,
        "build_number": 0,
        "constrains": ["numpy >=1.22"],
        "depends": ["python >=3.11,<3.12.0a0", "python_abi 3.11.* *_cp311", "libstdcxx >=13", f"filler-{number // 20}"],
        "license": "BSD-3-Clause",
        "name": name.name,
        "noarch": "generic",
        "subdir": "noarch",
        "timestamp": 1_700_000_000_000 + number,
        "version": name.version,
    }
    described = Description(index, {"summary": "Made to be counted"}, {})
    return make_conda_release(Upload(name, None, _blob(str(name), "md5")), described, PublishPolicy())


def _wheel(filename: str, meta: Mapping[str, Any]) -> Release:
    name = parse_filename(filename)
    attrs = {"packagetype": name.kind, "python_version": name.python_version, "requires_python": ">=3.8"}
    path = file_path(name.project_key, name.version_text, filename)
    return Release(
        package_key=name.project_key,
        package_name=name.project_key,
        version_key=name.version_key,
        version_text=name.version_text,
        sort=name.version_sort,
        files=(NewFile(path=path, blob=_blob(filename), attrs=attrs),),
        meta=meta,
    )


def _blob(name: str, *algorithms: str) -> BlobInfo:
    """Bytes that are not there, under the digests of their name."""
    digests = {each: hashlib.new(each, name.encode()).hexdigest() for each in ("sha256", *algorithms)}
    sha256 = digests["sha256"]
    return BlobInfo(sha256=sha256, size=9000, locator=f"{sha256[:2]}/{sha256}.0", digests=digests)


FILLERS: Mapping[str, tuple[Callable[[int], Release], Indexer]] = {
    "conda": (conda_package, index_conda),
    "maven": (artifact, index_artifact),
    "npm": (node_package, Publishing(tags=("latest",), deprecated="", maintainer=_PERSON, actor=ACTOR)),
    "python": (wheel, index_project),
    "ruby": (gem, apply_change),
    "versions": (version, index_project),
}
