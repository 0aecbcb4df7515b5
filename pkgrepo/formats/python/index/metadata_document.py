"""Reads the JSON metadata document of a project from the catalog; ``project_json`` renders it."""

from __future__ import annotations

from collections.abc import Iterable

from pkgrepo.errors import NotFound, existing
from pkgrepo.interfaces import Reader
from pkgrepo.model import File, Version, VersionState
from pkgrepo.storage.catalog.documents import fragments
from pkgrepo.storage.catalog.packages import files, packages, versions

from .pages import JSON_PAGE, quote
from .project_json import Release, ReleaseFile, project_json


def read_document(
    reader: Reader, repository_id: int, project: str, version_key: str | None, base_url: str, *, simple: bool
) -> tuple[bytes, int]:
    """
    The document and the project's serial. With ``version_key`` it describes that version.

    With ``simple`` it also lists the files of the simple page.

    :raises NotFound: no such project or version
    """
    package = existing(packages.find_package(reader, repository_id, project), "project", project)
    by_version: dict[int | None, list[File]] = {}
    for file in files.files_of_package(reader, package.id):
        by_version.setdefault(file.version_id, []).append(file)
    every = versions.list_versions(reader, package.id)
    releases = {version.key: _release(version, by_version.get(version.id, ()), base_url) for version in every}
    selected = None if version_key is None else releases.get(version_key)
    if version_key is not None and selected is None:
        raise NotFound("version", f"{package.name} {version_key}")
    body = project_json(
        list(releases.values()),
        name=package.name,
        project_key=package.key,
        base_url=base_url,
        serial=package.serial,
        selected=selected,
        simple_files=[each.body for each in fragments.list_fragments(reader, package.id, JSON_PAGE)]
        if simple
        else None,
    )
    return body, package.serial


def _release(version: Version, stored: Iterable[File], base_url: str) -> Release:
    return Release(
        version=version.text,
        sort=version.sort,
        meta=version.meta,
        files=[_file(file, base_url) for file in stored if file.role is None],
        yanked=version.reason if version.state is VersionState.YANKED else None,
    )


def _file(file: File, base_url: str) -> ReleaseFile:
    return ReleaseFile(
        filename=file.path.rsplit("/", 1)[-1],
        url=f"{base_url}/" + "/".join(quote(part) for part in file.path.split("/")),
        packagetype=file.attrs.get("packagetype", ""),
        python_version=file.attrs.get("python_version", ""),
        size=file.size,
        digests=file.digests,
        upload_time=file.created_at,
        requires_python=file.attrs.get("requires_python"),
        has_sig=bool(file.attrs.get("signature")),
        comment=file.attrs.get("comment", ""),
    )
