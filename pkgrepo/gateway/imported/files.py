"""Takes in the files of packages, by the one way in which releases are published; and what else is known of them."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping, Sequence
from typing import Final

from attrs import Factory, evolve, frozen
from twisted.internet.defer import Deferred, DeferredList
from twisted.python.failure import Failure

from pkgrepo.errors import FileBurned, FileExists, SizeMismatch
from pkgrepo.gateway.imported.engine import Order, Taken, Tools
from pkgrepo.gateway.imported.items import MARK, Item, SourcePackage, Taking
from pkgrepo.interfaces import Reader, Transaction
from pkgrepo.model import SYSTEM, BlobInfo, File, Repository, Version, VersionState
from pkgrepo.model.admission import Admitted
from pkgrepo.repositories.publish.index import Change, Indexer, PackageIndex
from pkgrepo.repositories.publish.package_changes import append_package_event, bump_package_serial, set_version_state
from pkgrepo.repositories.publish.releases import Release
from pkgrepo.repositories.publish.staged import Staged
from pkgrepo.storage.catalog.packages import packages, release_batches, tags, versions
from pkgrepo.storage.catalog.packages.files import filename

AT_ONCE: Final = 32  # files of a package that are fetched, and then published in one transaction
FETCHES: Final = 8  # of these at a time
LONGEST_NAME: Final = 200  # characters of a publisher
LARGEST_WHOLE: Final = 512  # files of a version that is taken in whole; of snapshots there may be thousands
BATCH_SIZE: Final = 64 * 1024 * 1024  # bytes after which no more files are waited for
ALGORITHMS: Final = ("md5", "sha1", "sha512")  # beside sha256; others that a source names are not compared


@frozen(kw_only=True)
class FileTaker:
    """
    Takes in what is missing of packages that consist of files; see ``pkgrepo.gateway.imported.engine``.

    ``broken`` are versions that are left out whole, each with the file for which, as the source knows it already.
    """

    tools: Tools
    order: Order
    taking: Taking
    indexer: Indexer
    broken: Mapping[str, str] = Factory(dict)

    async def __call__(self, source_package: SourcePackage, taken: Taken) -> None:
        """Take in the missing files of a package, a batch at a time, and then its yanks, deprecations and tags."""
        repository, catalog = self.order.repository, self.tools.catalog
        settled: SourcePackage = await catalog.scan(self.taking.settle, repository.id, source_package)
        stored, deleted = await catalog.scan(_find_files, repository.id, [each.path for each in settled.items])
        if self._reuses:
            deleted = set()
        missing: list[Item] = []
        for item in settled.items:
            found = stored.get(item.path)
            if found is None and item.path in deleted:
                taken.refuse(item.name, FileBurned(filename(item.path)))
            elif found is None:
                missing.append(item)
            else:
                await self._compare(item, found, taken)
        if self.order.dry_run:
            taken.count(len(missing), sum(each.size or 0 for each in missing))
            return
        broken = dict(self.broken)
        while missing:
            some = _batch(missing, whole=self.taking.join is not None)
            taken_now = {each.path for each in some}
            missing = [each for each in missing if each.path not in taken_now]
            await self._take(settled, some, taken, broken)
        if settled.states or settled.tags or settled.meta:
            changed, kept = await self.tools.content.change(
                _set_facts, repository, settled, taken.may_move, self.order.actor, self.indexer
            )
            taken.report.facts += changed
            for tag, version in kept:
                taken.leave_out(f"tag {tag}", f"it stands for {version} here since it was moved here")

    async def _compare(self, item: Item, found: File, taken: Taken) -> None:
        """Count an item whose path has a file: it is there already, or left out since that is another one."""
        known = {**found.digests, "sha256": found.sha256}
        common = known.keys() & item.digests.keys()
        try:
            if common:
                same = all(known[each] == item.digests[each] for each in common)
            else:
                digest = hashlib.sha256()
                async for chunk in item.place.chunks():
                    await self.tools.pools.cpu(digest.update, chunk)
                same = digest.hexdigest() == found.sha256
            if not same:
                raise FileExists(filename(found.path), found.sha256)
        except Exception as error:  # noqa: BLE001 - one bad file does not stop the others
            taken.refuse(item.name, error)
        else:
            taken.count_present(1)

    async def _take(
        self, source_package: SourcePackage, some: Sequence[Item], taken: Taken, broken: dict[str, str]
    ) -> None:
        """
        Fetch and publish some files in one transaction; those that are refused do not stop the others.

        ``broken`` are the versions that are left out whole, each with the file for which.
        """
        content, order = self.tools.content, self.order
        async with content.stage(order.repository, source_package.key, user_id=order.actor.user_id) as staged:
            releases: list[tuple[Item, Release]] = []
            wanted = [each for each in some if each.version not in broken]
            for at in range(0, len(wanted), FETCHES):
                releases += await self._fetch_some(source_package, wanted[at : at + FETCHES], staged, taken, broken)
            refused = {item.path for item in wanted} - {item.path for item, _ in releases}
            for item in some:
                if item.version in broken and item.path not in refused:
                    taken.leave_out(item.name, f"its version is left out: {broken[item.version]} is")
            releases = [(item, release) for item, release in releases if item.version not in broken]
            if not releases:
                return
            groups = self._join(releases)
            published = await content.keep_together(
                order.repository, [release for _, release in groups], staged, order.actor, self.indexer
            )
        sizes = {item.path: release.files[0].blob.size for item, release in releases}
        for (items, _), outcome in zip(groups, published, strict=True):
            for item in items:
                if isinstance(outcome, Exception):
                    taken.refuse(item.name, outcome)
                elif outcome.changed:
                    taken.count(1, sizes[item.path])
                else:
                    taken.count_present(1)

    async def _fetch_some(
        self, source_package: SourcePackage, some: Sequence[Item], staged: Staged, taken: Taken, broken: dict[str, str]
    ) -> list[tuple[Item, Release]]:
        """The releases of files that are fetched at the same time; those that are refused are left out."""
        works = [Deferred.fromCoroutine(self._fetch(source_package, each, staged)) for each in some]
        try:
            outcomes = await DeferredList(works, consumeErrors=True)
        except BaseException:
            for each in works:
                each.cancel()
            await DeferredList(works, consumeErrors=True)
            raise
        found: list[tuple[Item, Release]] = []
        for item, (fetched, result) in zip(some, outcomes, strict=True):
            if fetched:
                found.append((item, result))
            else:
                taken.refuse(item.name, _error_of(result))
                if self.taking.join is not None and self.taking.needed(item):
                    broken.setdefault(item.version, item.name)
        return found

    def _join(self, releases: Sequence[tuple[Item, Release]]) -> list[tuple[Sequence[Item], Release]]:
        """The releases to be published, each with the items that it has."""
        join = self.taking.join
        if join is None:
            return [([item], release) for item, release in releases]
        groups: dict[tuple[str, str], list[tuple[Item, Release]]] = {}
        for item, release in releases:
            groups.setdefault((release.package_key, release.version_key), []).append((item, release))
        return [([item for item, _ in some], join([each for _, each in some])) for some in groups.values()]

    @property
    def _reuses(self) -> bool:
        """Whether the names of deleted files may be used again."""
        return bool(self.order.repository.policy.get("reuse_deleted_names", False))

    async def _fetch(self, source_package: SourcePackage, item: Item, staged: Staged) -> Release:
        """The release of a file, whose bytes are staged. :raises Exception: it cannot be taken in"""
        expected = {name: value for name, value in item.digests.items() if name in (*ALGORITHMS, "sha256")}
        algorithms = {*self.taking.algorithms, *expected} - {"sha256"}
        blob: BlobInfo = await staged.receive(
            item.place.chunks(),
            limit=self.tools.max_upload,
            expect_size=item.size,
            algorithms=sorted(algorithms),
            expected=expected or None,
        )
        if item.size is not None and blob.size != item.size:
            raise SizeMismatch(item.size, blob.size)
        release = await self.taking.take(source_package, item, staged, blob, self.tools.pools)
        published_ms = item.place.modified_ms if item.published_ms is None else item.published_ms
        origin = {"from": self.order.place, "by": self.order.actor.name, "at_ms": self.tools.clock.now_ms()}
        return evolve(
            release,
            kind=MARK,
            published_ms=published_ms,
            publisher=_person(item.publisher),
            reuse=self._reuses,
            files=tuple(
                evolve(each, attrs={**each.attrs, MARK: origin}, created_ms=published_ms) for each in release.files
            ),
        )


def _person(name: str | None) -> str | None:
    """A name that a source says, without control characters, and not longer than one of ours may be."""
    return None if name is None else "".join(each for each in name if each.isprintable())[:LONGEST_NAME] or None


def _batch(items: Sequence[Item], *, whole: bool) -> Sequence[Item]:
    """The first files, as many as are taken in together; at least one. ``whole``: all of the version of the first."""
    if whole:
        version = items[0].version
        return [each for each in items if each.version == version][:LARGEST_WHOLE]
    size = 0
    for number, each in enumerate(items[:AT_ONCE]):
        size += each.size or 0
        if number and size > BATCH_SIZE:
            return items[:number]
    return items[:AT_ONCE]


def _find_files(reader: Reader, repository_id: int, paths: Sequence[str]) -> tuple[dict[str, File], set[str]]:
    """The files at these paths, and those of the paths whose files were deleted."""
    found = release_batches.find_files(reader, repository_id, dict.fromkeys(paths))
    free = [path for path in paths if path not in found]
    return dict(found), release_batches.paths_with_tombstones(reader, repository_id, free)


def _error_of(result: object) -> Exception:
    assert isinstance(result, Failure)
    if not isinstance(result.value, Exception):
        result.raiseException()  # such as the end of the process
    return result.value


def _set_facts(
    tx: Transaction,
    repository: Repository,
    source_package: SourcePackage,
    may_move: Callable[[str, str | None], bool],
    actor: Admitted,
    indexer: Indexer,
    now_ms: int,
) -> tuple[int, Sequence[tuple[str, str]]]:
    """
    Give the versions of a package the states and tags that they have at the source. What is yanked here stays so.

    Returns the number of changes, and the tags that stay what they are here, with their versions.
    """
    package = packages.find_package(tx, repository.id, source_package.key)
    if package is None:
        return 0, ()
    changes = 0
    by_text = {each.text: each for each in versions.list_versions(tx, package.id)}
    for text, (state, reason) in source_package.states.items():
        version = by_text.get(text)
        stays = version is not None and version.state is VersionState.YANKED and state is not VersionState.YANKED
        if version is not None and not stays and (version.state, version.reason) != (state, reason):
            set_version_state(tx, repository, package.key, version.key, state, reason, actor, indexer, now_ms)
            changes += 1
    moved, kept = _move_tags(tx, package.id, source_package, by_text, may_move, actor, now_ms)
    new_meta = {key: value for key, value in source_package.meta.items() if key not in package.meta}
    if moved or new_meta:
        fresh = packages.find_package(tx, repository.id, source_package.key)
        assert fresh is not None
        fresh = bump_package_serial(tx, repository, fresh, now_ms)
        if new_meta:
            fresh = evolve(fresh, meta={**fresh.meta, **new_meta})
            packages.touch_package(tx, fresh.id, serial=fresh.serial, now_ms=now_ms, meta=fresh.meta)
        indexer(PackageIndex(tx, fresh, now_ms), Change())
        data = {"tags": moved, "targets": {each: source_package.tags[each] for each in moved}}
        append_package_event(tx, fresh, "tagged" if moved else "changed", data, actor, now_ms)
    return changes + len(moved) + len(new_meta), kept


def _move_tags(
    tx: Transaction,
    package_id: int,
    source_package: SourcePackage,
    by_text: Mapping[str, Version],
    may_move: Callable[[str, str | None], bool],
    actor: Admitted,
    now_ms: int,
) -> tuple[list[str], list[tuple[str, str]]]:
    """Set tags; those that were set, and those that are not, with their versions."""
    present = tags.tagged_versions(tx, package_id)
    moved: list[str] = []
    kept: list[tuple[str, str]] = []
    for name, text in source_package.tags.items():
        version, now = by_text.get(text), present.get(name)
        if version is None or now == text:
            continue
        tag = tags.find_tag(tx, package_id, name)
        # the server itself sets ``latest`` with the first version
        if may_move(name, now) or (tag is not None and tag.actor == SYSTEM.name):
            tags.set_tag(tx, package_id, name, version_id=version.id, actor=actor, now_ms=now_ms)
            moved.append(name)
        else:
            kept.append((name, now or ""))
    return moved, kept
