"""Files of packages that are kept of a repository that is followed; see L{pkgrepo.replication.copies.Copies}."""

from __future__ import annotations

import re
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import suppress
from functools import partial
from typing import Final

from attrs import define, frozen

from pkgrepo.auth.permissions.admission import Road, admit_server
from pkgrepo.errors import Invalid, NotFound, UpstreamFailed, UpstreamMismatch
from pkgrepo.interfaces import ICatalog, Reader, Transaction
from pkgrepo.model import SYSTEM, File, Package, Repository, Version, VersionState
from pkgrepo.model.admission import Admitted
from pkgrepo.proxy.configuration import proxy_config_of, rules_of
from pkgrepo.proxy.format import Proxied
from pkgrepo.proxy.resolving.resolver import Resolver
from pkgrepo.repositories.clock import from_ms
from pkgrepo.repositories.format import StoredFormat
from pkgrepo.repositories.policy.refusals import RuleRefused
from pkgrepo.repositories.publish.content import ContentWriter
from pkgrepo.repositories.publish.index import Change, Indexer, PackageIndex
from pkgrepo.repositories.publish.package_changes import (
    EVICTED,
    append_package_event,
    bump_package_serial,
    remove_files,
    set_version_state,
)
from pkgrepo.storage.catalog.packages import files, packages, tags, versions
from pkgrepo.storage.catalog.packages.deleted_names import DeletedName, adopt_deleted, take_back
from pkgrepo.storage.catalog.packages.pins import pinned_units
from pkgrepo.storage.catalog.server.repositories import get_repository
from pkgrepo.storage.catalog.upstream_documents import documents_of_package

from .source import Digests, RemotePath, RemoteVersion

Fetch = Callable[[Repository, str, str], Awaitable[File]]

LATEST: Final = "latest"  # a tag that moves with every version that is kept
_STATES: Final = frozenset(VersionState)
_SHA256: Final = re.compile("[0-9a-f]{64}")


@frozen
class _Kept:
    """
    A version and its files that are kept, by path; whether it is pinned, and how many bytes the repository keeps.

    ``burned`` are the paths of files of its package that are taken by what was deleted.
    """

    version: Version | None
    files: Mapping[str, File]
    pinned: bool
    bytes: int
    burned: Sequence[str] = ()


