"""
How gems of upstreams are kept, and their specifications in the legacy index: as files of a version.

What the upstream serves is kept although a push would refuse it; then it has no metadata.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pkgrepo.errors import Invalid
from pkgrepo.formats.rubygems.gemspec import meta_of
from pkgrepo.formats.rubygems.layout import GEM
from pkgrepo.formats.rubygems.push.anatomy import inspect_gem
from pkgrepo.formats.rubygems.push.release import QUICK_ROLE
from pkgrepo.formats.rubygems.version_order import sort_key
from pkgrepo.model import BlobInfo, NewFile
from pkgrepo.proxy.remote_files import RemoteFile
from pkgrepo.repositories.publish.releases import Release
from pkgrepo.repositories.publish.staged import Staged
from pkgrepo.storage.pools import Pools


async def make_release(file: RemoteFile, staged: Staged, blob: BlobInfo, pools: Pools) -> Release:
    """The release of a file that was fetched from an upstream; see L{IProxiedFormat.make_release}."""
    meta: Mapping[str, Any] = {}
    gem = file.source.path.endswith(GEM)
    if gem:
        meta = await staged.inspect(pools.cpu, blob, _read_meta)
    number, _, platform = file.entry.version.partition("-")
    kept = NewFile(
        path=file.source.path,
        blob=blob,
        media_type=file.source.media_type,
        attrs={} if gem else {"role": QUICK_ROLE},
    )
    return Release(
        package_key=file.key,
        package_name=file.key,
        version_key=file.entry.version,
        version_text=file.entry.version,
        sort=sort_key(number, platform or "ruby"),
        files=(kept,),
        meta=meta,
        overwrite=gem,  # the metadata of a version whose specification was kept first
    )


def _read_meta(content: int | bytes) -> Mapping[str, Any]:
    try:
        return meta_of(inspect_gem(content))
    except Invalid:
        return {}
