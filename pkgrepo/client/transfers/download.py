"""``pkgrepo download``: files of a version, a file by its path, or an image, with their digests verified."""

from __future__ import annotations

from pathlib import Path
from typing import Any
from urllib.parse import quote

import click

from pkgrepo.client.named_versions import maybe_version
from pkgrepo.client.session import Session, remote
from pkgrepo.client.transfers.files import stored_digest
from pkgrepo.client.transfers.image_layouts import LayoutFolder, Registry, write_image, write_index
from pkgrepo.client.transfers.local_names import check_name
from pkgrepo.display import size
from pkgrepo.errors import Invalid, NotFound

from .files import Draft, Received, sha256_of


@click.command()
@click.argument("repository", metavar="STORAGE/REPOSITORY")
@click.argument("name", required=False, metavar="[NAME[==VERSION]]")
@click.argument("version", required=False)
@click.option("--path", default="", help="A file by its path below the repository, also one that a proxy has to fetch.")
@click.option("--file", "only", multiple=True, metavar="NAME", help="Only this file of the version; repeat.")
@click.option(
    "--to", "folder", type=click.Path(path_type=Path, file_okay=False), default=Path(), help="The folder to write into."
)
@click.option("--force", is_flag=True, help="Replace files that are there.")
@remote
async def download(
    session: Session,
    repository: str,
    name: str | None,
    version: str | None,
    *,
    path: str,
    only: tuple[str, ...],
    folder: Path,
    force: bool,
) -> None:
    """
    Download the files of a version, the latest one if none is given, and verify them.

    A file that is there with the right content is not downloaded again.

    An image, by its tag or digest, is written in the OCI layout into a folder NAME below the given one.
    """
    if bool(name) == bool(path):
        raise Invalid("give the name of a package, or --path")
    folder.mkdir(parents=True, exist_ok=True)
    if path:
        record = await _file(session, repository, path.strip("/"), None, folder, force=force)
        _tell(session, [record])
        return
    assert name is not None
    is_image = bool((await session.client.get("repository", repository)).get("has_images"))
    name, version = maybe_version(name, version, is_image=is_image)
    if is_image:
        await _image(session, repository, name, version or "latest", folder)
        return
    if version is None:
        version = (await session.client.get("package", repository, name))["latest"]
        if version is None:
            raise NotFound("latest version of package", name)
    found = await session.client.get("package", repository, name, "versions", version)
    files = [each for each in found["files"] if not only or each["name"] in only]
    missing = [each for each in only if each not in {file["name"] for file in files}]
    if missing or not files:
        raise NotFound("file", ", ".join(missing) or f"{name} {version}")
    records = [
        await _file(
            session, repository, each["path"], each["digests"].get("sha256"), folder, each.get("size", 0), force=force
        )
        for each in files
    ]
    _tell(session, records)


async def _file(
    session: Session, repository: str, path: str, sha256: str | None, folder: Path, length: int = 0, *, force: bool
) -> dict[str, Any]:
    """
    Download one file; without ``sha256``, it is compared with what the server has stored afterwards.

    ``length`` is the number of bytes that are expected, 0 if that is not known; it is only shown.
    """
    name = check_name(path.rpartition("/")[2])
    target = folder / name
    if sha256 and target.is_file() and sha256_of(target) == sha256:
        return {"file": str(target), "size": target.stat().st_size, "sha256": sha256, "verified": True}
    with Draft(target, replace=force) as draft:
        progress = Received(name, length, draft.write)
        try:
            await session.client.fetch(f"/repositories/{quote(repository)}/{quote(path, safe='/@')}", progress.write)
        finally:
            progress.end()
        expected = sha256 or await stored_digest(session.client, repository, path)
        draft.keep(expected)
        digest = draft.sha256
    return {"file": str(target), "size": progress.count, "sha256": digest, "verified": expected is not None}


async def _image(session: Session, repository: str, name: str, reference: str, folder: Path) -> None:
    target = folder / check_name(name.replace("/", "_"))
    layout = LayoutFolder(target)
    entry = await write_image(Registry(session.client, repository), name, reference, layout)
    await write_index(layout, [entry])
    record = {"folder": str(target), "image": name, "reference": reference, "digest": entry.digest, "verified": True}
    session.printer.done(f"{target} has {name}:{reference} ({entry.digest} verified)", record)


def _tell(session: Session, records: list[dict[str, Any]]) -> None:
    if session.printer.as_json:
        session.printer.json(records)
        return
    for each in records:
        how = f"sha256 {each['sha256']} verified" if each["verified"] else "the server shows no digest of it"
        session.printer.line(f"{each['file']} ({size(each['size'])}, {how})")
