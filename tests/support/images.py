"""Small images for tests, and a registry to push them to without ports or client programs."""

from __future__ import annotations

import gzip
import hashlib
import io
import json
import tarfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from attrs import frozen

if TYPE_CHECKING:  # bin/bench imports this module where pytest is not installed
    from tests.support.memory_server import Reply, Stack

OCI_IMAGE = "application/vnd.oci.image.manifest.v1+json"
OCI_INDEX = "application/vnd.oci.image.index.v1+json"
OCI_CONFIG = "application/vnd.oci.image.config.v1+json"
OCI_LAYER = "application/vnd.oci.image.layer.v1.tar+gzip"
DOCKER_IMAGE = "application/vnd.docker.distribution.manifest.v2+json"
DOCKER_LIST = "application/vnd.docker.distribution.manifest.list.v2+json"
SCHEMA_1 = "application/vnd.docker.distribution.manifest.v1+prettyjws"
EMPTY = b"{}"


def digest_of(data: bytes | memoryview, algorithm: str = "sha256") -> str:
    """The digest of bytes as registries write it."""
    return f"{algorithm}:{hashlib.new(algorithm, data).hexdigest()}"


def describe(data: bytes, media_type: str, **more: Any) -> dict[str, Any]:
    """A descriptor of bytes."""
    return {"mediaType": media_type, "digest": digest_of(data), "size": len(data), **more}


@frozen
class Image:
    """A manifest with the blobs that it refers to."""

    manifest: bytes
    blobs: tuple[bytes | memoryview, ...]
    media_type: str = OCI_IMAGE

    @property
    def digest(self) -> str:
        return digest_of(self.manifest)

    @property
    def descriptor(self) -> dict[str, Any]:
        return describe(self.manifest, self.media_type)


def make_layer(files: dict[str, bytes]) -> tuple[bytes, str]:
    """A compressed layer with these files, and the digest of its uncompressed form."""
    archive = make_tar(files)
    return gzip.compress(archive, mtime=0), digest_of(archive)


def make_layer_tar(entries: Sequence[Any]) -> bytes:
    """
    A layer that is not compressed.

    An entry has a name, permissions, and as far as it is no empty file its type, the target of a link, and content.
    """
    target = io.BytesIO()
    with tarfile.open(fileobj=target, mode="w", format=tarfile.PAX_FORMAT) as archive:
        for name, mode, *rest in entries:
            kind, link, content = (*rest, *(tarfile.REGTYPE, "", b"")[len(rest) :])
            member = tarfile.TarInfo(name)
            member.mode, member.type, member.linkname, member.size = mode, kind, link, len(content)
            archive.addfile(member, io.BytesIO(content))
    return target.getvalue()


def make_image(
    content: str = "hello",
    *,
    architecture: str = "amd64",
    settings: Mapping[str, Any] | None = None,
    history: Sequence[Any] = (),
    more_layers: Sequence[bytes] = (),
    **manifest: Any,
) -> Image:
    """
    An image with one layer holding one file; ``manifest`` adds members to its manifest.

    ``settings`` and ``history`` are those in its configuration, and ``more_layers`` are put on the first.
    """
    layer, diff = make_layer({"hello.txt": content.encode()})
    rootfs = {"type": "layers", "diff_ids": [diff, *map(digest_of, more_layers)]}
    document = {"architecture": architecture, "os": "linux", "config": dict(settings or {}), "rootfs": rootfs}
    config = json.dumps({**document, "history": list(history)} if history else document).encode()
    value = {
        "schemaVersion": 2,
        "mediaType": OCI_IMAGE,
        "config": describe(config, OCI_CONFIG),
        "layers": [describe(each, OCI_LAYER) for each in (layer, *more_layers)],
        **manifest,
    }
    return Image(json.dumps(value).encode(), (config, layer, *more_layers))


def make_artifact(subject: Image | None, kind: str, **manifest: Any) -> Image:
    """Return an artifact with an empty config and no layers, whose ``subject`` is another manifest."""
    value: dict[str, Any] = {
        "schemaVersion": 2,
        "mediaType": OCI_IMAGE,
        "artifactType": kind,
        "config": describe(EMPTY, "application/vnd.oci.empty.v1+json"),
        "layers": [describe(EMPTY, "application/vnd.oci.empty.v1+json")],
        **manifest,
    }
    if subject is not None:
        value["subject"] = subject.descriptor
    return Image(json.dumps(value).encode(), (EMPTY,))


def make_index(children: Sequence[Image], **index: Any) -> Image:
    """An index of images."""
    manifests = [
        {**child.descriptor, "platform": {"os": "linux", "architecture": architecture}}
        for child, architecture in zip(children, ("amd64", "arm64", "s390x"), strict=False)
    ]
    value = {"schemaVersion": 2, "mediaType": OCI_INDEX, "manifests": manifests, **index}
    return Image(json.dumps(value).encode(), (), OCI_INDEX)


