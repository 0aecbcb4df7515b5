"""``pkgrepo upload``: publishes files in a repository of any format."""

from __future__ import annotations

import secrets
from collections.abc import Awaitable, Callable, Mapping, Sequence
from functools import partial
from itertools import chain
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Final

import click

from pkgrepo.archives.image_layout import find_image, open_layout
from pkgrepo.client.api import at
from pkgrepo.client.http import Failed, IteratorBody
from pkgrepo.client.packing.folders import pack
from pkgrepo.client.session import Session, remote, sentence_and_code
from pkgrepo.client.terminal import fail
from pkgrepo.client.transfers.files import PIECE, LocalFile, pieces, shown
from pkgrepo.client.transfers.image_layouts import Registry, push
from pkgrepo.display import size
from pkgrepo.errors import DigestMismatch, Invalid, PkgrepoError

_FOR_ALL: Final = (0, 401)  # statuses that all files would get: the server was not reached, or knows no such token


@click.command()
@click.argument("repository", metavar="STORAGE/REPOSITORY")
@click.argument("files", nargs=-1, required=True, type=click.Path(path_type=Path, exists=True))
@click.option(
    "--path",
    default="",
    help="Where a file belongs, if its format lets you choose; with a slash at its end, the folder.",
)
@click.option("--tag", default="latest", show_default=True, help="The dist-tag that npm packages get.")
@click.option("--field", "more", multiple=True, metavar="NAME=TEXT", help="Another field of the form of the format.")
@click.option("--as", "image", default="", metavar="NAME:TAG", help="What the image is called; FILE is an OCI layout.")
@click.option("--source", default="", help="The name of the image in the layout, if it has several.")
@click.option("--version", default="", help="The version of a folder that is packed, if no tag of git says it.")
@remote
async def upload(
    session: Session,
    repository: str,
    files: tuple[Path, ...],
    path: str,
    tag: str,
    more: tuple[str, ...],
    image: str,
    source: str,
    version: str,
) -> None:
    """
    Publish files in a repository: packages of any format, or an image from a folder or archive in the OCI layout.

    A folder with a Go module or a Helm chart is packed as their own tools do, a module from the commit of its tag.

    A file that is published already with the same content is no error. A file that is refused does not keep the others
    from being published; the exit code then is that of the refusals, or 1 if they have several.
    """
    if (await session.client.get("repository", repository)).get("has_images"):
        if len(files) != 1 or not image:
            raise Invalid("give one image layout, and what the image is called: --as NAME:TAG")
        await _push(session, repository, files[0], image, source)
        return
    if path and not path.endswith("/") and len(files) > 1:
        raise Invalid("--path of several files is a folder, with a slash at its end")

    fields = dict(_field(each) for each in more)

    send = partial(_publish_file, session, repository, {**fields, "path": path, "tag": tag})

    async def publish_one(name: Path) -> dict[str, Any]:
        if name.is_dir():
            return await _publish_folder(session, repository, name, version, send)
        return await send(name, LocalFile.read(name))

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


async def _publish_folder(
    session: Session, repository: str, folder: Path, version: str, send: Callable[[Path, LocalFile], Awaitable[Any]]
) -> dict[str, Any]:
    """Publish the file that is made of a folder. :raises Invalid: see ``pack``"""
    known = (await session.client.get("repository", repository, "upload")).get("folders", ())
    with TemporaryDirectory(prefix="pkgrepo-") as place:
        packed = pack(folder, version, known, Path(place))
        for note in packed.notes:
            session.printer.note(f"pkgrepo: {folder}: {note}")
        if not session.printer.as_json:
            session.printer.line(f"packed {packed.what}{f' ({packed.h1})' if packed.h1 else ''}")
        record = await send(folder, LocalFile.read(packed.path))
    return {**record, "packed": packed.what, **({"h1": packed.h1} if packed.h1 else {})}


async def _publish_file(
    session: Session, repository: str, fields: Mapping[str, str], name: Path, file: LocalFile
) -> dict[str, Any]:
    """Publish a file, which is made of what the caller called ``name``. :raises DigestMismatch: another one came"""
    sent = await _send(session, repository, file, {**fields, "sha256": file.sha256})
    if sent["sha256"] != file.sha256:
        raise DigestMismatch("sha256", file.sha256, sent["sha256"])
    if not session.printer.as_json:
        session.printer.line(f"published {sent['path']} ({size(file.size)}, sha256 {file.sha256} verified)")
    return {"file": str(name), "path": sent["path"], "size": file.size, "sha256": file.sha256, "verified": True}


def _field(given: str) -> tuple[str, str]:
    name, equals, text = given.partition("=")
    if not equals or not name.isidentifier():
        raise Invalid(f"--field takes NAME=TEXT, not {given!r}")
    return name, text


async def _send(session: Session, repository: str, file: LocalFile, fields: Mapping[str, str]) -> Any:
    """Send a file in a form, after its fields. Returns what the server says of it."""
    boundary = secrets.token_hex(16)
    disposition = f'--{boundary}\r\nContent-Disposition: form-data; name="{{}}"'.format
    texts = [f"{disposition(name)}\r\n\r\n{text}\r\n" for name, text in fields.items() if text]
    # RFC 7578 section 4.2, and the HTML standard on names of files
    name = file.name.replace('"', "%22").replace("\r", "%0D").replace("\n", "%0A")
    kind = "Content-Type: application/octet-stream"
    head = "".join((*texts, f'{disposition("file")}; filename="{name}"\r\n{kind}\r\n\r\n')).encode()
    tail = f"\r\n--{boundary}--\r\n".encode()
    content = pieces(file.path)
    if file.size > PIECE:  # of others the progress would say nothing, and stand above a refusal
        content = shown(file.name, file.size, content)
    body = IteratorBody(chain([head], content, [tail]), session.reactor, len(head) + file.size + len(tail))
    headers = {"Content-Type": f"multipart/form-data; boundary={boundary}", "Accept": "application/json"}
    reply = await session.client.send("POST", at("repository", repository, "upload"), body, headers)
    return reply.value


async def _push(session: Session, repository: str, path: Path, image: str, source: str) -> None:
    name, colon, tag = image.rpartition(":")
    if not colon or not name or not tag:
        raise Invalid(f"--as takes NAME:TAG, not {image!r}")
    registry = Registry(session.client, repository)
    with open_layout(path) as layout:
        top = find_image(layout, source)
        manifest = await push(registry, layout, top, name, tag, session.reactor)
    stored = await registry.manifest(name, tag)
    if stored.digest != manifest.digest:
        raise DigestMismatch("sha256", manifest.digest, stored.digest)
    record = {"image": name, "tag": tag, "digest": manifest.digest, "verified": True}
    session.printer.done(f"pushed {name}:{tag} ({manifest.digest} verified)", record)
