"""What the versions of a package that are stored were trusted, over time."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from pkgrepo.concurrency.gil import GilReleaser
from pkgrepo.interfaces import Reader
from pkgrepo.model import File, Repository, RepositoryType, Version
from pkgrepo.repositories.attestations import Attests
from pkgrepo.repositories.format import StoredFormat
from pkgrepo.storage.catalog.packages import files, packages, versions
from pkgrepo.storage.catalog.rows import to_ms

from .conditions import TRUST
from .schema import Datum
from .trust import History, Released


def wanted_history(
    r: Reader, format_: StoredFormat, repository: Repository, key: str, needs: frozenset[Datum]
) -> History | None:
    """The history of a package (a key) by what is stored, if rules ask for that; None if they do not."""
    if not needs & TRUST or format_.attests is None:
        return None
    return stored_history(r, format_, repository, key)


def stored_history(r: Reader, format_: StoredFormat, repository: Repository, key: str) -> History:
    """
    The history of a package (a key) by what is stored.

    That of a proxy is not complete: its upstream may have more.
    """
    complete = repository.type is not RepositoryType.PROXY
    return History(stored_releases(r, format_, repository, key), complete=complete)


def stored_releases(r: Reader, format_: StoredFormat, repository: Repository, key: str) -> Sequence[Released]:
    """The versions of a package (a key) that are stored, with what is claimed of them."""
    package, attests = packages.find_package(r, repository.id, key), format_.attests
    if package is None or attests is None:
        return ()
    by_version: dict[int, list[File]] = {}
    for file in files.files_of_package(r, package.id):
        if file.version_id is not None:
            by_version.setdefault(file.version_id, []).append(file)
    gil, found = GilReleaser(), list[Released]()
    for version in versions.list_versions(r, package.id):
        found += _of_version(format_, attests, repository, version, by_version.get(version.id, ()))
        gil.release_if_due()
    return found


def _of_version(
    format_: StoredFormat, attests: Attests, repository: Repository, version: Version, kept: Sequence[File]
) -> Iterator[Released]:
    paths = {each.path for each in kept}
    for file in kept:
        at_ms: int | None = to_ms(version.published_at)
        if repository.type is RepositoryType.PROXY:
            at_ms = None if file.origin is None else file.origin.published_ms
        if file.role is None and at_ms is not None:
            beside = file.path + attests.suffix
            claim = attests.claim(version.meta, [file.path, beside] if beside in paths else [file.path])
            yield Released(version.text, at_ms, claim.rank, is_prerelease(format_, version.text))


def is_prerelease(format_: StoredFormat, text: str) -> bool:
    """Whether a version is a prerelease."""
    return format_.versions is not None and format_.versions.prerelease(text)
