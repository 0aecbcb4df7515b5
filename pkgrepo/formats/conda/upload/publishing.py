"""Publishes an uploaded package as a file of a version."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import Any

from attrs import frozen

from pkgrepo.errors import Invalid
from pkgrepo.formats.conda import configuration
from pkgrepo.formats.conda.anatomy.reading import read_package
from pkgrepo.formats.conda.description import Description, find_subdir, meta_of
from pkgrepo.formats.conda.index.records import index_package
from pkgrepo.formats.conda.layout import media_type, package_path
from pkgrepo.formats.conda.names import FileName, version_key
from pkgrepo.formats.conda.version_order import order_key
from pkgrepo.gateway.services import Services
from pkgrepo.model import Actor, BlobInfo, NewFile, Repository
from pkgrepo.repositories.publish.releases import Published, Release
from pkgrepo.repositories.publish.staged import Staged

DIGESTS = ("md5",)  # beside sha256, which every file has


@frozen
class Upload:
    """
    A package that has arrived: its file name, the folder that the client wants it in, and its bytes.

    Without a ``subdir`` the package's own one is used. With ``overwrite`` it may replace a file.
    ``derived`` are attributes of a package that was made here, whose name is never burned: it can be made again.
    """

    name: FileName
    subdir: str | None
    blob: BlobInfo
    overwrite: bool = False
    derived: Mapping[str, Any] | None = None


class Uploads:
    """Publishes packages in one hosted repository."""

    def __init__(self, services: Services, repository: Repository) -> None:
        self._services = services
        self._repository = repository
        self._policy = configuration.policy(repository)

    async def publish(self, staged: Staged, upload: Upload, actor: Actor) -> Published:
        """
        Inspect a staged package and publish it. Publishing the same bytes again changes nothing.

        :raises Invalid: it is damaged, or another package than its file name or folder says
        :raises FileExists, FileBurned: another file is published under this name, or one was deleted
        """
        name = upload.name
        look = partial(read_package, name=name)
        description = await staged.inspect(self._services.pools.cpu, upload.blob, look)
        release = make_release(upload, description, self._policy)
        return await self._services.publisher.publish(self._repository, release, staged, actor, index_package)


def make_release(upload: Upload, description: Description, policy: configuration.Policy) -> Release:
    """The release of a package that has been inspected. :raises Invalid: it is for another folder"""
    name = upload.name
    subdir = find_subdir(description.index)
    if upload.subdir is not None and upload.subdir != subdir:
        raise Invalid(f"{name} is for {subdir}, and was sent to {upload.subdir}", "subdir")
    file = NewFile(
        path=package_path(subdir, name),
        blob=upload.blob,
        media_type=media_type(name),
        attrs={"index": description.index, "run_exports": description.exports, **(upload.derived or {})},
    )
    return Release(
        package_key=name.name,
        package_name=name.name,
        version_key=version_key(name.version),
        version_text=name.version,
        sort=order_key(name.version),
        files=(file,),
        meta=meta_of(description),
        overwrite=upload.overwrite and policy.allow_overwrite,
        reuse=policy.reuse_deleted_names,
    )
