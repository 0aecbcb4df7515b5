"""
``pkgrepo bundle write``: repositories in one signed file, for a server without a network.

What a caller may read is fetched by the paths of the clients. Beside the files of versions a bundle has what their
importers read: the document of each npm package and of each conda folder, with what the bundle has alone, and an OCI
layout of each image.
"""

from __future__ import annotations

import hashlib
from collections.abc import Awaitable, Callable, Coroutine, Mapping, Sequence
from datetime import datetime
from pathlib import Path
from tempfile import SpooledTemporaryFile
from typing import IO, Any, Final, cast
from urllib.parse import quote

import click
import msgspec
from attrs import define, field, frozen

from pkgrepo.archives.image_layout import Descriptor
from pkgrepo.client.api import at
from pkgrepo.client.http import Failed
from pkgrepo.client.session import Session, checked, remote
from pkgrepo.client.terminal import Unsound
from pkgrepo.client.transfers.files import Draft
from pkgrepo.client.transfers.image_layouts import Fetch, Registry, write_image, write_index
from pkgrepo.client.transfers.mirror import GivenLock, assign_locks, known_formats
from pkgrepo.concurrency.together import together
from pkgrepo.display import plural, size
from pkgrepo.errors import Invalid
from pkgrepo.formats.maven.paths import METADATA_NAMES
from pkgrepo.formats.rubygems.locks import NAME as RUBY
from pkgrepo.formats.rubygems.paths import is_hidden, public_path
from pkgrepo.importing.bundle_file import (
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
from pkgrepo.mirroring.choosing import Chosen
from pkgrepo.mirroring.reading import read_lock
from pkgrepo.untrusted.signed_lists import Listed, Manifest, render_list

PARALLEL: Final = 8  # files that are fetched at once
IN_MEMORY: Final = 4 * 1024 * 1024  # bytes of a file that is fetched; the rest is in a temporary file
BAD_REQUEST: Final = 400
WITHHELD: Final = (401, 403, 404, 410, 451)  # statuses of what the caller does not get
SYSTEM: Final = "system"  # the publisher of what a proxy keeps


@define
class Bundling:
    """
    What a bundle gets of one repository: ``files`` are in it, ``before`` in earlier ones, ``earlier`` are those of the
    last bundle. ``chosen`` is what the lock files name; None: everything.
    """

    client: Any
    path: str
    writer: Writer
    facts: Facts
    chosen: Chosen | None
    earlier: Mapping[str, Listed]
    files: dict[str, Listed] = field(factory=dict)
    before: dict[str, Listed] = field(factory=dict)
    withheld: list[str] = field(factory=list)

    @property
    def has(self) -> set[str]:
        """The paths that it and earlier ones have."""
        return {*self.files, *self.before}

    async def file(self, path: str, sha256: str, size_: int, fetch: Fetch | None = None) -> bool:
        """Add a file with a known digest, which ``fetch`` reads. Returns whether the caller gets it."""
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

    Of proxies and virtual repositories that is what they keep. Carry the file to another server, and take it in there
    with "bundle read". The server's key (GET /api/system/twin-key) is to be carried there by another way.
    """
    given = checked(lambda: [GivenLock.read(each, repositories) for each in locks])
    last = {} if since is None else await _read_last(session, since)
    report: dict[str, Any] = {"repositories": []}
    with checked(lambda: Draft(file, replace=force, alone=True)) as draft:
        writer = Writer(cast("IO[bytes]", draft))
        records = {name: await session.client.get("repository", name) for name in repositories}
        chosen_locks = assign_locks(given, {name: str(record["format"]) for name, record in records.items()})
        for number, (name, record) in enumerate(records.items()):
            chosen = None if not locks else await _mirror(session, record, chosen_locks[name], only)
            report["repositories"].append(await _write_repository(session, writer, number, record, chosen, last))
        writer.finish()
        draft.keep_durably(None)
    total = file.stat().st_size
    parts = [f"{each['repository']}: {plural(each['files'], 'file')}" for each in report["repositories"]]
    session.printer.done(f"{file}: {size(total)}; {', '.join(parts)}", {**report, "size_bytes": total})
    missing = [each for repository in report["repositories"] for each in repository["missing"]]
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


async def _mirror(session: Session, record: Any, given: Sequence[GivenLock], only: Sequence[str]) -> Chosen:
    """Have a repository fetch what lock files name. Returns what they name."""
    formats = known_formats()
    chosen = Chosen(formats[record["format"]], only)
    for each in given:
        chosen.add(read_lock(each.name, each.text, record["format"], formats))
    if given:
        used = [{"name": each.name, "text": each.text} for each in given]
        path = at("repository", f"{record['storage_name']}/{record['name']}", "mirror")
        job = await session.client.call("POST", path, value={"locks": used, "only": list(only)}, query={"wait": 0})
        for each in (await session.wait_for(job.value))["problems"]:
            chosen.note(each["package"], each["item"], each["reason"])
    return chosen


async def _write_repository(
    session: Session, writer: Writer, number: int, record: Any, chosen: Chosen | None, last: Mapping[str, Content]
) -> dict[str, Any]:
    path = f"{record['storage_name']}/{record['name']}"
    earlier = last.get(path)
    work = Bundling(
        session.client,
        path,
        writer,
        Facts(format=record["format"]),
        chosen,
        {} if earlier is None else {**earlier.before, **earlier.files},
    )
    make = FORMATS.get(record["format"])
    if make is None:
        raise Invalid(f"repositories of the format {record['format']} have no bundle")
    await make(work)
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
    missing = [*work.withheld, *(() if chosen is None else chosen.missing())]
    return {
        "repository": path,
        "files": len(work.files) - 2,
        "earlier": len(work.before),
        "size_bytes": sum(each.size for each in work.files.values()),
        "missing": [f"{path}: {each}" for each in missing],
        "key_sha256": key_digest(signed["key"]),
    }


async def _add_packages(work: Bundling) -> list[Any]:
    """Add the files of all versions of all packages, and what is known of them. Returns the packages that have any."""
    found: list[Any] = []
    waiting: list[Coroutine[Any, Any, None]] = []
    async for package in work.client.items("repository", work.path, "packages"):
        if work.chosen is not None and not work.chosen.has_package(str(package["key"])):
            continue
        found.append(package)
        waiting.append(_add_package(work, package))
        if len(waiting) == PARALLEL:
            await together(waiting)
            waiting = []
    await together(waiting)
    return found


async def _add_package(work: Bundling, package: Any) -> None:
    key = str(package["key"])
    place = ("package", work.path, key, "versions")
    facts = PackageFacts()
    async for version in work.client.items(*place):
        text, published_ms = str(version["version"]), _time_ms(version["published_at"])
        some = [each async for each in work.client.items(*place, text, "files")]
        added = 0
        for each in some:
            path, digests = str(each["path"]), each["digests"]
            hidden = work.facts.format == RUBY and is_hidden(path)
            if work.chosen is not None and not work.chosen.takes(key, text, public_path(path), digests):
                continue
            if hidden:  # nobody gets the file of a yanked gem; what was taken in of it before is yanked there, too
                added += 1
                if work.chosen is not None:
                    work.withheld.append(f"{public_path(path)}: it is yanked")
                continue
            if not await work.file(path, digests["sha256"], each["size"]):
                continue
            added += 1
            at_ms = _time_ms((each.get("upstream") or {}).get("published_at")) or published_ms
            if at_ms is not None:
                work.facts.times[path] = at_ms
        if added:
            publisher = str(version["publisher"] or "")
            state = str(version["state"])
            facts.versions[text] = VersionFacts(
                published_ms=published_ms,
                publisher="" if publisher == SYSTEM else publisher,
                state="" if state == "live" else state,
                reason=str(version["reason"] or ""),
            )
    if facts.versions:
        work.facts.packages[key] = facts


async def _add_npm(work: Bundling) -> None:
    """Tarballs, and the document of each package with the versions that are there."""
    packages = await _add_packages(work)
    for at_index in range(0, len(packages), PARALLEL):
        await together(_add_packument(work, str(each["name"])) for each in packages[at_index : at_index + PARALLEL])


async def _add_packument(work: Bundling, name: str) -> None:
    prefix = f"{name}/-/"
    tarballs = {path.rpartition("/")[2] for path in work.has if path.startswith(prefix)}
    if not tarballs:
        return
    document = msgspec.json.decode(await work.fetch(name, "application/json"))
    versions = {
        text: manifest
        for text, manifest in document.get("versions", {}).items()
        if str(manifest.get("dist", {}).get("tarball", "")).rpartition("/")[2] in tarballs
    }
    tags = {tag: text for tag, text in document.get("dist-tags", {}).items() if text in versions}
    times = {key: text for key, text in document.get("time", {}).items() if key in versions}
    data = {**document, "versions": versions, "dist-tags": tags, "time": times}
    work.document(f"{name}/package.json", msgspec.json.encode(data))


async def _add_conda(work: Bundling) -> None:
    """Packages, and the document of each folder with the records of those that are there."""
    await _add_packages(work)
    for subdir in sorted({path.partition("/")[0] for path in work.has if "/" in path}):
        document = msgspec.json.decode(
            await work.fetch(f"{subdir}/repodata.json", "application/json"), type=dict[str, msgspec.Raw]
        )
        kept: dict[str, Any] = {"info": {"subdir": subdir}}
        for member in ("packages", "packages.conda"):
            records = msgspec.json.decode(document.get(member, msgspec.Raw(b"{}")), type=dict[str, msgspec.Raw])
            kept[member] = {name: raw for name, raw in records.items() if f"{subdir}/{name}" in work.has}
        work.document(f"{subdir}/repodata.json", msgspec.json.encode(kept))


async def _add_images(work: Bundling) -> None:
    """An OCI layout of each image, with its tags."""
    registry = Registry(work.client, work.path)
    async for package in work.client.items("repository", work.path, "packages"):
        image = str(package["key"])
        if work.chosen is not None and not work.chosen.has_package(image):
            continue
        entries: list[Descriptor] = []
        facts = PackageFacts()
        layout = _Layout(work, image)
        async for version in work.client.items("package", work.path, image, "versions"):
            reference = str(version["version"])
            if work.chosen is not None and not work.chosen.takes(image, reference, "", {}):
                continue
            try:
                entries.append(await write_image(registry, image, reference, layout))
                facts.versions[reference] = VersionFacts(published_ms=_time_ms(version["published_at"]))
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


async def _add_plain(work: Bundling) -> None:
    await _add_packages(work)


async def _add_maven(work: Bundling) -> None:
    """Files of versions and, without lock files, those that belong to none: plain files, and metadata of groups."""
    await _add_packages(work)
    folders = [] if work.chosen is not None else [""]
    while folders:
        folder = folders.pop()
        async for item in work.client.items("repository", work.path, "tree", *folder.split("/")):
            path, name = str(item["path"]), str(item["path"]).rpartition("/")[2]
            if item["kind"] == "folder":
                folders.append(path)
            elif name in METADATA_NAMES:
                try:
                    work.document(path, await work.fetch(path, "*/*"))
                except Failed as error:
                    if error.status not in WITHHELD:
                        raise
            elif path not in work.has and item["digest"]:
                await work.file(path, str(item["digest"]).removeprefix("sha256:"), int(item["size"]))


def _time_ms(text: Any) -> int | None:
    return round(datetime.fromisoformat(text).timestamp() * 1000) if isinstance(text, str) else None


FORMATS: Final[Mapping[str, Callable[[Bundling], Awaitable[None]]]] = {
    "conda": _add_conda,
    "docker": _add_images,
    "maven": _add_maven,
    "npm": _add_npm,
    "python": _add_plain,
    "ruby": _add_plain,
}