@define(eq=False, kw_only=True)
class FileCopies:
    """The files of all formats with indexed packages; ``fetch`` keeps the file of a package at a path."""

    _catalog: ICatalog
    _content: ContentWriter
    _resolver: Resolver
    _formats: Mapping[str, StoredFormat]
    _proxied: Mapping[str, Proxied]
    _fetch: Fetch

    async def kept(self, repository: Repository, package: str) -> Sequence[str]:
        """The texts of the versions that are kept."""
        found: Sequence[str] = await self._catalog.scan(_read_versions, repository.id, package)
        return found

    async def keep(self, repository: Repository, package: str, version: RemoteVersion) -> None:
        """Bring a version to the state of the upstream."""
        try:
            key = self._formats[repository.format].version_key(version.version)
        except Invalid:
            return  # no client could ask for it
        format_ = self._formats[repository.format]
        public = format_.public_path
        kept: _Kept = await self._catalog.scan(_read_kept, repository.id, package, key)
        listed = {public(each.path): each for each in version.files}
        gone = [path for path, file in kept.files.items() if not _is_there(file, public(path), listed)]
        if gone and not self._holds(repository, kept):
            other = [path for path in gone if public(path) in listed]
            await self._evict(repository, package, key, other, burns=False)
            await self._evict(repository, package, key, [path for path in gone if path not in other], burns=True)
        await self._renew(repository, package, [*listed])
        present = {public(path) for path in kept.files if path not in gone}
        missing = {path: each for path, each in listed.items() if path not in present}
        served = [each for path, each in missing.items() if each.path == path]
        back = [each for each in kept.burned if public(each) in listed and listed[public(each)].path == public(each)]
        if back:
            await self._content.change(_take_back, repository, package, back)
        held = await self._fetch_all(repository, package, served, kept.bytes)
        await self._content.change(adopt_facts, repository, package, key, version, format_.index)
        withdrawn = [each for path, each in missing.items() if each.path != path]  # nobody gets its bytes
        if withdrawn:
            await self._content.change(burn, repository, package, withdrawn)
        if held is not None:
            raise held

    async def drop(self, repository: Repository, package: str, version: str) -> None:
        """Evict a version that the upstream does not have any more."""
        try:
            key = self._formats[repository.format].version_key(version)
        except Invalid:
            return
        kept: _Kept = await self._catalog.scan(_read_kept, repository.id, package, key)
        if kept.version is not None and not self._holds(repository, kept):
            await self._evict(repository, package, key, None, burns=True)
        await self._renew(repository, package, [*kept.files])

    async def renew(self, repository: Repository, package: str) -> None:
        """Ask again for the documents of a package that are kept."""
        paths: Sequence[str] = await self._catalog.scan(_read_paths, repository.id, package)
        await self._renew(repository, package, paths)

    def _holds(self, repository: Repository, kept: _Kept) -> bool:
        """Whether files stay that the upstream does not have any more."""
        return kept.pinned or rules_of(repository).keep_removed

    def _wants(self, repository: Repository, package: str, path: str) -> bool:
        follows = proxy_config_of(repository).follows
        return follows is not None and follows.wants(f"{package}/{path.rpartition('/')[2]}")

    async def _evict(
        self, repository: Repository, package: str, key: str, paths: Sequence[str] | None, *, burns: bool
    ) -> None:
        """
        Remove files of a version, all of them if ``paths`` is None.

        With ``burns`` other content is not published at their paths on the day on which the repository is hosted here.
        """
        if paths is not None and not paths:
            return
        command = partial(remove_files, kind=EVICTED)
        indexer = self._formats[repository.format].index
        with suppress(NotFound):  # it went meanwhile
            await self._content.change(command, repository, package, key, paths, SYSTEM, indexer, burns)

    async def _fetch_all(
        self, repository: Repository, package: str, missing: Sequence[RemotePath], size: int
    ) -> RuleRefused | None:
        """
        Fetch those files that are wanted, as long as there is room; an error is raised when all were tried.

        Returns the refusal of one that a rule here lets in later.
        """
        room, failure, held = proxy_config_of(repository).max_bytes, None, None
        for each in missing:
            if not self._wants(repository, package, each.path):
                continue
            size += max(each.size, 0)
            if room is not None and size > room:
                break  # it would be evicted again
            try:
                await self._get(repository, package, each.path, each.digests)
            except UpstreamFailed as error:
                failure = failure or error
            except RuleRefused as error:
                held = held or (error if error.may_open else None)
            except NotFound:  # it is gone again: another event says so
                continue
        if failure is not None:
            raise failure
        return held

    async def _get(self, repository: Repository, package: str, path: str, digests: Digests) -> None:
        file = await self._fetch(repository, package, path)
        if not _has(file, digests):
            raise UpstreamMismatch(
                proxy_config_of(repository).routes[0].name, f"it sends another {path} than the one that it lists"
            )

    async def _renew(self, repository: Repository, package: str, paths: Sequence[str]) -> None:
        """Ask for the documents that list some paths, if any document of the package is kept, or files are wanted."""
        follows = proxy_config_of(repository).follows
        eager = follows is not None and bool(follows.files)
        if not eager and not await self._catalog.scan(documents_of_package, repository.id, package):
            return
        document_of = self._proxied[repository.format].document_of
        for key in dict.fromkeys(document_of(package, path) for path in paths or ("",)):
            with suppress(NotFound, Invalid):
                await self._resolver.state(repository, key)


def _is_there(file: File, path: str, listed: Mapping[str, RemotePath]) -> bool:
    """Whether the upstream has a file as it is kept, or the one of which it is a companion."""
    if path in listed:
        return _has(file, listed[path].digests)
    return file.role is not None and any(path.startswith(each) for each in listed)


