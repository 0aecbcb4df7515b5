"""
Makes a hosted repository of a proxy that has followed another repository, when the other server is not coming back.

What is kept of upstreams has nearly the form of hosted content: versions, files, manifests and tags are rows of the
same tables, and yanks and tags of versions were noted as they were read. What is not, is made first, some versions in a
transaction, while the repository still is a proxy, to which it makes no difference: files that came from nowhere, and
the fragments of documents that clients got from the upstream until now. Then one transaction makes it a hosted one. A
server that is killed finds one or the other.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

from attrs import Factory, define

from pkgrepo.errors import BlobMissing, Conflict
from pkgrepo.interfaces import ICatalog, Reader, Transaction
from pkgrepo.model import SYSTEM, Actor, Repository, RepositoryType
from pkgrepo.proxy.caching.documents import Documents
from pkgrepo.proxy.caching.questions import Held
from pkgrepo.proxy.parts.file import PartsFile
from pkgrepo.proxy.parts.layout import PartsDamaged
from pkgrepo.repositories.companions import Companions
from pkgrepo.repositories.format import StoredFormat
from pkgrepo.repositories.publish.content import ContentWriter
from pkgrepo.repositories.publish.index import Change, Indexer, PackageIndex
from pkgrepo.repositories.publish.package_changes import append_package_event, bump_package_serial
from pkgrepo.repositories.upkeep.jobs import Progress
from pkgrepo.storage.catalog.blobs.blobs import REWRITTEN
from pkgrepo.storage.catalog.images.contents import content_digests
from pkgrepo.storage.catalog.packages import files, packages, versions
from pkgrepo.storage.catalog.packages.events import append_repository_event
from pkgrepo.storage.catalog.rows import batches, update
from pkgrepo.storage.catalog.server import repositories
from pkgrepo.storage.catalog.server.replicas import forget_replica
from pkgrepo.storage.catalog.upstream_documents import UpstreamDocument, list_documents

JOB: Final = "replica_promotion"  # the kind of the jobs
MOST_NAMED: Final = 100  # things that are missing, in a report
PAGE: Final = 200  # documents or images that are read at once
OF_PROXIES: Final = frozenset({"cache", "cache_ttl", "replicate", "routes_are_replicas", "retention"})  # settings
OF_UPSTREAMS: Final = frozenset({"minimum_release_age", "reserved_names", "pass_searches", "keep_removed"})  # in policy


CACHED: Final = "upstream"  # the attribute of a file that was fetched, with its origin
FROM: Final = "replicated"  # the same in a repository that was promoted, for people
_FETCHED: Final = """
    SELECT DISTINCT p.key, v.key FROM file f JOIN version v ON v.id = f.version_id JOIN package p ON p.id = v.package_id
    WHERE f.repository_id = ? AND f.attrs LIKE '%"upstream":%'
