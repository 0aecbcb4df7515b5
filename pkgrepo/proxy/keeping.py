"""Fetches files before a client wants them, on the way on which clients get them."""

from __future__ import annotations

from pkgrepo.model import File, Repository
from pkgrepo.proxy.fetching import Fetching
from pkgrepo.proxy.resolving.package_files import PackageFiles
from pkgrepo.proxy.resolving.serving import Want


async def keep_file(
    package_files: PackageFiles, fetching: Fetching, repository: Repository, key: str, path: str
) -> File:
    """
    The file of a package (a key) at a path of a proxy, when it is kept; it is verified and judged as for clients.

    :raises NotFound: there is no such file; :raises UpstreamFailed: it cannot be had; :raises RuleRefused: see there
    :raises StorageFull, StorageFailed: it cannot be stored
    """
    found = await package_files.find(repository, key, path, want=Want.DIGESTS)
    if isinstance(found.file, File):
        return found.file
    if found.file.checked_ms:  # a document lists it
        return await fetching.finish(found.file)
    return await package_files.keep_addressed(repository, key, path)
