"""A random walk over everything that changes what repositories use, and the sums that the counts must equal."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from itertools import product
from random import Random
from typing import Any

from pkgrepo.errors import PkgrepoError, QuotaExceeded
from pkgrepo.interfaces import ICatalog, Reader, Transaction
from pkgrepo.model import SYSTEM, Actor, BlobInfo, NewFile, Project, Repository, RepositoryType, Visibility
from pkgrepo.repositories.images.blobs import delete_blob, link_blob, mount_blob
from pkgrepo.repositories.images.manifests import delete_manifest, put_manifest
from pkgrepo.repositories.images.push import Push
from pkgrepo.repositories.publish.owner_quotas import usage_of
from pkgrepo.repositories.publish.package_changes import remove_files, remove_package, remove_versions
from pkgrepo.repositories.publish.plain_files import put_plain_file, remove_plain_file
from pkgrepo.repositories.publish.releases import Release, publish_releases
from pkgrepo.repositories.upkeep.trash import restore_some
from pkgrepo.storage.catalog.images.manifests import ManifestRecord
from pkgrepo.storage.catalog.people import projects, users
from pkgrepo.storage.catalog.server import quotas, repositories, settings, storages, trash
from pkgrepo.storage.catalog.server.quotas import QuotaKind, Usage
from tests.support.admission import admitted

NAMES = [f"p{number}" for number in range(6)]
OWNED = ["p0", "p1", "i0"]
NOW = 1_800_000_000_000
SUMS = (
    "SELECT COALESCE(SUM(size), 0) FROM file WHERE repository_id = ?",
    "SELECT COALESCE(SUM(size), 0) FROM manifest WHERE repository_id = ?",
    """SELECT COALESCE(SUM(b.size), 0) FROM package_blob x JOIN package p ON p.id = x.package_id
       JOIN repository r ON r.id = p.repository_id JOIN blob b ON b.storage_id = r.storage_id AND b.sha256 = x.sha256
       WHERE r.id = ?""",
    "SELECT COALESCE(SUM(size), 0) FROM trash WHERE repository_id = ?",
)


PUBLISHED = (
    "SELECT f.size, v.package_id, v.id FROM version v LEFT JOIN file f ON f.version_id = v.id WHERE v.publisher_id = ?",
    "SELECT m.size, m.package_id, -m.id FROM manifest m WHERE m.publisher_id = ?",
    """SELECT b.size, 0, 0 FROM package_blob x JOIN blob b ON b.sha256 = x.sha256 AND b.storage_id = 1
       WHERE x.publisher_id = ?""",
)


def published_by(r: Reader, user_id: int) -> Usage:
    """What a user has published, from all its rows; there is one storage."""
    found = [row for sql in PUBLISHED for row in r.all(sql, (user_id,))]
    owned = [(package, version) for _, package, version in found if package]
    return Usage(
        bytes=sum(size or 0 for size, _, _ in found),
        packages=len({package for package, _ in owned}),
        versions=len({version for _, version in owned}),
    )


def owned_by(r: Reader, names: list[str]) -> Usage:
    """What packages of these names use in all repositories, from their rows."""
    total = Usage()
    for repository_id, name in product((1, 2), names):
        sizes = f"SELECT COALESCE(SUM(size), 0) FROM %s x JOIN package p ON p.id = x.package_id {OF}"
        given = (repository_id, name)
        counts = [r.one(sql, given) for sql in (sizes % "file", sizes % "manifest", LAYERS, TRASHED, COUNTED)]
        files, manifests, layers, trashed, (packages, versions) = [each or (0,) for each in counts]
        total += Usage(int(files[0] + manifests[0] + layers[0] + trashed[0]), int(packages), int(versions))
    return total


OF = "WHERE p.repository_id = ? AND p.key = ?"
LAYERS = f"""
    SELECT COALESCE(SUM(b.size), 0) FROM package_blob x JOIN blob b ON b.sha256 = x.sha256 AND b.storage_id = 1
    JOIN package p ON p.id = x.package_id {OF}
"""
TRASHED = "SELECT COALESCE(SUM(size), 0) FROM trash WHERE repository_id = ? AND package_key = ?"
COUNTED = f"""
    SELECT COUNT(*), COALESCE(SUM((SELECT COUNT(*) FROM version v WHERE v.package_id = p.id)
                                  + (SELECT COUNT(*) FROM manifest m WHERE m.package_id = p.id)), 0) FROM package p {OF}
