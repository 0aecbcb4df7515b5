"""
How files of upstreams are kept: as files of a version.

What the upstream serves is kept although an upload would refuse it; then it has no texts about it. Its record is that
of the upstream, which may have corrected what the package says.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import Any

import msgspec

from pkgrepo.errors import Invalid
from pkgrepo.formats.conda.anatomy.reading import read_package
from pkgrepo.formats.conda.description import meta_of
from pkgrepo.formats.conda.names import FileName, parse_file_name, version_key
from pkgrepo.formats.conda.version_order import order_key
from pkgrepo.model import BlobInfo, NewFile
from pkgrepo.proxy.remote_files import RemoteFile
from pkgrepo.repositories.publish.releases import Release
from pkgrepo.repositories.publish.staged import Staged
from pkgrepo.storage.pools import Pools

from .normaliser import RECORD


async def make_release(file: RemoteFile, staged: Staged, blob: BlobInfo, pools: Pools) -> Release:
    """The release of a file that was fetched from an upstream; see L{IProxiedFormat.make_release}."""
    name = parse_file_name(file.entry.key)
    record = msgspec.json.decode(file.entry.fragments[f"{RECORD}{name.ending}"])
    meta, exports = await staged.inspect(pools.cpu, blob, partial(_read, name=name))
    kept = NewFile(
        path=file.source.path,
        blob=blob,
        media_type=file.source.media_type,
        attrs={"index": record, "run_exports": exports},
    )
    return Release(
        package_key=file.key,
        package_name=file.key,
        version_key=version_key(name.version),
        version_text=name.version,
        sort=order_key(name.version),
        files=(kept,),
        meta=meta,
    )


def _read(content: int | bytes, name: FileName) -> tuple[Mapping[str, Any], Mapping[str, Any]]:
    """The metadata and run exports of a package; none if it cannot be read."""
    try:
        found = read_package(content, name)
    except Invalid:
        return {}, {}
    return meta_of(found), found.exports