def make_oci_archive(tops: Mapping[str, Image], others: Sequence[Image] = (), **files: bytes) -> bytes:
    """An OCI layout as a tar archive with images by name, those that they refer to, and further ``files``."""
    entries = {"oci-layout": b'{"imageLayoutVersion":"1.0.0"}'}
    for image in (*tops.values(), *others):
        entries |= {
            f"blobs/{digest_of(each).replace(':', '/')}": bytes(each) for each in (*image.blobs, image.manifest)
        }
    named = [
        {**each.descriptor, "annotations": {"org.opencontainers.image.ref.name": name} if name else {}}
        for name, each in tops.items()
    ]
    entries["index.json"] = json.dumps({"schemaVersion": 2, "manifests": named}).encode()
    return make_tar(entries | files)


def make_docker_archive(image: Image, *tags: str, damaged: bool = False) -> bytes:
    """An image as docker before 25 saves it, whose layer is not compressed; or another layer than it says."""
    config, layer = (bytes(each) for each in image.blobs)
    layer = gzip.decompress(layer)
    listed = [{"Config": "config.json", "RepoTags": list(tags), "Layers": ["a/layer.tar"]}]
    entries = {"a/layer.tar": layer + bytes(1024 * damaged), "a/VERSION": b"1.0", "config.json": config}
    return make_tar(entries | {"manifest.json": json.dumps(listed).encode()})


def make_tar(entries: Mapping[str, bytes]) -> bytes:
    """A tar archive of files."""
    target = io.BytesIO()
    with tarfile.open(fileobj=target, mode="w") as archive:
        for name, data in entries.items():
            member = tarfile.TarInfo(name)
            member.size = len(data)
            archive.addfile(member, io.BytesIO(data))
    return target.getvalue()


def write_layout(folder: Path, image: Image, tag: str = "v1") -> Path:
    """An OCI layout on disk with one image, as ``skopeo copy oci:`` reads it."""
    blobs = folder / "blobs" / "sha256"
    blobs.mkdir(parents=True)
    for data in (*image.blobs, image.manifest):
        (blobs / digest_of(data).partition(":")[2]).write_bytes(data)
    named = {**image.descriptor, "annotations": {"org.opencontainers.image.ref.name": tag}}
    (folder / "index.json").write_text(json.dumps({"schemaVersion": 2, "manifests": [named]}))
    (folder / "oci-layout").write_text('{"imageLayoutVersion":"1.0.0"}')
    return folder


class Registry:
    """The container repositories of a server without ports; ``name`` is the image that requests address by default."""

    def __init__(self, stack: Stack, name: str = "main/images/app") -> None:
        self.stack = stack
        self.name = name

    async def call(
        self, method: str, path: str, raw: bytes = b"", *, who: str | None = "admin", **fields: str
    ) -> Reply:
        """One request below ``/v2``; keyword arguments are header fields with underscores for dashes."""
        headers = {name.replace("_", "-"): value for name, value in fields.items()}
        return await self.stack.call(method, f"/v2{path}", raw=raw, who=who, headers=headers)

    async def update_layout(self) -> None:
        """Update the readable layout to the state of the catalog."""
        follower = self.stack.assembly.core.follower
        follower.notify()
        while follower._following is not None:
            await follower._following

    async def below(self, method: str, path: str, raw: bytes = b"", *, name: str = "", **rest: Any) -> Reply:
        """One request below the image."""
        return await self.call(method, f"/{name or self.name}/{path}", raw, **rest)

    async def start(self, query: str = "", *, name: str = "", **rest: Any) -> Reply:
        """Start an upload."""
        return await self.below("POST", f"blobs/uploads/{query}", name=name, **rest)

    async def continue_upload(self, reply: Reply, method: str, raw: bytes = b"", query: str = "", **rest: Any) -> Reply:
        """The next request of an upload, at the address in the last answer."""
        path = reply.headers["location"].removeprefix("/v2")
        return await self.call(method, path + query, raw, **rest)

    async def push_blob(self, data: bytes, *, name: str = "", who: str | None = "admin") -> str:
        """Push a blob by POST and PUT, as most clients do. Returns its digest."""
        started = await self.start(name=name, who=who)
        assert started.status == 202, started.body
        patched = await self.continue_upload(started, "PATCH", data, who=who)
        assert patched.status == 202, patched.body
        digest = digest_of(data)
        done = await self.continue_upload(patched, "PUT", query=f"?digest={digest}", who=who)
        assert done.status == 201, done.body
        return digest

    async def put(self, image: Image, reference: str, *, name: str = "", **rest: Any) -> Reply:
        """Push the manifest of an image."""
        fields = {"Content_Type": image.media_type, **rest}
        return await self.below("PUT", f"manifests/{reference}", image.manifest, name=name, **fields)

    async def push(self, image: Image, reference: str = "", *, name: str = "", who: str | None = "admin") -> Reply:
        """Push an image with its blobs; under its digest unless a tag is given."""
        for blob in image.blobs:
            await self.push_blob(blob, name=name, who=who)
        reply = await self.put(image, reference or image.digest, name=name, who=who)
        assert reply.status == 201, reply.body
        return reply


def code(reply: Reply) -> str:
    """The code of the first error in an answer."""
    return str(reply.json["errors"][0]["code"])


def sentence(reply: Reply) -> str:
    """The message of the first error in an answer."""
    return str(reply.json["errors"][0]["message"])
