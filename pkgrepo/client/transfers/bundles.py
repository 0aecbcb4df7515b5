"""
``pkgrepo bundle write``: repositories in one signed file, for a server without a network.

What a caller may read is fetched by the paths of the clients. Beside files a bundle has what their importers read: the
documents that the server lists for that, with the entries of the files that it has, and an OCI layout of each image.
"""

from __future__ import annotations

import hashlib
from collections import defaultdict
from collections.abc import AsyncIterator, Coroutine, Mapping, Sequence, Set
from datetime import datetime
from pathlib import Path
from tempfile import SpooledTemporaryFile
from typing import IO, Any, Final, cast
from urllib.parse import quote

import click
import msgspec
from attrs import define, field, frozen

from pkgrepo.archives.bundle_file import (
    BEFORE,
    FACTS,
    FORM,
    Content,
    Facts,
    PackageFacts,
    VersionFacts,
    Writer,
    key_digest,
    read_whole,
)
from pkgrepo.archives.image_layout import Descriptor
from pkgrepo.client.api import CONNECTIONS, at
from pkgrepo.client.http import Failed
from pkgrepo.client.session import Session, checked, remote
from pkgrepo.client.terminal import Unsound
from pkgrepo.client.transfers.files import Draft
from pkgrepo.client.transfers.image_layouts import Fetch, Registry, write_image, write_index
from pkgrepo.client.transfers.mirror import GivenLock, assign_locks
from pkgrepo.concurrency.together import in_batches
from pkgrepo.display import plural, size
from pkgrepo.errors import Invalid
from pkgrepo.untrusted.signed_lists import Listed, Manifest, render_list

PARALLEL: Final = CONNECTIONS  # files that are fetched at once
IN_MEMORY: Final = 4 * 1024 * 1024  # bytes of a file that is fetched; the rest is in a temporary file
BAD_REQUEST: Final = 400
WITHHELD: Final = (401, 403, 404, 410, 451)  # statuses of what the caller does not get
ANY: Final = "*/*"
LIVE: Final = "live"  # the state of a version that is neither yanked nor deprecated
SYSTEM: Final = "system"  # the publisher of what a proxy keeps


@define
class Bundling:
    """
    What a bundle gets of one repository: ``files`` are in it, ``before`` in earlier ones, ``earlier`` are those of the
    last bundle. ``names`` are those of the files that it and earlier ones have, by their folders, and ``withheld`` is
    what it lacks, with the reason.
    """

    client: Any
    path: str
    writer: Writer
    facts: Facts
    earlier: Mapping[str, Listed]
    files: dict[str, Listed] = field(factory=dict)
    before: dict[str, Listed] = field(factory=dict)
    withheld: list[str] = field(factory=list)
    names: dict[str, set[str]] = field(factory=lambda: defaultdict(set))

    async def file(self, path: str, sha256: str, size_: int, fetch: Fetch | None = None) -> bool:
        """Add a file with a known digest, which ``fetch`` reads. Returns whether the caller gets it."""
        if not await self._add(path, sha256, size_, fetch):
            return False
        folder, slash, name = path.rpartition("/")
        self.names[folder + slash].add(name)
        return True

    async def _add(self, path: str, sha256: str, size_: int, fetch: Fetch | None) -> bool:
        known = self.earlier.get(path)
        if known is not None and known.sha256 == sha256:
            self.before[path] = known
            return True
        if self.writer.has(sha256):
            self.files[path] = Listed(size_, sha256)
            return True
        with SpooledTemporaryFile(IN_MEMORY) as spool:
            digest = hashlib.sha256()

            def write(data: bytes) -> None:
                digest.update(data)
                spool.write(data)

            try:
                await (fetch(write) if fetch else self.client.fetch(self.url(path), write))
            except Failed as error:
                if error.status not in (*WITHHELD, BAD_REQUEST):
                    raise
                self.withheld.append(f"{path}: {error}")
                return False
            if digest.hexdigest() != sha256:  # one bad file does not end the bundle
                self.withheld.append(f"{path}: the server sends other bytes than it lists")
                return False
            spool.seek(0)
            self.files[path] = self.writer.add_file(sha256, size_, cast("IO[bytes]", spool))
        return True

    def document(self, path: str, data: bytes) -> None:
        """Add a document."""
        self.files[path] = self.writer.add_blob(data)

    async def fetch(self, path: str, accept: str) -> bytes:
        """A document of the server. :raises Failed: there is none"""
        pieces: list[bytes] = []
        await self.client.fetch(self.url(path), pieces.append, {"Accept": accept})
        return b"".join(pieces)

    def url(self, path: str) -> str:
        """The path of a file on the server."""
        return f"/repositories/{quote(self.path)}/{quote(path, safe='/@+')}"


