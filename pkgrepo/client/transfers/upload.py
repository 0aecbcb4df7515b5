"""``pkgrepo upload``: publishes files in a repository of any format."""

from __future__ import annotations

import re
import tarfile
import zipfile
from base64 import b64encode
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Final
from urllib.parse import quote

import click
import msgspec
from attrs import frozen
from defusedxml import ElementTree
from defusedxml.common import DefusedXmlException

from pkgrepo.archives.image_layout import find_image, open_layout
from pkgrepo.client.api import Client
from pkgrepo.client.http import Failed, IteratorBody
from pkgrepo.client.session import Session, remote, sentence_and_code
from pkgrepo.client.terminal import fail
from pkgrepo.client.transfers.files import LocalFile, base64_pieces, shown, stored_digest
from pkgrepo.client.transfers.image_layouts import Registry, push
from pkgrepo.display import size
from pkgrepo.errors import DigestMismatch, Invalid, PkgrepoError
from pkgrepo.formats.maven.paths import ArtifactFile, parse_text
from pkgrepo.formats.python.names import parse_upload

MOST_MANIFEST: Final = 4 * 1024 * 1024  # bytes of a package.json or pom.xml
_POM: Final = re.compile(r"META-INF/maven/[^/]+/[^/]+/pom\.xml")


@frozen
class Upload:
    """A file to publish; ``path`` says where, for formats whose clients choose that, and ``tag`` is an npm dist-tag."""

    client: Client
    reactor: Any
    repository: str
    file: LocalFile
    path: str = ""
    tag: str = "latest"

    def address(self, path: str) -> str:
        """The path of a request below the repository."""
        return f"/repositories/{quote(self.repository)}/{quote(path, safe='/@')}"


async def _python(upload: Upload) -> str:
    """PUT at the readable path. Returns the path of the file, like the other functions here."""
    name = parse_upload(upload.file.name)
    path = f"packages/{name.project_key}/{name.version_text}/{name.filename}"
    await _put(upload, path)
    return path


async def _npm(upload: Upload) -> str:
    """PUT of a document with the tarball in Base64, as npm publishes."""
    manifest = _package_json(upload.file)
    name, version = str(manifest["name"]), str(manifest["version"])
    filename = f"{name.rpartition('/')[2]}-{version}.tgz"
    dist = {
        "integrity": f"sha512-{b64encode(bytes.fromhex(upload.file.sha512)).decode()}",
        "shasum": upload.file.sha1,
        "tarball": f"{upload.client.url}{upload.address(f'{name}/-/{filename}')}",
    }
    document = {
        "_id": name,
        "name": name,
        "dist-tags": {upload.tag: version},
        "versions": {version: {**manifest, "_id": f"{name}@{version}", "dist": dist}},
    }
    head = msgspec.json.encode(document)[:-1]
    attachment = msgspec.json.encode({"content_type": "application/octet-stream", "length": upload.file.size})[:-1]
    head += b',"_attachments":{' + msgspec.json.encode(f"{name}-{version}.tgz") + b":" + attachment + b',"data":"'

    def content() -> Iterator[bytes]:
        yield head
        yield from base64_pieces(upload.file.path)
        yield b'"}}}'

    encoded = (upload.file.size + 2) // 3 * 4
    size = len(head) + encoded + 4
    headers = {"Content-Type": "application/json", "Accept": "application/json"}
    path = f"/repositories/{quote(upload.repository)}/{quote(name, safe='@')}"
    body = IteratorBody(shown(upload.file.name, size, content()), upload.reactor, size)
    place = f"{name}/-/{filename}"
    try:
        await upload.client.send("PUT", path, body, headers)
    except Failed as error:
        # npm's clients want a refusal also of the same content
        if error.status not in (403, 409) or upload.file.sha256 != await stored_digest(
            upload.client, upload.repository, place
        ):
            raise
    return place


async def _maven(upload: Upload) -> str:
    """PUT at the path in the Maven layout, which the POM of the artifact gives unless the caller does."""
    path = upload.path.strip("/") or _maven_path(upload.file)
    if upload.path.endswith("/"):
        path = f"{path}/{upload.file.name}"
    if not isinstance(parse_text(path), ArtifactFile):
        raise Invalid(f"{path} is no path of an artifact: GROUP/ARTIFACT/VERSION/ARTIFACT-VERSION.ENDING")
    await _put(upload, path, {"X-Checksum-Sha256": upload.file.sha256})
    return path


async def _ruby(upload: Upload) -> str:
    """POST to the API of gem servers."""
    headers = {"Content-Type": "application/octet-stream"}
    await upload.client.send("POST", upload.address("api/v1/gems"), upload.file.body(upload.reactor), headers)
    return f"gems/{upload.file.name}"