"""


def summed(r: Reader, repository_id: int) -> Usage:
    """What a repository uses, from all its rows."""

    def count(sql: str) -> int:
        row = r.one(sql, (repository_id,))
        assert row is not None
        return int(row[0])

    return Usage(
        bytes=sum(map(count, SUMS)),
        packages=count("SELECT COUNT(*) FROM package WHERE repository_id = ?"),
        versions=count("SELECT COUNT(*) FROM version v JOIN package p ON p.id = v.package_id WHERE p.repository_id = ?")
        + count("SELECT COUNT(*) FROM manifest WHERE repository_id = ?"),
    )


def add_two_repositories(tx: Transaction) -> list[Repository]:
    """Two repositories of a new storage."""
    storage = storages.add_storage(tx, name="main", kind="Local", settings={"path": "main"}, now_ms=1)
    return [
        repositories.add_repository(
            tx,
            storage_id=storage.id,
            name=name,
            format=name,
            type=RepositoryType.HOSTED,
            visibility=Visibility.PUBLIC,
            config={},
            settings={},
            now_ms=1,
        )
        for name in ("python", "docker")
    ]


def add_owners(tx: Transaction, some: list[Repository]) -> tuple[Project, list[Actor]]:
    """A project that owns the first packages and images, and two users."""
    project = projects.add_project(tx, key="acme", now_ms=1)
    for repository, name in product(some, OWNED):
        projects.bind_names(tx, repository.id, name, project.id)
    found = [users.add_user(tx, username=name, now_ms=1) for name in ("ada", "bob")]
    return project, [Actor(user_id=each.id, name=each.username) for each in found]


def no_documents(_index: Any, _change: Any) -> None:
    """The indexer of a format that keeps no documents."""


class QuotaWalk:
    """
    Random changes of two repositories of one storage, by two users and the server; a project owns some of the packages.

    Some are refused by a quota, or because they do not fit.
    """

    def __init__(self, catalog: ICatalog, some: list[Repository], seed: int) -> None:
        self._catalog = catalog
        self._repositories = some
        self._random = Random(seed)
        self._now_ms = NOW
        self._actor = SYSTEM
        self._owners: list[tuple[QuotaKind, int]] = []
        self._people: list[Actor] = []
        self.refused = 0
        self.done = 0

    async def run(self, steps: int, *, checked_each: int = 1) -> None:
        """Make so many steps, and compare the counts with the sums after some of them."""
        await self._catalog.write(settings.put, trash.TRASH_DAYS, "14")
        project, self._people = await self._catalog.write(add_owners, self._repositories)
        self._owners = [(QuotaKind.PROJECT, project.id)]
        self._owners += [(QuotaKind.USER, each.user_id) for each in self._people if each.user_id is not None]
        for number in range(steps):
            self._now_ms += 1
            before = await self._used()
            self._actor = self._random.choice([SYSTEM, *self._people])
            owned = [await self._catalog.look(usage_of, *each) for each in self._owners]
            try:
                await self._step()
            except QuotaExceeded:
                self.refused += 1
                assert await self._used() == before
            except PkgrepoError:
                assert await self._used() == before
            else:
                self.done += 1
            if number % checked_each == 0:
                await self._check(before)
                await self._check_owners(owned)

    async def _check(self, before: Usage) -> None:
        for each in self._repositories:
            counted = await self._catalog.look(quotas.usage_of, QuotaKind.REPOSITORY, each.id)
            assert counted == await self._catalog.look(summed, each.id)
        used = await self._used()
        limits = await self._catalog.look(quotas.limits_of, QuotaKind.STORAGE, self._repositories[0].storage_id)
        for what in ("bytes", "packages", "versions"):
            limit = getattr(limits, what)
            # a limit that was set below what is used is never exceeded further
            assert limit is None or getattr(used, what) <= max(limit, getattr(before, what))

    async def _check_owners(self, before: list[Usage]) -> None:
        look = self._catalog.look
        for (kind, subject), earlier in zip(self._owners, before, strict=True):
            used, limits = await look(usage_of, kind, subject), await look(quotas.limits_of, kind, subject)
            if kind is QuotaKind.PROJECT:
                assert used == await look(owned_by, OWNED)
            else:
                assert used == await look(published_by, subject)
            if kind is QuotaKind.USER and self._actor.user_id != subject:
                continue  # others may add files to a version of the user
            for what in ("bytes", "packages", "versions"):
                limit = getattr(limits, what)
                assert limit is None or getattr(used, what) <= max(limit, getattr(earlier, what))

    async def _used(self) -> Usage:
        used: Usage = await self._catalog.look(quotas.usage_of, QuotaKind.STORAGE, self._repositories[0].storage_id)
        return used

    async def _step(self) -> None:
        choose = self._random
        repository = choose.choice(self._repositories)
        steps: list[tuple[int, Callable[[Transaction, Repository], object]]] = [
            (8, self._publish),
            (2, self._remove_files),
            (2, self._remove_versions),
            (1, self._remove_package),
            (3, self._put_plain),
            (1, self._remove_plain),
            (5, self._push_blob),
            (2, self._mount),
            (4, self._push_manifest),
            (2, self._delete_manifest),
            (2, self._delete_blob),
            (2, self._restore),
            (1, self._empty_trash),
            (1, self._set_quota),
        ]
        step = choose.choices([each for _, each in steps], [weight for weight, _ in steps])[0]
        await self._catalog.write(lambda tx: step(tx, repository))

    def _blob(self) -> BlobInfo:
        """One of a few contents, so that the same is stored more than once."""
        number = self._random.randrange(40)
        sha256 = hashlib.sha256(str(number).encode()).hexdigest()
        return BlobInfo(sha256, number * 37 % 1000, f"locator-{number}-{self._random.randrange(3)}", {})

    def _publish(self, tx: Transaction, repository: Repository) -> None:
        releases = []
        for _ in range(self._random.randint(1, 3)):
            package, version = self._random.choice(NAMES), self._random.choice("12345")
            paths = self._random.sample("abc", self._random.randint(1, 2))
            releases.append(
                Release(
                    package_key=package,
                    package_name=package,
                    version_key=version,
                    version_text=version,
                    sort=version.encode(),
                    files=tuple(
                        NewFile(f"{package}/{version}/{path}", self._blob(), "text/plain", {}) for path in paths
                    ),
                    overwrite=self._random.random() < 0.7,
                    reuse=self._random.random() < 0.9,
                )
            )
        publish_releases(tx, repository, releases, admitted(repository, self._actor), no_documents, self._now_ms)

    def _remove_files(self, tx: Transaction, repository: Repository) -> None:
        package, version = self._random.choice(NAMES), self._random.choice("12345")
        paths = None if self._random.random() < 0.4 else [f"{package}/{version}/{self._random.choice('abc')}"]
        remove_files(tx, repository, package, version, paths, self._actor, no_documents, False, self._now_ms)

    def _remove_versions(self, tx: Transaction, repository: Repository) -> None:
        keys = self._random.sample("12345", self._random.randint(1, 5))
        remove_versions(
            tx, repository, self._random.choice(NAMES), keys, self._actor, no_documents, False, self._now_ms
        )

    def _remove_package(self, tx: Transaction, repository: Repository) -> None:
        remove_package(tx, repository, self._random.choice(NAMES), self._actor, False, self._now_ms)

    def _put_plain(self, tx: Transaction, repository: Repository) -> None:
        new = NewFile(f"plain/{self._random.randrange(5)}", self._blob(), "text/plain", {})
        put_plain_file(
            tx, repository, new, self._random.random() < 0.8, admitted(repository, self._actor), None, self._now_ms
        )

    def _remove_plain(self, tx: Transaction, repository: Repository) -> None:
        remove_plain_file(tx, repository, f"plain/{self._random.randrange(5)}", self._actor, self._now_ms)

    def _image(self) -> str:
        return f"i{self._random.randrange(4)}"

    def _push_blob(self, tx: Transaction, repository: Repository) -> None:
        blob = self._blob()
        link_blob(
            tx,
            repository,
            self._image(),
            blob,
            f"sha256:{blob.sha256}",
            None,
            None,
            admitted(repository, self._actor),
            self._now_ms,
        )

    def _mount(self, tx: Transaction, repository: Repository) -> None:
        source, digest = self._random.choice(self._repositories), f"sha256:{self._blob().sha256}"
        mount_blob(
            tx,
            repository,
            self._image(),
            source,
            self._image(),
            digest,
            None,
            admitted(repository, self._actor),
            self._now_ms,
        )

    def _push_manifest(self, tx: Transaction, repository: Repository) -> None:
        blob, layer = self._blob(), self._blob()
        manifest = ManifestRecord(
            digest=f"sha256:{blob.sha256}",
            sha256=blob.sha256,
            media_type="application/vnd.oci.image.manifest.v1+json",
            size=blob.size,
            references=((f"sha256:{layer.sha256}", "layer"),),
        )
        tags = tuple(self._random.sample(["a", "b", "c"], self._random.randint(0, 2)))
        push = Push(manifest=manifest, blob=blob, required=(), tags=tags)
        put_manifest(tx, repository, self._image(), push, admitted(repository, self._actor), self._now_ms)

    def _delete_manifest(self, tx: Transaction, repository: Repository) -> None:
        digest = f"sha256:{self._blob().sha256}"
        delete_manifest(tx, repository, self._image(), digest, self._actor, self._now_ms)

    def _delete_blob(self, tx: Transaction, repository: Repository) -> None:
        delete_blob(tx, repository, self._image(), f"sha256:{self._blob().sha256}", self._now_ms)

    def _restore(self, tx: Transaction, repository: Repository) -> None:
        row = tx.one("SELECT uid FROM trash WHERE repository_id = ? ORDER BY id DESC LIMIT 1", (repository.id,))
        if row is not None:
            restore_some(
                tx, repository, str(row[0]), no_documents, admitted(repository, self._actor), True, self._now_ms
            )

    def _empty_trash(self, tx: Transaction, repository: Repository) -> None:
        for (key,) in tx.all("SELECT id FROM trash WHERE repository_id = ?", (repository.id,)):
            trash.purge_entry(tx, int(key))

    def _set_quota(self, tx: Transaction, repository: Repository) -> None:
        subjects = [(QuotaKind.SERVER, 0), (QuotaKind.STORAGE, repository.storage_id)]
        kind, subject = self._random.choice([*subjects, (QuotaKind.REPOSITORY, repository.id), *self._owners])
        limits = {
            "bytes": self._random.choice([None, self._random.randrange(30_000)]),
            "packages": self._random.choice([None, self._random.randrange(12)]),
            "versions": self._random.choice([None, self._random.randrange(60)]),
        }
        quotas.change_limits(tx, kind, subject, limits)
