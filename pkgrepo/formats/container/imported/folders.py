"""Images in folders of this machine: OCI layouts, as of zot and skopeo, and the storage of CNCF distribution."""

from __future__ import annotations

import os
from collections.abc import AsyncIterator, Callable, Iterable, Mapping, Sequence
from functools import partial
from typing import Any, Final

from pkgrepo.archives.image_layout import BLOBS, INDEX, blob_path, names_of
from pkgrepo.concurrency.lru import Lru
from pkgrepo.errors import Invalid, NotFound
from pkgrepo.formats.container.documents import MANIFEST_SIZE
from pkgrepo.formats.container.imported.images import ImageStore
from pkgrepo.formats.container.names import find_digest, is_tag, parse_digest
from pkgrepo.gateway.imported.places import Folder, LocalPlace

REMEMBERED: Final = 16  # images whose lists are in memory
INDEX_SIZE: Final = 64 * 1024 * 1024  # bytes; zot lists all manifests of an image


Subjects = Mapping[str, Sequence[str]]


class Layouts:
    """
    OCI layouts: the folder itself, whose image is called as the folder, or folders below it, whose paths are names.

    Below the folder of an image may be others.

    See L{pkgrepo.formats.container.imported.images.ImageStore}.
    """

    def __init__(self, folder: Folder) -> None:
        self._folder = folder
        self._indexes: Lru[str, Any] = Lru(REMEMBERED)
        self._subjects: Lru[str, Subjects] = Lru(REMEMBERED)

    async def names(self) -> AsyncIterator[str]:
        """The names of the images."""
        waiting = [""]
        while waiting:
            path = waiting.pop()
            folders, files = await self._folder.list(path)
            if any(each.name == INDEX for each in files) and BLOBS in folders:
                yield path or self._own_name
                # the image below may be one whose name begins with this name; zot has uploads in .uploads
                folders = [each for each in folders if path and each != BLOBS and not each.startswith(".")]
            waiting += [f"{path}/{each}" if path else each for each in reversed(folders)]

    async def tags(self, name: str) -> Mapping[str, str]:
        """The digest of the manifest of each tag that the index annotates."""
        found: dict[str, str] = {}
        for each in await self._manifests(name):
            digest = each.get("digest")
            if not isinstance(digest, str) or find_digest(digest) is None:
                continue
            for name_there in names_of(each.get("annotations")):
                tag = name_there.rpartition(":")[2]
                if is_tag(tag):
                    found.setdefault(tag, digest)
        return found

    async def manifest(self, name: str, digest: str) -> tuple[bytes, str]:
        """The bytes of a manifest, and the media type that the index says."""
        data = await self._folder.read(self._blob_path(name, digest), MANIFEST_SIZE)
        kinds = [each.get("mediaType") for each in await self._manifests(name) if each.get("digest") == digest]
        return data, next((each.lower() for each in kinds if isinstance(each, str)), "")

    async def referrers(self, name: str, digest: str) -> Sequence[str]:
        """The manifests of the index whose subject is this one."""
        subjects = self._subjects.get(name)
        if subjects is None:
            listed = [each.get("digest") for each in await self._manifests(name)]
            digests = [each for each in listed if isinstance(each, str) and find_digest(each) is not None]
            subjects = await _subjects(digests, self._folder, partial(self._blob_path, name))
            self._subjects.put(name, subjects)
        return subjects.get(digest, ())

    def blob(self, name: str, digest: str) -> LocalPlace:
        """The place of a blob."""
        return self._folder.at(self._blob_path(name, digest))

    async def _manifests(self, name: str) -> list[dict[str, Any]]:
        index = self._indexes.get(name)
        if index is None:
            index = await self._folder.json(f"{self._path(name)}{INDEX}", INDEX_SIZE)
            self._indexes.put(name, index)
        listed = index.get("manifests") if isinstance(index, dict) else None
        return [each for each in listed if isinstance(each, dict)] if isinstance(listed, list) else []

    def _blob_path(self, name: str, digest: str) -> str:
        return self._path(name) + blob_path(str(parse_digest(digest)))

    def _path(self, name: str) -> str:
        return "" if name == self._own_name else f"{name}/"

    @property
    def _own_name(self) -> str:
        """What the image of the folder itself is called."""
        return self._folder.root.rstrip("/").rpartition("/")[2].lower()


