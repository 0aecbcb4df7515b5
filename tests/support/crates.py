"""Crates as cargo packs them, the body of ``cargo publish``, and an index with a registry behind it."""

from __future__ import annotations

import gzip
import hashlib
import io
import json
import tarfile
from collections.abc import Mapping, Sequence
from typing import Any

Entries = Sequence[tuple[str, bytes]]


def make_manifest(name: str, version: str, more: str = "", **fields: str) -> str:
    """A normalised Cargo.toml; ``fields`` are texts of the package, ``more`` are tables behind it."""
    said = {"name": name, "version": version, "edition": "2021", **fields}
    return (
        "[package]\n" + "".join(f"{key.replace('_', '-')} = {json.dumps(each)}\n" for key, each in said.items()) + more
    )


def make_crate(
    name: str, version: str, more: str = "", *, folder: str = "", entries: Entries = (), **fields: str
) -> bytes:
    """A crate, whose folder has a Cargo.toml, sources and further ``entries``."""
    folder = folder or f"{name}-{version}"
    manifest = make_manifest(name, version, more, **fields).encode()
    return pack([(f"{folder}/Cargo.toml", manifest), (f"{folder}/src/lib.rs", b"\n"), *entries])


def pack(entries: Entries) -> bytes:
    """A gzip-compressed tar with these files."""
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w") as tar:
        for path, data in entries:
            info = tarfile.TarInfo(path)
            info.size = len(data)
            tar.addfile(info, io.BytesIO(data))
    return gzip.compress(out.getvalue(), mtime=0)


def describe(name: str, version: str, /, **more: Any) -> dict[str, Any]:
    """What cargo says of a crate beside it."""
    return {"name": name, "vers": version, "deps": [], "features": {}, "authors": []} | more


def publish_body(description: Mapping[str, Any] | bytes, crate: bytes) -> bytes:
    """The body of a publish."""
    said = description if isinstance(description, bytes) else json.dumps(description).encode()
    return len(said).to_bytes(4, "little") + said + len(crate).to_bytes(4, "little") + crate


def make_publish(name: str, version: str, **fields: str) -> bytes:
    """The body that publishes a crate without dependencies."""
    return publish_body(describe(name, version), make_crate(name, version, **fields))


def index_line(name: str, version: str, crate: bytes, **more: Any) -> dict[str, Any]:
    """A line of an index, as an object."""
    sums = {"cksum": hashlib.sha256(crate).hexdigest(), "yanked": False}
    return {"name": name, "vers": version, "deps": [], "features": {}, **sums, **more}
