"""Parsing of manifests without holding up the reactor."""

from __future__ import annotations

from pkgrepo.storage.pools import Pools

from .document import ManifestDocument, parse_manifest

IN_THREAD = 16 * 1024  # bytes; parsing less takes at most 4 ms, usually less than switching to a thread


async def parse_in_thread(
    pools: Pools, data: bytes, content_type: str, *, other_types: bool = False
) -> ManifestDocument:
    """
    The parsed manifest, see L{parse_manifest}; large ones are parsed in a thread.

    :raises Invalid, DigestInvalid: see there
    """
    if len(data) < IN_THREAD:
        return parse_manifest(data, content_type, other_types=other_types)
    return await pools.cpu(parse_manifest, data, content_type, other_types=other_types)