class DistributionStorage:
    """
    The filesystem storage of CNCF distribution; see L{pkgrepo.formats.container.imported.images.ImageStore}.

    Below ``repositories/<name>/_manifests`` are links: files with a digest; blobs are in one place for all images.
    """

    def __init__(self, folder: Folder, root: str) -> None:
        self._folder = folder
        self._root = root
        self._subjects: Lru[str, Subjects] = Lru(REMEMBERED)

    async def names(self) -> AsyncIterator[str]:
        """The names of the images."""
        waiting = [""]
        while waiting:
            path = waiting.pop()
            folders, _ = await self._folder.list(f"{self._root}repositories/{path}")
            if "_manifests" in folders:
                yield path
            below = [each for each in reversed(folders) if not each.startswith("_")]
            waiting += [f"{path}/{each}" if path else each for each in below]

    async def tags(self, name: str) -> Mapping[str, str]:
        """The digest of the manifest of each tag; empty for one that is a symbolic link."""
        at = f"{self._root}repositories/{name}/_manifests/tags"
        try:
            folders, _ = await self._folder.list(at)
        except FileNotFoundError:
            return {}
        found = {each.removeprefix(f"{at}/"): "" for each in self._folder.left_out if each.startswith(f"{at}/")}
        for tag in folders:
            link = (await self._folder.read(f"{at}/{tag}/current/link", 1024)).decode("utf-8", "replace").strip()
            if find_digest(link) is not None:
                found[tag] = link
        return found

    async def manifest(self, name: str, digest: str) -> tuple[bytes, str]:  # noqa: ARG002 - of all stores
        """The bytes of a manifest, which say their media type themselves."""
        return await self._folder.read(self._blob_path(digest), MANIFEST_SIZE), ""

    async def referrers(self, name: str, digest: str) -> Sequence[str]:
        """The manifests of the image whose subject is this one."""
        subjects = self._subjects.get(name)
        if subjects is None:
            try:
                revisions, _ = await self._folder.list(f"{self._root}repositories/{name}/_manifests/revisions/sha256")
            except FileNotFoundError:
                revisions = []
            subjects = await _subjects([f"sha256:{each}" for each in revisions], self._folder, self._blob_path)
            self._subjects.put(name, subjects)
        return subjects.get(digest, ())

    def blob(self, name: str, digest: str) -> LocalPlace:  # noqa: ARG002 - of all stores
        """The place of a blob."""
        return self._folder.at(self._blob_path(digest))

    def _blob_path(self, digest: str) -> str:
        found = parse_digest(digest)
        return f"{self._root}blobs/{found.algorithm}/{found.hex[:2]}/{found.hex}/data"


def open_images(folder: Folder) -> ImageStore:
    """The images in a folder, of whatever kind it is. Blocks: call it in a thread."""
    for root in ("", "docker/registry/v2/"):
        if os.path.isdir(os.path.join(folder.root, root, "repositories")):
            return DistributionStorage(folder, root)
    return Layouts(folder)


async def _subjects(digests: Iterable[str], folder: Folder, path: Callable[[str], str]) -> Subjects:
    """The digests of manifests by that of their subject; those without one, and what is no manifest, are left out."""
    found: dict[str, list[str]] = {}
    for digest in digests:
        try:
            manifest = await folder.json(path(digest), MANIFEST_SIZE)
        except (NotFound, Invalid, OSError):
            continue
        subject = manifest.get("subject") if isinstance(manifest, dict) else None
        said = subject.get("digest") if isinstance(subject, dict) else None
        if isinstance(said, str) and said != digest:
            found.setdefault(said, []).append(digest)
    return found