"""


@define
class Missing:
    """What a repository does not keep of what it knows to be at its upstream: how much, and the first of it."""

    count: int = 0
    first: list[str] = Factory(list)

    def add(self, names: Sequence[str]) -> None:
        """Count some names."""
        self.count += len(names)
        self.first += names[: MOST_NAMED - len(self.first)]


async def find_missing(
    catalog: ICatalog, documents: Documents, repository: Repository, format_: StoredFormat, progress: Progress
) -> Missing:
    """
    What documents of the upstream list, or manifests of images refer to, and is not kept.

    What the upstream has and no document here knows of is not found, such as what was published since it was read.
    """
    missing, after = Missing(), ""
    progress.begin(f"what is missing in {repository.path}", 0)
    if format_.images is not None:
        while page := await catalog.scan(packages.list_packages, repository.id, after=after, limit=PAGE):
            for each in page:
                missing.add(await catalog.scan(_missing_of_image, each.id, each.key))
                progress.step()
            after = page[-1].key
        return missing
    while rows := await catalog.scan(list_documents, repository.id, after=after, limit=PAGE):
        for document in rows:
            missing.add(await _missing_of_document(catalog, documents, repository, document))
            progress.step()
        after = rows[-1].key
    return missing


async def _missing_of_document(
    catalog: ICatalog, documents: Documents, repository: Repository, document: UpstreamDocument
) -> Sequence[str]:
    if not document.found or not document.locator:
        return []
    try:
        listed, texts = await documents.kept.read(repository, Held(document), _read_listed)
    except (BlobMissing, PartsDamaged):
        return [f"what {document.key} lists, which is damaged"]
    found: Sequence[str] = await catalog.scan(_not_kept, repository.id, document.package_key, listed, texts)
    return found


def _read_listed(parts: PartsFile) -> tuple[list[str], list[str]]:
    """The paths that a document lists, and the versions of which it lists none."""
    paths: dict[str, None] = {}
    texts: dict[str, None] = {}
    for entry in parts.entries((), b""):
        for file in entry.files:
            paths[file.path] = None
        if not entry.files and entry.version:
            texts[entry.version] = None
    return [*paths], [*texts]


def _not_kept(r: Reader, repository_id: int, package_key: str, paths: Sequence[str], texts: Sequence[str]) -> list[str]:
    missing = [path for path in paths if files.find_file(r, repository_id, path) is None]
    # companions, such as the metadata of wheels, are made of the file with which they are listed
    missing = [path for path in missing if path.rpartition(".")[0] not in paths]
    if not package_key or not texts:
        return missing
    package = packages.find_package(r, repository_id, package_key)
    known = set() if package is None else set(versions.version_texts(r, package.id))
    return [*missing, *(f"{package_key} {text}" for text in texts if text not in known)]


def _missing_of_image(r: Reader, package_id: int, image: str) -> list[str]:
    manifests, blobs = content_digests(r, package_id)
    there = {*manifests, *blobs}
    named = r.all("SELECT DISTINCT digest FROM manifest_ref WHERE package_id = ? ORDER BY digest", (package_id,))
    return [f"{image}@{digest}" for (digest,) in named if digest not in there]


async def prepare(
    content: ContentWriter, catalog: ICatalog, repository: Repository, indexer: Indexer, progress: Progress
) -> None:
    """Make of what is kept what a hosted repository has."""
    after = ""
    progress.begin(f"packages of {repository.path}", 0)
    while page := await catalog.scan(packages.list_packages, repository.id, after=after, limit=PAGE):
        for package in page:
            done: Sequence[str] = await catalog.scan(versions.version_keys, package.id)
            for some in batches(done):
                await content.change(make_own, repository, package.key, some, indexer)
            progress.step()
        after = page[-1].key


def make_own(
    tx: Transaction, repository: Repository, package_key: str, keys: Sequence[str], indexer: Indexer, now_ms: int
) -> None:
    """Have versions of a package as if their files were published here; nothing happens to those that are."""
    package = packages.find_package(tx, repository.id, package_key)
    for key in keys:
        version = None if package is None else versions.find_version(tx, package.id, key)
        if package is None or version is None:
            continue
        fetched = [each for each in files.files_of_version(tx, version.id) if CACHED in each.attrs]
        for file in fetched:
            attrs = {name: value for name, value in file.attrs.items() if name != CACHED}
            update(tx, "file", file.id, attrs={**attrs, FROM: file.attrs[CACHED]})
        if fetched:
            package = bump_package_serial(tx, repository, package, now_ms)
            indexer(PackageIndex(tx, package, now_ms), Change(version=version))
            append_package_event(tx, package, REWRITTEN, {}, SYSTEM, now_ms, version=version)


def promote(
    tx: Transaction,
    repository: Repository,
    *,
    indexer: Indexer,
    companions: Companions,
    config: Mapping[str, Any],
    settings: Mapping[str, Any],
    actor: Actor,
    now_ms: int,
) -> Repository:
    """
    The write command: the proxy is a hosted repository from now on, with the checked configuration of one.

    :raises Conflict: it is no proxy any more
    """
    if repositories.get_repository(tx, repository.id).type is not RepositoryType.PROXY:
        raise Conflict(f"repository {repository.path} is no proxy any more")
    for package_key, key in tx.all(_FETCHED, (repository.id,)):  # what came since it was prepared
        make_own(tx, repository, package_key, [key], indexer, now_ms)
    forget_replica(tx, repository.id)
    packages.free_names(tx, repository.id)  # which were noted while something of these packages was kept
    tx.execute("DELETE FROM upstream_document WHERE repository_id = ?", (repository.id,))
    repositories.bump_names_serial(tx, repository.id)
    changed = repositories.update_repository(
        tx, repository.id, type=RepositoryType.HOSTED, config=config, settings=settings, now_ms=now_ms
    )
    companions.ensure(tx, changed, now_ms)
    data = {"name": repository.name, "reason": "a proxy that followed another repository is hosted now"}
    append_repository_event(tx, repository.id, "repository.updated", data, actor, now_ms)
    return changed


def hosted_settings(settings: Mapping[str, Any]) -> dict[str, Any]:
    """
    The settings of a proxy that a hosted repository may have, too.

    Rules stay. Retention goes: what removed copies must not remove the only ones.
    """
    kept = {name: value for name, value in settings.items() if name not in OF_PROXIES}
    policy = {name: value for name, value in kept.pop("policy", {}).items() if name not in OF_UPSTREAMS}
    return {**kept, "policy": policy} if policy else kept
