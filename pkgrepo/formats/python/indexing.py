"""
The simple index of one project, kept up to date with every change.

Each file has one fragment in each of the two forms of its project's page; a change renders the fragments it touches
and joins the rest.
"""

from __future__ import annotations

from collections.abc import Iterable

from pkgrepo.errors import Conflict
from pkgrepo.model import File, Package, Version, VersionState
from pkgrepo.repositories.index import Change, PackageIndex

from . import pages
from .layout import companion_of

JSON_PAGE = "simple.json"
HTML_PAGE = "simple.html"
JSON_TYPE = "application/vnd.pypi.simple.v1+json"
HTML_TYPE = "text/html; charset=utf-8"


def index_project(index: PackageIndex, change: Change) -> None:
    """
    Bring a project's pages up to date.

    :raises Conflict: a version would have two source distributions
    """
    version = change.version
    for file in change.removed:
        _forget(index, version, file)
    if version is not None:
        if change.added:
            _check_sdists(index, version)
        touched = change.added or ([] if change.removed else index.files(version))
        for file in _distributions(touched):
            entry = file_entry(file, version)
            index.put_fragment(JSON_PAGE, version.sort, entry.filename, pages.file_fragment_json(entry))
            index.put_fragment(HTML_PAGE, version.sort, entry.filename, pages.file_fragment_html(entry))
    _render(index)


def file_entry(file: File, version: Version) -> pages.FileEntry:
    """What the simple index says of a stored distribution."""
    attrs = file.attrs
    filename = file.path.rsplit("/", 1)[-1]
    url = "../../" + "/".join(pages.quote(part) for part in file.path.split("/"))
    return pages.FileEntry(
        filename=filename,
        url=url,
        sha256=file.sha256,
        requires_python=attrs.get("requires_python"),
        size=file.size,
        upload_time=file.created_at,
        yanked=version.reason if version.state is VersionState.YANKED else False,
        core_metadata_sha256=attrs.get("core_metadata"),
        has_sig=bool(attrs.get("signature")),
        provenance=f"{url}.provenance" if attrs.get("provenance") else None,
    )


def is_quarantined(package: Package) -> bool:
    """Whether nobody is to be offered the project's files."""
    return package.meta.get("status") == "quarantined"


def _render(index: PackageIndex) -> None:
    meta = index.package.meta
    status, reason = meta.get("status", "active"), meta.get("status_reason")
    hidden = is_quarantined(index.package)
    common = {"status": status, "reason": reason}
    versions = [] if hidden else index.version_texts()
    json_parts = [] if hidden else index.fragments(JSON_PAGE)
    html_parts = [] if hidden else index.fragments(HTML_PAGE)
    name, serial = index.package.key, index.package.serial
    index.put_document(JSON_PAGE, JSON_TYPE, pages.project_page_json(name, serial, versions, json_parts, **common))
    index.put_document(HTML_PAGE, HTML_TYPE, pages.project_page_html(name, serial, versions, html_parts, **common))


def _forget(index: PackageIndex, version: Version | None, file: File) -> None:
    if version is None or companion_of(file) is not None:
        return
    filename = file.path.rsplit("/", 1)[-1]
    index.remove_fragment(JSON_PAGE, version.sort, filename)
    index.remove_fragment(HTML_PAGE, version.sort, filename)


def _check_sdists(index: PackageIndex, version: Version) -> None:
    sdists = [f for f in _distributions(index.files(version)) if f.attrs.get("packagetype") == "sdist"]
    if len(sdists) > 1:
        names = " and ".join(sorted(file.path.rsplit("/", 1)[-1] for file in sdists))
        raise Conflict(f"only one source distribution is allowed per version, not {names}")


def _distributions(files: Iterable[File]) -> list[File]:
    return [file for file in files if companion_of(file) is None]