async def _conda(upload: Upload) -> str:
    """PUT into a folder of the channel, or POST to let the package say into which."""
    query = {"sha256": upload.file.sha256}
    headers = {"Content-Type": "application/octet-stream", "Accept": "application/json"}
    body = upload.file.body(upload.reactor)
    if upload.path:
        path = upload.address(f"{upload.path.strip('/')}/{upload.file.name}")
        reply = await upload.client.send("PUT", path, body, headers, query=query)
    else:
        path = upload.address(f"api/channels/any/upload/{upload.file.name}")
        reply = await upload.client.send("POST", path, body, headers, query=query)
    return str(reply.value["path"])


async def _put(upload: Upload, path: str, headers: Mapping[str, str] | None = None) -> None:
    fields = {"Content-Type": "application/octet-stream", **(headers or {})}
    await upload.client.send("PUT", upload.address(path), upload.file.body(upload.reactor), fields)


# By format; images are published by ``image_layouts``.
PUBLISHERS: Final[Mapping[str, Callable[[Upload], Awaitable[str]]]] = {
    "python": _python,
    "npm": _npm,
    "maven": _maven,
    "ruby": _ruby,
    "conda": _conda,
}


def _package_json(file: LocalFile) -> dict[str, Any]:
    """The package.json in the top folder of a tarball. :raises Invalid: there is none"""
    try:
        with tarfile.open(file.path, "r:*") as archive:
            for member in archive:
                if member.isfile() and member.name.count("/") == 1 and member.name.endswith("/package.json"):
                    content = archive.extractfile(member)
                    manifest = msgspec.json.decode(b"" if content is None else content.read(MOST_MANIFEST))
                    if isinstance(manifest, dict) and manifest.get("name") and manifest.get("version"):
                        return manifest
                    break
    except (tarfile.TarError, msgspec.DecodeError, UnicodeDecodeError, EOFError) as error:
        raise Invalid(f"{file.path} is no npm package: {error}") from None
    raise Invalid(f"{file.path} is no npm package: it has no package.json with a name and a version")


def _maven_path(file: LocalFile) -> str:
    """The path of a POM, or of a jar that contains its POM. :raises Invalid: it does not say where it belongs"""
    group, artifact, version = _coordinates(_pom(file))
    stem = f"{artifact}-{version}"
    if file.name.endswith((".pom", ".xml")):
        name = f"{stem}.pom"
    elif file.name.startswith(stem):
        name = file.name  # with the classifier, if it has one
    else:
        raise Invalid(f"{file.name} does not begin with {stem}, as its POM says; give --path")
    return f"{group.replace('.', '/')}/{artifact}/{version}/{name}"


def _pom(file: LocalFile) -> bytes:
    if file.name.endswith((".pom", ".xml")):
        return file.path.read_bytes()[:MOST_MANIFEST]
    try:
        with zipfile.ZipFile(file.path) as archive:
            inner = [each for each in archive.infolist() if _POM.fullmatch(each.filename)]
            if len(inner) == 1 and inner[0].file_size <= MOST_MANIFEST:
                return archive.read(inner[0])
    except (zipfile.BadZipFile, OSError, NotImplementedError, RuntimeError):
        pass
    raise Invalid(f"{file.path} does not say where it belongs: give --path GROUP/ARTIFACT/VERSION/")


def _coordinates(pom: bytes) -> tuple[str, str, str]:
    try:
        project = ElementTree.fromstring(pom, forbid_dtd=True)
    except (ElementTree.ParseError, DefusedXmlException, ValueError):
        raise Invalid("the POM cannot be read") from None

    def text(tag: str) -> str:
        for prefix in ("", "{*}parent/"):
            found = project.find(f"{prefix}{{*}}{tag}")
            if found is not None and found.text:
                return str(found.text).strip()
        return ""

    values = text("groupId"), text("artifactId"), text("version")
    if not all(values) or any("${" in each for each in values):
        raise Invalid("the POM does not have group, artifact and version; give --path GROUP/ARTIFACT/VERSION/")
    return values


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
    with open_layout(path) as layout:
        top = find_image(layout, source)
        manifest = await push(registry, layout, top, name, tag, session.reactor)
    stored = await registry.manifest(name, tag)
    if stored.digest != manifest.digest:
        raise DigestMismatch("sha256", manifest.digest, stored.digest)
    record = {"image": name, "tag": tag, "digest": manifest.digest, "verified": True}
    session.printer.done(f"pushed {name}:{tag} ({manifest.digest} verified)", record)
