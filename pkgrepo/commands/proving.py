"""
Proves that a backup can be restored: reads all of it, starts a server with its catalog, and fetches some packages.

Every blob of the backup is read and compared with its digest. The catalog, and only the blobs of the sample, are
restored into a temporary folder, so that the check needs little room. The server listens on the loopback interface,
serves hosted repositories alone, and has neither webhooks nor upstreams: it makes no connection. The sample are some
versions of each format, by the paths of its clients: the document in which a client finds a file, then the file itself,
or the manifest and the layers of an image; their digests are compared with those in the catalog.
"""

from __future__ import annotations

import base64
import hashlib
import secrets
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final
from urllib.parse import quote

from attrs import Factory, define, evolve, frozen
from twisted.internet.defer import maybeDeferred
from twisted.internet.endpoints import serverFromString

from pkgrepo.assembly import Assembly
from pkgrepo.client.api import Client
from pkgrepo.client.http import Failed
from pkgrepo.client.profiles import Target
from pkgrepo.commands.restoring import LIST, WORK, Restored, Wish, fetch_catalog, relocate, restore_blobs, settings_of
from pkgrepo.composition.core import Core
from pkgrepo.concurrency.pools import Pools
from pkgrepo.gateway.client_documents import ClientDocument, ClientDocuments
from pkgrepo.interfaces import Reader, Transaction
from pkgrepo.repositories.backup.manifests import id_of, read_list
from pkgrepo.repositories.backup.place import Place, open_place
from pkgrepo.repositories.backup.reading import check_blobs
from pkgrepo.repositories.upkeep.jobs import Progress
from pkgrepo.storage.catalog.people import users
from pkgrepo.storage.catalog.rows import column
from pkgrepo.storage.catalog.server import settings
from pkgrepo.storage.folders import DATABASE

USER: Final = "restore-check-" + secrets.token_hex(4)
WITHHELD: Final = (403, 451)  # statuses of what the rules of a repository keep from everyone
SAFE: Final = "/@+"  # characters that are not encoded in paths
YEAR_MS: Final = 366 * 86_400_000


@frozen
class Sample:
    """A file of a version, or a manifest (``path`` is its digest), by the path of its repository, and what it needs."""

    repository: str
    format: str
    key: str
    name: str
    path: str
    sha256: str
    is_image: bool = False
    needs: tuple[str, ...] = ()  # digests of the blobs of an image


@define
class Proof:
    """The result: blobs that were read, with their bytes, files that were fetched, and what is wrong."""

    id: str = ""
    made_at: str = ""
    blobs: int = 0
    size: int = 0
    fetched: int = 0
    formats: list[str] = Factory(list)
    problems: list[str] = Factory(list)


async def prove(reactor: Any, wish: Wish, sample: int, progress: Progress) -> Proof:
    """
    Check a backup with ``sample`` versions of each format; ``wish.data`` is a new folder for what that needs.

    :raises PkgrepoError: there is no backup, or its catalog is damaged
    """
    pools = Pools(reactor)
    pools.start()
    try:
        place = await open_place(
            wish.destination, pools, uid=None, scratch=wish.data / "spool", low_water=None, writes=False
        )
        try:
            return await _prove(reactor, place, pools, wish, sample, progress)
        finally:
            await place.close()
    finally:
        await pools.stop()


async def _prove(reactor: Any, place: Place, pools: Pools, wish: Wish, sample: int, progress: Progress) -> Proof:
    work = wish.data / WORK
    await pools.disk(work.mkdir, 0o700)
    name, manifest = await fetch_catalog(place, pools, wish, work)
    found = await check_blobs(place, pools, work / LIST, manifest.blobs, progress)
    proof = Proof(
        id=id_of(name),
        made_at=f"{manifest.made_at:%Y-%m-%d %H:%M:%S} UTC",
        blobs=found.blobs,
        size=found.size,
        problems=found.problems,
    )
    database, password = work / DATABASE, secrets.token_urlsafe(24)
    core = Core(settings_of(wish.data, database), reactor)
    await core.start()
    try:
        await relocate(core, readable=False)
        chosen: list[Sample] = await core.catalog.scan(choose, sample)
        only = {digest for each in chosen for digest in (each.sha256, *each.needs)}
        progress.begin("blobs of the sample", manifest.blobs)
        report = Restored()
        await restore_blobs(core, place, read_list(work / LIST), report, progress, only)
        progress.end()
        proof.problems += report.problems
        await core.catalog.write(_isolate, await core.passwords.hash(password), core.clock.now_ms())
    finally:
        await core.stop()
    await _fetch_all(reactor, wish.data, database, password, chosen, proof)
    return proof


async def _fetch_all(
    reactor: Any, data: Path, database: Path, password: str, chosen: list[Sample], proof: Proof
) -> None:
    config = settings_of(data, database, gc__daily="false", log__access="false", auth__anonymous="false")
    assembly = Assembly(config, reactor)
    await assembly.start()
    try:
        port: Any = await serverFromString(reactor, "tcp:0:interface=127.0.0.1").listen(assembly.factory)
        try:
            credentials = base64.b64encode(f"{USER}:{password}".encode()).decode()
            client = Client(reactor, Target(f"http://127.0.0.1:{port.getHost().port}", f"Basic {credentials}"))
            try:
                for each in chosen:
                    await _fetch(client, each, assembly.core.formats[each.format].client_documents, proof)
            finally:
                await client.close()
        finally:
            await maybeDeferred(port.stopListening)
    finally:
        await assembly.stop()