@click.command("write")
@click.argument("file", type=click.Path(dir_okay=False, path_type=Path))
@click.argument("repositories", metavar="STORAGE/REPOSITORY...", nargs=-1, required=True)
@click.option(
    "--lock",
    "locks",
    multiple=True,
    metavar="[REPOSITORY=]FILE",
    help="Only what a lock file names, which is mirrored first (see mirror); may be repeated.",
)
@click.option("--only", multiple=True, metavar="GLOB", help="With --lock: only files whose names match.")
@click.option(
    "--since",
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    help="The last bundle: what it or those before it have is left out.",
)
@click.option("--force", is_flag=True, help="Replace the file if it is there.")
@remote
async def write(
    session: Session,
    file: Path,
    repositories: tuple[str, ...],
    locks: tuple[str, ...],
    only: tuple[str, ...],
    since: Path | None,
    *,
    force: bool,
) -> None:
    """
    Write what repositories have into FILE, signed by the server: you need the action admin in each of them.

    Of proxies that is what they keep; of a virtual repository name the members. If there is no file for you in any of
    them, nothing is written. Carry the file to another server, and take it in there with "bundle read". The server's
    key (GET /api/system/twin-key) is to be carried there by another way.
    """
    given = checked(lambda: [GivenLock.read(each, repositories) for each in locks])
    last = {} if since is None else await _read_last(session, since)
    report: dict[str, Any] = {"repositories": []}
    with checked(lambda: Draft(file, replace=force, alone=True)) as draft:
        writer = Writer(cast("IO[bytes]", draft))
        records = {name: await session.client.get("repository", name) for name in repositories}
        for record in records.values():
            if record["type"] == "Virtual":
                path = f"{record['storage_name']}/{record['name']}"
                raise Invalid(f"{path} is virtual, and lists no packages: bundle its members")
        formats = {name: str(record["format"]) for name, record in records.items()}
        chosen_locks = await assign_locks(session.client, given, formats)
        for number, (name, record) in enumerate(records.items()):
            path = f"{record['storage_name']}/{record['name']}"
            chosen = None if not locks else await _choose(session, path, chosen_locks[name], only)
            report["repositories"].append(await _write_repository(session, writer, number, record, chosen, last))
        missing = [each for repository in report["repositories"] for each in repository["missing"]]
        if not missing and not any(each["files"] or each["earlier"] for each in report["repositories"]):
            names = ", ".join(each["repository"] for each in report["repositories"])
            raise Invalid(f"no file of {names} is listed for you, so no bundle is written")
        writer.finish()
        draft.keep_durably(None)
    total = file.stat().st_size
    parts = [f"{each['repository']}: {plural(each['files'], 'file')}" for each in report["repositories"]]
    session.printer.done(f"{file}: {size(total)}; {', '.join(parts)}", {**report, "size_bytes": total})
    for each in missing:
        session.printer.note(f"missing: {each}")
    if missing:
        raise Unsound(len(missing))


async def _read_last(session: Session, path: Path) -> dict[str, Content]:
    """What the last bundle has, by repository. :raises Invalid: it is damaged, or another server's"""
    key = (await session.client.get("system", "twin-key"))["key"]
    reading = read_whole(str(path), (key,))
    try:
        return {each.manifest.repository: each for each in reading.contents()}
    finally:
        reading.close()


