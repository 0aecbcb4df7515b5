"""What the versions of a package that are stored were trusted, over time."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from pkgrepo.concurrency.gil import GilReleaser
from pkgrepo.interfaces import Reader
from pkgrepo.model import File, Repository, RepositoryType, Version
from pkgrepo.repositories.attestations import AttestedFile, Claim, Rank
from pkgrepo.repositories.format import StoredFormat
from pkgrepo.storage.catalog.file_facts import attested_name, name_of, place_of
from pkgrepo.storage.catalog.packages import files, packages, versions
from pkgrepo.storage.catalog.rows import to_ms

from .conditions import TRUST
from .schema import Datum
from .trust import History, Released, Unsaid


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
    package = packages.find_package(r, repository.id, key)
    if package is None or format_.attests is None:
        return ()
    by_version: dict[int, list[File]] = {}
    for file in files.files_of_package(r, package.id):
        if file.version_id is not None:
            by_version.setdefault(file.version_id, []).append(file)
    gil, found = GilReleaser(), list[Released]()
    for version in versions.list_versions(r, package.id):
        found += _of_version(format_, repository, key, version, by_version.get(version.id, ()))
        gil.release_if_due()
    return found


def _of_version(
    format_: StoredFormat, repository: Repository, package: str, version: Version, kept: Sequence[File]
) -> Iterator[Released]:
    paths, attests = {each.path for each in kept}, format_.attests
    assert attests is not None, "rules ask for what there is"
    proxied = repository.type is RepositoryType.PROXY
    for file in kept:
        at_ms: int | None = to_ms(version.published_at)
        if proxied:
            at_ms = None if file.origin is None else file.origin.published_ms
        if file.role is None and at_ms is not None:
            beside = file.path + attests.suffix
            there = [file.path, beside] if beside in paths else [file.path]
            claim = attests.claim(version.meta, there)
            if proxied:
                claim = attests.claim_of_upstream(version.meta, there, at_ms)
            digests = {**file.digests, "sha256": file.sha256}
            about = AttestedFile(package, version.text, file.path, digests)
            yield released(format_, repository.id, about, at_ms, claim)


def released(format_: StoredFormat, repository_id: int, file: AttestedFile, at_ms: int, claim: Claim) -> Released:
    """A file of a repository with an id, of which this is claimed."""
    name = attested_name(name_of(file.digests, place_of(repository_id, file.path)), file.path)
    unsaid = Unsaid(name, file, at_ms) if claim.unsaid else None
    rank = Rank.NONE if claim.unsaid else claim.rank
    return Released(file.version, at_ms, rank, is_prerelease(format_, file.version), unsaid)


def is_prerelease(format_: StoredFormat, text: str) -> bool:
    """Whether a version is a prerelease."""
    return format_.versions is not None and format_.versions.prerelease(text)
