"""Files of a version as they are published."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from pkgrepo.formats.maven.names import Coordinates
from pkgrepo.formats.maven.paths import ArtifactFile, media_type
from pkgrepo.formats.maven.version_order import sort_key
from pkgrepo.interfaces import Transaction
from pkgrepo.model import BlobInfo, NewFile
from pkgrepo.repositories.publish.releases import Release


def new_file(target: ArtifactFile, blob: BlobInfo, **more: Any) -> NewFile:
    """The file at a path as it is published; ``more`` are further attributes."""
    attrs: dict[str, Any] = {"classifier": target.classifier, "extension": target.extension, **more}
    if target.timestamp is not None:
        attrs["timestamp"] = target.timestamp
        attrs["build"] = target.build
    if target.role is not None:
        attrs["role"] = target.role
    return NewFile(path=target.path, blob=blob, media_type=media_type(target.path), attrs=attrs)


def make_release(
    coordinates: Coordinates,
    files: Sequence[NewFile],
    meta: Mapping[str, Any] | None = None,
    *,
    overwrite: bool = False,
    reuse: bool = False,
    kind: str = "published",
    guard: Callable[[Transaction], None] | None = None,
) -> Release:
    """
    The release of these files, all of one version.

    ``meta`` is what its POM says of it; None if no POM is among the files, which leaves that of an existing version.
    The other arguments are those of L{Release}.
    """
    return Release(
        package_key=coordinates.package_key,
        package_name=coordinates.package_key,
        version_key=coordinates.version,
        version_text=coordinates.version,
        sort=sort_key(coordinates.version),
        files=tuple(files),
        meta=meta or {},
        overwrite=overwrite,
        reuse=reuse,
        describes=meta is not None,
        kind=kind,
        guard=guard,
    )