async def _choose(session: Session, path: str, given: Sequence[GivenLock], only: Sequence[str]) -> Any:
    """Have a repository fetch what lock files name. Returns its paths that they name, and what is missing."""
    if not given:
        return {"items": [], "missing": {}}
    wanted = {"locks": [{"name": each.name, "text": each.text} for each in given], "only": list(only)}
    job = await session.client.call("POST", at("repository", path, "mirror"), value=wanted, query={"wait": 0})
    problems = (await session.wait_for(job.value))["problems"]
    noted = {f"{each['package']} {each['item']}".strip(): each["reason"] for each in problems}
    found = (await session.client.call("POST", at("repository", path, "paths"), value=wanted)).value
    return {"items": found["items"], "missing": {**found["missing"], **noted}}


async def _write_repository(
    session: Session, writer: Writer, number: int, record: Any, chosen: Any, last: Mapping[str, Content]
) -> dict[str, Any]:
    path = f"{record['storage_name']}/{record['name']}"
    earlier = last.get(path)
    work = Bundling(
        session.client,
        path,
        writer,
        Facts(format=record["format"]),
        {} if earlier is None else {**earlier.before, **earlier.files},
    )
    listed = session.client.items("repository", path, "paths") if chosen is None else _each(chosen["items"])
    await add_listed(work, listed, is_chosen=chosen is not None)
    work.document(FACTS, msgspec.json.encode(work.facts))
    work.document(BEFORE, render_list(work.before))
    text = render_list(work.files)
    digest, count = hashlib.sha256(text).hexdigest(), len(work.files)
    signed = await session.client.change(
        "POST", "repository", path, "twin", body={"list_sha256": digest, "files": count, "of": "bundle"}
    )
    manifest = Manifest(
        form=FORM,
        repository=path,
        list_sha256=digest,
        files=count,
        statement=signed["statement"],
        signature=signed["signature"],
        key=signed["key"],
    )
    writer.add(f"repositories/{number}.list", text)
    writer.add(f"repositories/{number}.json", msgspec.json.encode(manifest))
    absent = {} if chosen is None else chosen["missing"]
    missing = [*work.withheld, *(f"{name}: {reason}" for name, reason in absent.items())]
    return {
        "repository": path,
        "files": len(work.files) - 2,
        "earlier": len(work.before),
        "size_bytes": sum(each.size for each in work.files.values()),
        "missing": [f"{path}: {each}" for each in missing],
        "key_sha256": key_digest(signed["key"]),
    }


async def _each(items: Sequence[Any]) -> AsyncIterator[Any]:
    for each in items:
        yield each


async def add_listed(work: Bundling, listed: AsyncIterator[Any], *, is_chosen: bool) -> None:
    """Add what a repository has of what is listed: files, the documents that are read again, and images."""
    documents, images = dict[str, Any](), dict[str, list[Any]]()

    async def files() -> AsyncIterator[Coroutine[Any, Any, None]]:
        async for each in listed:
            path = str(each["path"])
            if each["kind"] == "file":
                yield _file(work, each, is_chosen=is_chosen)
            elif each["kind"] == "image":
                images.setdefault(path, []).append(each)
            elif each.get("stored") or each.get("selection"):
                documents.setdefault(path, each)

    async def others() -> AsyncIterator[Coroutine[Any, Any, None]]:
        for each in documents.values():
            yield _document(work, each)
        for image, versions in images.items():
            yield _image(work, image, versions)

    await in_batches(files(), PARALLEL)
    await in_batches(others(), PARALLEL)
    work.facts.packages = dict(sorted(work.facts.packages.items()))


