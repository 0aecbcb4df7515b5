"""``pkgrepo upload``: publishes files in a repository of any format."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from pathlib import Path
from typing import Any, Final

import click

from pkgrepo.commands.http import Failed
from pkgrepo.commands.remote.session import Session, remote, sentence_and_code
from pkgrepo.commands.remote.transfers.files import stored_digest
from pkgrepo.commands.remote.transfers.image_layouts import Registry
from pkgrepo.commands.terminal import fail
from pkgrepo.errors import DigestMismatch, Invalid, PkgrepoError
from pkgrepo.web.rendering.filters import size

from . import image_layouts
from .files import LocalFile
from .publishing import PUBLISHERS, Upload

IMAGES: Final = "docker"
_FOR_ALL: Final = (0, 401)  # statuses that all files would get: the server was not reached, or knows no such token


@click.command()
@click.argument("repository", metavar="STORAGE/REPOSITORY")
@click.argument("files", nargs=-1, required=True, type=click.Path(path_type=Path, exists=True))
@click.option("--path", default="", help="Where a file belongs (maven, conda); with a slash at its end, the folder.")
@click.option("--tag", default="latest", show_default=True, help="The dist-tag that npm packages get.")
@click.option("--as", "image", default="", metavar="NAME:TAG", help="What the image is called; FILE is an OCI layout.")
@click.option("--source", default="", help="The name of the image in the layout, if it has several.")
@remote
async def upload(
    session: Session, repository: str, files: tuple[Path, ...], path: str, tag: str, image: str, source: str
) -> None:
    """
    Publish files in a repository: packages of any format, or an image from a folder or archive in the OCI layout.

    A file that is published already with the same content is no error. A file that is refused does not keep the others
    from being published; the exit code then is that of the refusals, or 1 if they have several.
    """
    format_ = str((await session.client.get("repository", repository))["format"])
    if format_ == IMAGES:
        if len(files) != 1 or not image:
            raise Invalid("give one image layout, and what the image is called: --as NAME:TAG")
        await _push(session, repository, files[0], image, source)
        return
    publish = PUBLISHERS.get(format_)
    if publish is None:
        raise Invalid(f"nothing is known about uploads of the format {format_}")
    if path and not path.endswith("/") and len(files) > 1:
        raise Invalid("--path of several files is a folder, with a slash at its end")

    async def publish_one(name: Path) -> dict[str, Any]:
        file = LocalFile.read(name)
        place = await publish(Upload(session.client, session.reactor, repository, file, path, tag))
        verified = await _verify(session, repository, place, file)
        if not session.printer.as_json:
            how = f"sha256 {file.sha256} verified" if verified else "the server does not show its digest here"
            session.printer.line(f"published {place} ({size(file.size)}, {how})")
        return {"file": str(name), "path": place, "size": file.size, "sha256": file.sha256, "verified": verified}

    await _publish_all(session, files, publish_one)


async def _publish_all(
    session: Session, files: Sequence[Path], publish: Callable[[Path], Awaitable[dict[str, Any]]]
) -> None:
    """Publish files one after another, and say how many were; the program ends if one was refused."""
    records: list[dict[str, Any]] = []
    codes: list[int] = []
    for each in files:
        try:
            records.append(await publish(each))
        except (PkgrepoError, OSError) as error:
            if len(files) == 1 or isinstance(error, BrokenPipeError):  # of the output
                raise
            sentence, code = sentence_and_code(error)
            codes.append(code)
            records.append({"file": str(each), "error": sentence})
            session.printer.note(f"pkgrepo: {each}: {sentence}")
            if isinstance(error, Failed) and error.status in _FOR_ALL:
                break
    if session.printer.as_json:
        session.printer.json(records)
    if codes:
        left = len(files) - len(records)
        counts = f"{len(records) - len(codes)} of {len(files)} files were published, {len(codes)} failed"
        fail(counts + (f", {left} were not tried" if left else ""), codes[0] if len(set(codes)) == 1 else 1)


async def _verify(session: Session, repository: str, path: str, file: LocalFile) -> bool:
    """
    Whether the server has the bytes of the file; False if it does not tell.

    :raises DigestMismatch: it has others
    """
    stored = await stored_digest(session.client, repository, path)
    if stored is not None and stored != file.sha256:
        raise DigestMismatch("sha256", file.sha256, stored)
    return stored is not None


async def _push(session: Session, repository: str, path: Path, image: str, source: str) -> None:
    name, colon, tag = image.rpartition(":")
    if not colon or not name or not tag:
        raise Invalid(f"--as takes NAME:TAG, not {image!r}")
    registry = Registry(session.client, repository)
    with image_layouts.open_layout(path) as layout:
        top = image_layouts.find_image(layout, source)
        manifest = await image_layouts.push(registry, layout, top, name, tag, session.reactor)
    stored = await registry.manifest(name, tag)
    if stored.digest != manifest.digest:
        raise DigestMismatch("sha256", manifest.digest, stored.digest)
    record = {"image": name, "tag": tag, "digest": manifest.digest, "verified": True}
    session.printer.done(f"pushed {name}:{tag} ({manifest.digest} verified)", record)