async def _fetch(client: Client, sample: Sample, documents: ClientDocuments, proof: Proof) -> None:
    """Fetch what a client of the format does for one version, and note what is wrong."""
    where = f"{sample.repository}: {sample.name}"
    try:
        if sample.is_image:
            base = f"/v2/{quote(sample.repository)}/{quote(sample.key)}"
            await _compare(client, f"{base}/manifests/{sample.path}", sample.sha256)
            for digest in sample.needs:
                await _compare(client, f"{base}/blobs/sha256:{digest}", digest)
        else:
            base = f"/repositories/{quote(sample.repository)}"
            await _compare(client, f"{base}/{quote(sample.path, safe=SAFE)}", sample.sha256)
            folder = sample.path.rpartition("/")[0]
            for each in (*documents.package(sample.key, sample.name), *documents.folder(folder)):
                wanted = each.named(sample.path, sample.sha256)
                if wanted:
                    await _find(client, base, each, wanted)
    except Failed as error:
        if error.status in WITHHELD:
            return
        proof.problems.append(f"{where}: {sample.path} cannot be fetched from the restored server: {error}")
        return
    proof.fetched += 1
    if sample.format not in proof.formats:
        proof.formats.append(sample.format)


async def _find(client: Client, base: str, document: ClientDocument, wanted: str) -> None:
    """:raises Failed: a document does not have some text"""
    address, search = document.path if document.address is None else document.address, Search(wanted.encode())
    await client.fetch(f"{base}/{quote(address, safe=SAFE)}", search.write, {"Accept": document.accept})
    if not search.found:
        raise Failed(f"{address} does not name {wanted}")


async def _compare(client: Client, path: str, sha256: str) -> None:
    digest = hashlib.sha256()
    await client.fetch(path, digest.update, {"Accept": "*/*"})
    if digest.hexdigest() != sha256:
        raise Failed("it has other bytes")


class Search:
    """Looks for some bytes in a document that arrives in pieces."""

    def __init__(self, wanted: bytes) -> None:
        self.found = False
        self._wanted = wanted
        self._tail = b""

    def write(self, data: bytes) -> None:
        """The next piece."""
        text = self._tail + data
        self.found = self.found or self._wanted in text
        self._tail = text[1 - len(self._wanted) :]


_FILES: Final = """
    SELECT s.name || '/' || r.name, r.format, p.key, p.name, f.path, lower(hex(f.sha256))
    FROM file f JOIN version v ON v.id = f.version_id JOIN package p ON p.id = f.package_id
    JOIN repository r ON r.id = f.repository_id JOIN storage s ON s.id = r.storage_id
    JOIN blob b ON b.storage_id = f.storage_id AND b.sha256 = f.sha256
    WHERE r.format = ? AND r.type = 'Hosted' AND r.active = 1 AND r.deleted_at IS NULL AND r.stage IS NULL
    AND r.parent_id IS NULL AND s.active = 1 AND p.derived = 0 AND v.state = 'live' AND b.state = 'live'
    ORDER BY random() LIMIT ?
"""
_MANIFESTS: Final = """
    SELECT s.name || '/' || r.name, r.format, p.key, p.name, m.digest, lower(hex(m.sha256)), m.id
    FROM manifest m JOIN package p ON p.id = m.package_id JOIN repository r ON r.id = m.repository_id
    JOIN storage s ON s.id = r.storage_id JOIN blob b ON b.storage_id = s.id AND b.sha256 = m.sha256
    WHERE r.type = 'Hosted' AND r.active = 1 AND r.deleted_at IS NULL AND r.stage IS NULL AND s.active = 1
    AND m.expires_at IS NULL AND b.state = 'live' AND r.config NOT LIKE '%"trust"%'
    ORDER BY random() LIMIT ?
"""
_BLOBS: Final = """
    SELECT DISTINCT lower(hex(x.sha256)) FROM manifest_ref t JOIN package_blob x
    ON x.package_id = t.package_id AND 'sha256:' || lower(hex(x.sha256)) = t.digest
    WHERE t.manifest_id = ? AND t.kind <> 'manifest'
"""


def choose(r: Reader, count: int) -> list[Sample]:
    """Some files of live versions of each format, and some manifests, of hosted repositories."""
    formats = [str(each) for (each,) in r.all("SELECT DISTINCT format FROM repository WHERE type = 'Hosted'")]
    found = [_sample(row) for each in sorted(formats) for row in r.all(_FILES, (each, count))]
    for *row, manifest_id in r.all(_MANIFESTS, (count,)):
        needs = tuple(str(digest) for (digest,) in r.all(_BLOBS, (manifest_id,)))
        found.append(evolve(_sample(row), is_image=True, needs=needs))
    return found


def _sample(row: Sequence[Any]) -> Sample:
    repository, format_, key, name, path, sha256 = map(str, row[:6])
    return Sample(repository, format_, key, name, path, sha256)


def _isolate(tx: Transaction, password_hash: str, now_ms: int) -> None:
    """
    Let a server with this catalog connect to nothing and remove nothing, and one more account read everything.

    Retention that was due since the backup was made would remove what is to be fetched.
    """
    tx.execute("DELETE FROM webhook")
    tx.execute("UPDATE repository SET active = 0 WHERE type <> 'Hosted'")
    for uid in column(tx, "SELECT uid FROM repository"):
        settings.put(tx, settings.retention_key(str(uid)), str(now_ms + YEAR_MS))
    users.add_user(tx, username=USER, password_hash=password_hash, admin=True, now_ms=now_ms)