async def _file(work: Bundling, listed: Any, *, is_chosen: bool) -> None:
    """Add a file, with what is known of its version; of one that nobody gets, such as a yanked gem, only that."""
    path, state = str(listed["path"]), str(listed.get("state", LIVE))
    published_ms = _time_ms(listed.get("published_at"))
    if listed.get("withheld"):
        if is_chosen:
            work.withheld.append(f"{listed.get('address', path)}: it is {state}")
    elif not await work.file(path, listed["sha256"], listed["size"]):
        return
    else:
        at_ms = _time_ms(listed.get("origin_at")) or published_ms
        if at_ms is not None:
            work.facts.times[path] = at_ms
    if "package" in listed:
        publisher = str(listed.get("publisher") or "")
        work.facts.packages.setdefault(listed["package"], PackageFacts()).versions[listed["version"]] = VersionFacts(
            published_ms=published_ms,
            publisher="" if publisher == SYSTEM else publisher,
            state="" if state == LIVE else state,
            reason=str(listed.get("reason") or ""),
        )


async def _document(work: Bundling, listed: Any) -> None:
    """Add a document that is stored, or one with the entries of the files that are there."""
    path, selection = str(listed["path"]), listed.get("selection")
    names = work.names.get(selection["below"], set()) if selection else set()
    if selection and not names:
        return
    try:
        data = await work.fetch(listed.get("address", path), listed.get("accept", ANY))
    except Failed as error:
        if selection or error.status not in WITHHELD:
            raise
        return
    if selection:
        path, data = selection["path"], select(data, selection, names)
    work.document(path, data)


def select(data: bytes, selection: Any, names: Set[str]) -> bytes:
    """The entries of a JSON document that are of files with these names, see the operation that lists paths."""
    document = msgspec.json.decode(data, type=dict[str, msgspec.Raw])
    found, keys = dict[str, Any](), set[str]()
    for member, place in selection["files"].items():
        some = {key: raw for key, raw in _entries(document, member).items() if _name(raw, place, key) in names}
        keys |= some.keys()
        found[member] = some
    for member in selection["keys"]:
        found[member] = {key: raw for key, raw in _entries(document, member).items() if key in keys}
    for member in selection["values"]:
        every = _entries(document, member).items()
        found[member] = {key: raw for key, raw in every if msgspec.json.decode(raw) in keys}
    whole = selection["whole"]
    others = document if whole is None else {key: raw for key, raw in document.items() if key in whole}
    return msgspec.json.encode({**others, **found})


def _entries(document: Mapping[str, msgspec.Raw], member: str) -> dict[str, msgspec.Raw]:
    return msgspec.json.decode(document.get(member, msgspec.Raw(b"{}")), type=dict[str, msgspec.Raw])


def _name(entry: msgspec.Raw, place: Sequence[str], key: str) -> str:
    """The name of the file that an entry is about."""
    if not place:
        return key
    value = msgspec.json.decode(entry)
    for member in place:
        value = value.get(member, "") if isinstance(value, dict) else ""
    return str(value).rpartition("/")[2]


async def _image(work: Bundling, image: str, versions: Sequence[Any]) -> None:
    """Add the OCI layout of an image with its tags."""
    registry, layout = Registry(work.client, work.path), _Layout(work, image)
    entries, facts = list[Descriptor](), PackageFacts()
    for each in versions:
        if "version" not in each:
            continue
        reference = str(each["version"])
        try:
            entries.append(await write_image(registry, image, reference, layout))
            facts.versions[reference] = VersionFacts(published_ms=_time_ms(each.get("published_at")))
        except Failed as error:
            if error.status not in WITHHELD:
                raise
            work.withheld.append(f"{image}:{reference}: {error}")
    if entries:
        await write_index(layout, entries)
        work.facts.packages[image] = facts


@frozen
class _Layout:
    """The image layout of an image in a bundle, in the ``folder`` of its name; see L{LayoutTarget}."""

    work: Bundling
    folder: str

    async def blob(self, path: str, blob: Descriptor, fetch: Fetch) -> None:
        """Add a blob, unless it is there."""
        await self.work.file(f"{self.folder}/{path}", blob.digest.removeprefix("sha256:"), blob.size, fetch)

    async def document(self, path: str, data: bytes, media_type: str) -> None:  # noqa: ARG002 - of all targets
        """Add a small file."""
        self.work.document(f"{self.folder}/{path}", data)


def _time_ms(text: Any) -> int | None:
    return round(datetime.fromisoformat(text).timestamp() * 1000) if isinstance(text, str) else None
