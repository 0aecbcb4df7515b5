"""
Sharded repodata (CEP 16): an index with a digest for each package, and a file with the records of one package.

Both are msgpack, compressed with zstd. A shard is named after its own sha256, so it never changes.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from typing import Any, Final

import msgspec
import zstandard
from attrs import frozen

LEVEL: Final = 3  # of zstd
VERSION: Final = 1

_encode = msgspec.msgpack.Encoder().encode


@frozen
class Shard:
    """The records of one package in one folder, as a file; ``digest`` is its sha256."""

    name: str
    digest: bytes
    body: bytes


def make_shard(name: str, tar_bz2: bytes, conda: bytes) -> Shard:
    """The shard of a package, from its records by kind of file: members of a JSON object, a comma before each."""
    content = {"packages": _records(tar_bz2), "packages.conda": _records(conda), "removed": []}
    body = zstandard.ZstdCompressor(level=LEVEL).compress(_encode(content))
    return Shard(name, hashlib.sha256(body).digest(), body)


def make_index(subdir: str, digests: Mapping[str, bytes]) -> bytes:
    """The index of a folder, from the digests of its shards by package; its addresses are relative to itself."""
    info = {"subdir": subdir, "base_url": "./", "shards_base_url": "./shards/"}
    return zstandard.ZstdCompressor(level=LEVEL).compress(
        _encode({"version": VERSION, "info": info, "shards": digests})
    )


def _records(members: bytes) -> dict[str, Any]:
    """Records as objects, with their digests as bytes."""
    found: dict[str, Any] = msgspec.json.decode(b"{%b}" % members[1:])
    for record in found.values():
        for algorithm in ("md5", "sha256"):
            if record.get(algorithm) is not None:
                record[algorithm] = bytes.fromhex(record[algorithm])
    return found
