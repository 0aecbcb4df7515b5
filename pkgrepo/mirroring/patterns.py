"""What the patterns of a proxy's configuration name at present."""

from __future__ import annotations

from collections.abc import Sequence
from fnmatch import fnmatchcase
from typing import Final

import msgspec

from pkgrepo.errors import Invalid, NotFound, PkgrepoError, RepositoryInactive, StorageFailed
from pkgrepo.gateway.format import Format
from pkgrepo.gateway.mirrored.locks import Lock, Wanted
from pkgrepo.gateway.services import Services
from pkgrepo.interfaces import Reader
from pkgrepo.model import Repository, RepositoryType
from pkgrepo.proxy.format import merge_versions
from pkgrepo.proxy.schema import MirrorConfig, MirrorPattern
from pkgrepo.proxy.trace import Trace
from pkgrepo.storage.catalog.packages.retained import page_of_names

BATCH: Final = 500  # names that are read together
MOST_NAMES: Final = 20_000  # of one pattern


def patterns_of(repository: Repository) -> Sequence[MirrorPattern]:
    """The patterns of a proxy; none of another repository."""
    found = repository.settings.get("mirror") if repository.type is RepositoryType.PROXY else None
    return () if found is None else msgspec.convert(found, MirrorConfig).patterns


async def find_wanted(services: Services, format_: Format, repository: Repository, pattern: MirrorPattern) -> Lock:
    """
    The versions that a pattern names, by what upstreams have and rules let through; what cannot be found is left out.

    :raises StorageFailed, RepositoryInactive: the server cannot go on
    """
    lock = Lock()
    kept: list[str] | None = None
    names: dict[str, None] = {}
    for each in pattern.packages:
        if "*" not in each and "?" not in each:
            names[each] = None
            continue
        if kept is None:
            kept = await services.catalog.scan(_names, repository.id)
        names.update(dict.fromkeys(name for name in kept if fnmatchcase(name.casefold(), each.casefold())))
    if len(names) > MOST_NAMES:
        lock.leave_out(f"{len(names) - MOST_NAMES} packages", f"a pattern is for {MOST_NAMES} packages at most")
    for name in list(names)[:MOST_NAMES]:
        try:
            for wanted in await _versions_of(services, format_, repository, name, pattern.versions):
                lock.want(wanted)
        except (StorageFailed, RepositoryInactive):
            raise
        except PkgrepoError as error:
            lock.leave_out(name, str(error))
    return lock


async def _versions_of(
    services: Services, format_: Format, repository: Repository, name: str, versions: str
) -> list[Wanted]:
    """What is wanted of a package. :raises PkgrepoError: that is not known"""
    word, _, count = versions.partition(" ")
    proxied = format_.proxied
    if word not in ("newest", "all"):
        chosen = [text for each in versions.split(",") if (text := each.strip())]
    elif proxied is None:
        raise Invalid("the tags of images are named one by one")
    else:
        key = (format_.mirrored.document_key or format_.package_key)(name)
        members = await services.proxy.resolver.members(repository, key, Trace())
        parts = await services.proxy.resolver.parts(members, key, proxied.latest_form)
        chosen = merge_versions(parts)
        if word == "newest":
            prerelease = None if format_.versions is None else format_.versions.prerelease
            stable = [each for each in chosen if prerelease is None or not prerelease(each)]
            chosen = (stable or chosen)[-int(count) :]
    if format_.mirrored.choose is not None:
        return await format_.mirrored.choose(services, repository, name, chosen)
    if not chosen:
        raise NotFound("version of package", name)
    return [Wanted(format=format_.name, name=name, version=each) for each in chosen]


def _names(r: Reader, repository_id: int) -> list[str]:
    """The names of the packages that a repository keeps."""
    found: list[str] = []
    after = ""
    while True:
        page = page_of_names(r, repository_id, after, BATCH)
        found += [each.name for each in page]
        if len(page) < BATCH:
            return found
        after = page[-1].key
