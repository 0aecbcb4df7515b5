"""
The release of a version that another registry had.

It is published with the manifest that was served there, also if a publish would be refused today, such as under a name
with upper-case letters; what it does not tell of the installation is that of the tarball. The digests are those of the
bytes, which have those that the registry announced.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import Any

from pkgrepo.concurrency.pools import Pools
from pkgrepo.errors import Invalid
from pkgrepo.formats.npm.names import tarball_name
from pkgrepo.formats.npm.paths import tarball_path
from pkgrepo.model import BlobInfo, NewFile
from pkgrepo.repositories.publish.releases import Release
from pkgrepo.repositories.publish.staged import Staged
from pkgrepo.repositories.semver import Version

from .manifest import MAPS, StoredManifest, clean_manifest, is_map, make_dist, with_packed_fields
from .tarball import TarballContents, read_tarball

# Clients need these to install it, and the manifests of some registries (Gitea) lack them: then the tarball has them.
_FROM_TARBALL = ("cpu", "engines", "libc", "os", "scripts")
_NOTHING = TarballContents(manifest={}, file_count=0, unpacked_size=0, has_gyp=False, has_shrinkwrap=False)


async def imported_release(
    name: str, version: Version, manifest: Mapping[str, Any], staged: Staged, blob: BlobInfo, pools: Pools
) -> Release:
    """
    The release of a staged tarball with the manifest that its registry served, or that is in the tarball.

    :raises Invalid: it is no package
    """
    contents = await staged.inspect(pools.cpu, blob, partial(_read, filename=tarball_name(name, version.text)))
    if not manifest and not contents.manifest:
        raise Invalid("it is no tarball of a package")
    missing = [each for each in _FROM_TARBALL if each not in manifest]
    full = with_packed_fields(manifest, contents, missing, name) if manifest else contents.manifest
    stored = _clean(full, name, version, contents)
    person = manifest.get("_npmUser")
    meta: dict[str, Any] = {
        **stored.fields,
        "dist": make_dist(blob.digests, contents),
        "readme": stored.readme,
        "readmeFilename": stored.readme_filename,
    }
    if isinstance(person, dict):
        meta["_npmUser"] = {key: each for key, each in person.items() if key in ("name", "email")}
    return Release(
        package_key=name,
        package_name=name,
        version_key=version.key,
        version_text=version.text,
        sort=version.sort,
        files=(NewFile(path=tarball_path(name, version.text), blob=blob),),
        meta=meta,
    )


def _clean(manifest: Mapping[str, Any], name: str, version: Version, contents: TarballContents) -> StoredManifest:
    """The manifest as it is stored; fields of a wrong type are left out."""
    try:
        return clean_manifest(manifest, name=name, version=version, contents=contents)
    except Invalid:
        kept = {
            key: value for key, value in manifest.items() if key != "private" and (key not in MAPS or is_map(value))
        }
        return clean_manifest(kept, name=name, version=version, contents=contents)


def _read(content: int | bytes, filename: str) -> TarballContents:
    """The contents of a tarball, as far as it can be read. Blocks: call it in a thread."""
    try:
        return read_tarball(content, filename)
    except Invalid:
        return _NOTHING
