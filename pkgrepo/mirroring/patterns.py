"""What the patterns of a proxy's configuration name at present."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from fnmatch import translate
from typing import Final

import msgspec

from pkgrepo.concurrency.gil import GilReleaser
from pkgrepo.concurrency.together import together
from pkgrepo.errors import Invalid, NotFound, PkgrepoError, RepositoryInactive, StorageFailed
from pkgrepo.gateway.format import Format
from pkgrepo.gateway.mirrored.locks import Lock, Wanted
from pkgrepo.gateway.services import Services
from pkgrepo.interfaces import Reader
from pkgrepo.mirroring.engine import PACKAGES
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
    names, more = await services.catalog.scan(_named, repository.id, pattern.packages)
    if more:
        lock.leave_out(f"{more} packages", f"a pattern is for {MOST_NAMES} packages at most")
    for start in range(0, len(names), PACKAGES):
        some = names[start : start + PACKAGES]
        await together(_add(lock, services, format_, repository, name, pattern.versions) for name in some)
    return lock


async def _add(
    lock: Lock, services: Services, format_: Format, repository: Repository, name: str, versions: str
) -> None:
    """Add what is wanted of a package, or why that is not known; it raises as ``find_wanted``."""
    try:
        for wanted in await _versions_of(services, format_, repository, name, versions):
            lock.want(wanted)
    except (StorageFailed, RepositoryInactive):
        raise
    except PkgrepoError as error:
        lock.leave_out(name, str(error))


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


def _named(r: Reader, repository_id: int, patterns: Sequence[str]) -> tuple[list[str], int]:
    """What patterns name: those without wildcards, and what a repository keeps; and how many more there are."""
    fits = [re.compile(translate(each.casefold())).match for each in patterns if _has_wildcards(each)]
    found = dict.fromkeys(each for each in patterns if not _has_wildcards(each))
    count = len(found)
    gil = GilReleaser()
    for name in _kept(r, repository_id) if fits else ():
        folded = name.casefold()
        if name not in found and any(fit(folded) for fit in fits):
            count += 1
            if len(found) < MOST_NAMES:
                found[name] = None
        gil.release_if_due()
    return [*found][:MOST_NAMES], count - min(count, MOST_NAMES)


def _has_wildcards(pattern: str) -> bool:
    return "*" in pattern or "?" in pattern


def _kept(r: Reader, repository_id: int) -> Iterator[str]:
    """The names of the packages that a repository keeps."""
    after = ""
    while page := page_of_names(r, repository_id, after, BATCH):
        yield from (each.name for each in page)
        after = page[-1].key
