"""
What is asked of an upstream, which is the address of a module proxy, and how its files are stored.

=============================  ===============================  =======================================================
what                           asked again after                kept as
=============================  ===============================  =======================================================
list, ``@latest``, queries     a minute, or ``cache_ttl``       a document of the module
files of a version             never                            files of the version
tiles and look-ups of a        never                            files that belong to no module, as they came
checksum database
its head, and whether it is    a minute, or ``cache_ttl``       the same
there
=============================  ===============================  =======================================================
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any, Final
from urllib.parse import quote

from attrs import evolve

from pkgrepo.concurrency.pools import Pools
from pkgrepo.errors import Invalid, NotFound
from pkgrepo.interfaces import Reader
from pkgrepo.model import BlobInfo, Origin, Package
from pkgrepo.proxy.addressed.request import FileRequest
from pkgrepo.proxy.caching.questions import DocumentRequest, restored_entry
from pkgrepo.proxy.format import OwnFacts
from pkgrepo.proxy.parts.values import Normalised
from pkgrepo.proxy.remote_files import RemoteFile
from pkgrepo.repositories.policy.facts import PUBLISHED, UNREADABLE
from pkgrepo.repositories.publish.releases import Release
from pkgrepo.repositories.publish.staged import Staged
from pkgrepo.storage.catalog.packages import files, versions

from .archive import read_module
from .names import INFO, KINDS, escape, file_path, kind_of, parse_path, sort_key
from .normaliser import read_info
from .publishing import release_of

MOST_TTL_S: Final = 60


def question(key: str) -> DocumentRequest:
    """The versions of a module, or with ``module@query`` the version that a query stands for."""
    module, _, query = key.partition("@")
    named = "@latest" if query == "latest" else f"@v/{quote(escape(query), safe='!+')}.info" if query else "@v/list"
    return DocumentRequest(
        key=f"versions/{key}",
        package_key=module,
        name=key,
        urls=lambda url: (f"{url}/{escape(module)}/{named}",),
        accept="*/*",
        normaliser=f"pkgrepo.formats.go.normaliser:normalise_{'info' if query else 'list'}",
        most_ttl_s=MOST_TTL_S,
    )


def file_question(key: str, path: str) -> FileRequest:
    """The file at a path of the module with a key. :raises NotFound: it is none of it"""
    try:
        found = parse_path(path)
    except Invalid:
        raise NotFound("file", path) from None
    if found.module != key or found.kind not in (*KINDS, "sumdb"):
        raise NotFound("file", path)
    version, media_type = found.version, KINDS.get(found.kind, "application/octet-stream")
    request = FileRequest(path=path, media_type=media_type, package_key=key)
    if found.kind in KINDS:
        return evolve(request, version_key=version, version_text=version, sort=sort_key(version))
    head = path.endswith(("/supported", "/latest"))
    return evolve(request, lasting=False, settled=not head, may_be_empty=head, most_ttl_s=MOST_TTL_S)


async def make_release(file: RemoteFile, staged: Staged, blob: BlobInfo, pools: Pools) -> Release:
    """The release of a file that was fetched. :raises Invalid: it is no file of the version"""
    found = parse_path(file.source.path)
    read = partial(_read_meta, found.module, found.version)
    meta = await staged.inspect(pools.cpu, blob, read) if found.kind == "zip" else {}
    return release_of(found.module, found.version, {found.kind: blob}, meta=meta, describes=bool(meta))


def _read_meta(module: str, version: str, content: int | bytes) -> Mapping[str, Any]:
    """What a zip says of its version. :raises Invalid: it is that of another one"""
    try:
        found = read_module(content)
    except Invalid:
        return {UNREADABLE: True}  # clients refuse it, too
    if (found.module, found.version) != (module, version):
        raise Invalid(f"the zip is that of {found.module} {found.version}")
    return found.meta


def described_by(path: str) -> Sequence[str]:
    """The paths of the files that describe the version of one at a path, by its time and by its licence."""
    found = parse_path(path)
    return [file_path(found.module, found.version, kind) for kind in (INFO, "zip")] if found.kind in KINDS else ()


def read_own(content: int | bytes, path: str) -> Mapping[str, Any]:
    """What a file says of its version. :raises Invalid: it cannot be read"""
    found = parse_path(path)
    return {PUBLISHED: read_info(content, found.module)[1]} if found.kind == INFO else read_module(content).meta


def restore(reader: Reader, package: Package) -> tuple[Origin, Normalised] | None:
    """The list of the versions of which something is kept, and the origin of what was fetched last."""
    kept = [
        (version, next((each.origin for each in files.files_of_version(reader, version.id) if each.origin), None))
        for version in versions.list_versions(reader, package.id)
    ]
    origins = [origin for _, origin in kept if origin is not None]
    entries = (
        restored_entry(version, version.key, origin, {kind_of(version.text): version.text.encode()}, ())
        for version, origin in kept
        if origin is not None
    )
    return (max(origins, key=lambda each: each.fetched_ms), Normalised({}, entries)) if origins else None


OWN_FACTS: Final = OwnFacts(
    data=frozenset({"age", "licences"}),
    read=read_own,
    described_by=described_by,
    of_versions=True,
    file_of=lambda module, version: file_path(module, version, INFO),
)
