"""Makes conda packages of both kinds, and broken ones."""

from __future__ import annotations

import bz2
import hashlib
import io
import json
import zipfile
from collections.abc import Mapping, Sequence
from typing import Any

import zstandard

from tests.support.tarballs import make_tar

Members = Sequence[tuple[str, bytes]]


def make_index(name: str = "demo", version: str = "1.0", build: str = "py_0", **more: Any) -> dict[str, Any]:
    """The ``index.json`` of a package; None as a value leaves a field out."""
    index = {
        "name": name,
        "version": version,
        "build": build,
        "build_number": 0,
        "depends": [],
        "subdir": "noarch",
        "noarch": "generic",
        "license": "MIT",
        "timestamp": 1_700_000_000_000,
        **more,
    }
    return {key: value for key, value in index.items() if value is not None}


def info_members(index: Mapping[str, Any], documents: Mapping[str, Any] | None = None) -> list[tuple[str, bytes]]:
    """The members of an ``info`` folder; ``documents`` by name are beside ``index.json``."""
    found = {"index.json": index, "paths.json": {"paths": [], "paths_version": 1}, "about.json": {}}
    return [(f"info/{name}", json.dumps(each).encode()) for name, each in {**found, **(documents or {})}.items()]


def stem_of(index: Mapping[str, Any]) -> str:
    """The name of a package's file without its ending."""
    return f"{index['name']}-{index['version']}-{index['build']}"


def pack_conda(
    stem: str,
    info: bytes,
    payload: bytes = b"",
    *,
    metadata: bytes = b'{"conda_pkg_format_version":2}',
    method: int = 0,
) -> bytes:
    """A ``.conda`` file of an info archive and a payload, both compressed already; the same bytes at any time."""
    target = io.BytesIO()
    members = {
        "metadata.json": metadata,
        f"pkg-{stem}.tar.zst": payload or zstandard.compress(make_tar([])),
        f"info-{stem}.tar.zst": info,
    }
    with zipfile.ZipFile(target, "w", method) as archive:
        for name, content in members.items():
            archive.writestr(zipfile.ZipInfo(name, (2024, 1, 2, 3, 4, 6)), content, method)
    return target.getvalue()


def make_conda(
    name: str = "demo",
    version: str = "1.0",
    build: str = "py_0",
    *,
    documents: Mapping[str, Any] | None = None,
    payload: Members = (),
    **more: Any,
) -> bytes:
    """A ``.conda`` file; ``more`` are fields of ``index.json``, ``documents`` are further ones in ``info``."""
    index = make_index(name, version, build, **more)
    info = zstandard.compress(make_tar(info_members(index, documents)))
    return pack_conda(stem_of(index), info, zstandard.compress(make_tar(payload)))


def make_tar_bz2(
    name: str = "demo",
    version: str = "1.0",
    build: str = "py_0",
    *,
    documents: Mapping[str, Any] | None = None,
    payload: Members = (),
    **more: Any,
) -> bytes:
    """The same as a ``.tar.bz2`` file."""
    index = make_index(name, version, build, **more)
    return bz2.compress(make_tar([*info_members(index, documents), *payload]))


def make_installable(name: str, version: str, build: str, files: Mapping[str, bytes], **index: Any) -> bytes:
    """A ``.conda`` file with files by path, as conda's own tools make it."""
    paths = [
        {"_path": path, "path_type": "hardlink", "sha256": hashlib.sha256(data).hexdigest(), "size_in_bytes": len(data)}
        for path, data in files.items()
    ]
    documents = {"paths.json": {"paths": paths, "paths_version": 1}}
    return make_conda(name, version, build, documents=documents, payload=list(files.items()), **index)