def _has(file: File, digests: Digests) -> bool:
    """Whether a file has all digests that are listed of it, of those that are known."""
    known = {**file.digests, "sha256": file.sha256}
    return all(known[name] == digest for name, digest in digests.items() if name in known)


def _read_versions(r: Reader, repository_id: int, package: str) -> list[str]:
    found = packages.find_package(r, repository_id, package)
    return [] if found is None else versions.version_texts(r, found.id)


def _read_paths(r: Reader, repository_id: int, package: str) -> list[str]:
    found = packages.find_package(r, repository_id, package)
    return [] if found is None else [each.path for each in files.files_of_package(r, found.id)]


def _read_kept(r: Reader, repository_id: int, package: str, key: str) -> _Kept:
    size = get_repository(r, repository_id).bytes_used
    burned = [each.path for each in files.tombstones_of_package(r, repository_id, package)]
    version = versions.find_by_keys(r, repository_id, package, key)
    if version is None:
        return _Kept(None, {}, pinned=False, bytes=size, burned=burned)
    pinned = (package, key) in pinned_units(r, repository_id)
    held = {each.path: each for each in files.files_of_version(r, version.id)}
    return _Kept(version, held, pinned=pinned, bytes=size, burned=burned)


def _take_back(tx: Transaction, repository: Repository, package: str, paths: Sequence[str], now_ms: int) -> None:
    take_back(tx, repository.id, package, paths, now_ms)


def burn(
    tx: Transaction, repository: Repository, package_key: str, withdrawn: Sequence[RemotePath], now_ms: int
) -> None:
    """
    Have no other content at the paths of files that the upstream keeps and gives nobody, once this is hosted here.

    They are those of yanked versions that were never fetched.
    """
    names = [
        DeletedName(package_key, each.path, each.digests["sha256"], from_ms(now_ms))
        for each in withdrawn
        if _SHA256.fullmatch(each.digests.get("sha256", ""))
    ]
    adopt_deleted(tx, repository.id, names, now_ms)


def adopt_facts(
    tx: Transaction,
    repository: Repository,
    package_key: str,
    key: str,
    remote: RemoteVersion,
    indexer: Indexer,
    now_ms: int,
) -> None:
    """
    Give a kept version the state and the tags that it has at the upstream, for the day on which it is hosted here.

    Clients of a proxy get both from documents of the upstream.
    """
    package = packages.find_package(tx, repository.id, package_key)
    version = None if package is None else versions.find_version(tx, package.id, key)
    if package is None or version is None:
        return
    state = VersionState(remote.state) if remote.state in _STATES else version.state
    admitted = admit_server(Road.REPLICA, repository)
    if state is not version.state or remote.reason != version.reason:
        set_version_state(tx, repository, package.key, key, state, remote.reason, admitted, indexer, now_ms)
    _adopt_tags(tx, repository, package, version, remote.tags, admitted, indexer, now_ms)


def _adopt_tags(
    tx: Transaction,
    repository: Repository,
    package: Package,
    version: Version,
    names: Sequence[str],
    admitted: Admitted,
    indexer: Indexer,
    now_ms: int,
) -> None:
    present = set(tags.names_by_version(tx, package.id).get(version.id, ()))
    moved, gone = sorted({*names} - present), sorted(present - {*names, LATEST})
    for name in moved:
        tags.set_tag(tx, package.id, name, version_id=version.id, actor=admitted, now_ms=now_ms)
    for name in gone:
        tags.remove_tag(tx, package.id, name)
    if moved or gone:
        package = bump_package_serial(tx, repository, package, now_ms)
        indexer(PackageIndex(tx, package, now_ms), Change())
    if moved:
        append_package_event(tx, package, "tagged", {"tags": moved}, SYSTEM, now_ms, version=version)
    if gone:
        append_package_event(tx, package, "untagged", {"tags": gone}, SYSTEM, now_ms, version=version)
