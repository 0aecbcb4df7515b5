"""
The JSON metadata of a project (the ``/pypi/<project>/json`` API), which other tools than installers read.

The releases come from the catalog, or from the project's page in repositories that do not have all files.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any, Final

import msgspec
from attrs import evolve, field, frozen

from pkgrepo.concurrency.gil import GilReleaser
from pkgrepo.errors import NotFound, existing
from pkgrepo.formats.python.index.pages import JSON_PAGE, format_time, quote
from pkgrepo.formats.python.names import FileName, parse_filename
from pkgrepo.formats.python.versions import find_version
from pkgrepo.interfaces import Reader
from pkgrepo.model import File, Version, VersionState
from pkgrepo.model.advisories import Advisory
from pkgrepo.repositories.advisories.known import OnPackage
from pkgrepo.storage.catalog import index_documents
from pkgrepo.storage.catalog.packages import files, packages, versions

UNKNOWN_COUNT: Final = -1  # downloads are not counted here: caches of installers make every figure wrong

_TEXTS: Final = (
    "summary",
    "description",
    "description_content_type",
    "keywords",
    "license",
    "author",
    "author_email",
    "maintainer",
    "maintainer_email",
    "home_page",
    "download_url",
)
_LISTS: Final = ("license_files", "requires_dist", "provides_extra", "dynamic")


@frozen
class ReleaseFile:
    """
    One distribution; ``url`` is absolute, ``upload_time`` aware, ``size`` in bytes.

    ``digests`` maps algorithm to hex. An upstream may not say the size, the time or any digest.
    """

    filename: str
    url: str
    packagetype: str
    python_version: str
    size: int | None
    digests: Mapping[str, str]
    upload_time: datetime | None
    requires_python: str | None = None
    has_sig: bool = False
    comment: str = ""


@frozen
class Release:
    """
    One version with its files.

    ``meta`` comes from L{meta_json}; ``yanked`` is None or the reason, which may be empty.
    """

    version: str
    sort: bytes
    meta: Mapping[str, Any] = field(factory=dict)
    files: Sequence[ReleaseFile] = ()
    yanked: str | None = None


def newest(releases: Iterable[Release]) -> Release | None:
    """The highest final release that is not yanked; else the highest pre-release; else a yanked one."""
    return max(releases, key=lambda release: (release.yanked is None, _is_final(release), release.sort), default=None)


def project_json(
    releases: Sequence[Release],
    *,
    name: str,
    project_key: str,
    base_url: str,
    serial: int,
    selected: Release | None = None,
    simple_files: Iterable[bytes] | None = None,
    known: OnPackage | None = None,
) -> bytes:
    """
    The document of a project, or of its ``selected`` version; ``releases`` are in order.

    Without ``known`` it has no ``vulnerabilities``: an empty list would say that the version has none.

    ``base_url`` is the repository's URL without a trailing slash. ``simple_files`` are the fragments of the project's
    simple page, added under ``files``.
    """
    chosen = selected or newest(releases)
    head: dict[str, Any] = {
        "info": _info(chosen, name=name, project_key=project_key, base_url=base_url),
        "last_serial": serial,
        "releases": {release.version: _files(release) for release in releases},
        "urls": [] if chosen is None else _files(chosen),
    }
    found = [] if chosen is None or known is None else _vulnerabilities(known.affecting(chosen.sort))
    if found or (known is not None and known.complete):
        head["vulnerabilities"] = found
    body = msgspec.json.encode(head)
    if simple_files is None:
        return body
    return b"".join((body[:-1], b',"files":[', b",".join(simple_files), b"]}"))


def _vulnerabilities(advisories: Sequence[Advisory]) -> list[dict[str, Any]]:
    """Vulnerabilities in the form of the public index."""
    return [
        {
            "id": each.id,
            "aliases": list(each.aliases),
            "summary": each.title,
            "details": each.overview or each.title,
            "fixed_in": each.fixed_versions,
            "link": each.url,
            "source": "osv",
            "withdrawn": None,
        }
        for each in advisories
    ]


def _is_final(release: Release) -> bool:
    version = find_version(release.version)
    return version is not None and not version.is_prerelease


def _info(release: Release | None, *, name: str, project_key: str, base_url: str) -> dict[str, Any]:
    meta: Mapping[str, Any] = {} if release is None else release.meta
    version = "" if release is None else release.version
    package_url = f"{base_url}/simple/{quote(project_key)}/"
    info: dict[str, Any] = {"name": meta.get("name", name), "version": version}
    info.update({key: meta.get(key, "") for key in _TEXTS})
    info.update({key: meta.get(key) for key in _LISTS})
    info.update(
        {
            "license_expression": meta.get("license_expression"),
            "classifiers": meta.get("classifiers", []),
            "requires_python": meta.get("requires_python"),
            "platform": ", ".join(meta.get("platform", [])) or None,
            "project_urls": _project_urls(meta),
            "project_url": package_url,
            "package_url": package_url,
            "release_url": f"{base_url}/pypi/{quote(project_key)}/{quote(version)}/" if version else package_url,
            "docs_url": None,
            "bugtrack_url": None,
            "downloads": dict.fromkeys(("last_day", "last_week", "last_month"), UNKNOWN_COUNT),
            "yanked": release is not None and release.yanked is not None,
            "yanked_reason": (release.yanked or None) if release is not None else None,
        }
    )
    return info


def _project_urls(meta: Mapping[str, Any]) -> dict[str, str] | None:
    urls: dict[str, str] = {}
    for each in meta.get("project_urls", ()):
        label, comma, url = each.partition(",")
        if comma:
            urls.setdefault(label.strip(), url.strip())
    # Older packages have their links in these fields only.
    for label, key in (("Homepage", "home_page"), ("Download", "download_url")):
        if meta.get(key):
            urls.setdefault(label, meta[key])
    return urls or None


def _files(release: Release) -> list[dict[str, Any]]:
    return [
        {
            "comment_text": file.comment,
            "digests": dict(file.digests),
            "downloads": UNKNOWN_COUNT,
            "filename": file.filename,
            "has_sig": file.has_sig,
            "md5_digest": file.digests.get("md5"),
            "packagetype": file.packagetype,
            "python_version": file.python_version,
            "requires_python": file.requires_python,
            "size": file.size,
            "upload_time": file.upload_time and file.upload_time.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%S"),
            "upload_time_iso_8601": file.upload_time and format_time(file.upload_time),
            "url": file.url,
            "yanked": release.yanked is not None,
            "yanked_reason": release.yanked or None,
        }
        for file in sorted(release.files, key=lambda file: file.filename)
    ]


def read_listed(fragments: Iterable[bytes], project: str, base_url: str) -> dict[str, Release]:
    """
    The releases by key, in the order of the ``fragments`` of the page in JSON.

    ``base_url`` is the repository's URL without a trailing slash. A release is yanked if all its files are. Its
    metadata are those that the page has.
    """
    found: dict[str, Release] = {}
    gil = GilReleaser()
    for body in fragments:
        listed: Mapping[str, Any] = msgspec.json.decode(body)
        name = parse_filename(listed["filename"], project=project, eggs=True)
        yanked = listed["yanked"]
        reason = None if yanked is False else "" if yanked is True else str(yanked)
        file = _listed_file(listed, name, base_url)
        release = found.get(name.version_key)
        if release is None:
            meta = {} if file.requires_python is None else {"requires_python": file.requires_python}
            found[name.version_key] = Release(name.version_text, name.version_sort, meta, [file], reason)
        else:
            still = None if reason is None else release.yanked
            found[name.version_key] = evolve(release, files=[*release.files, file], yanked=still)
        gil.release_if_due()
    return found


def _listed_file(listed: Mapping[str, Any], name: FileName, base_url: str) -> ReleaseFile:
    time = listed.get("upload-time")
    return ReleaseFile(
        filename=name.filename,
        url=f"{base_url}/{listed['url'].removeprefix('../../')}",
        packagetype=name.kind,
        python_version=name.python_version,
        size=listed.get("size"),
        digests=listed["hashes"],
        upload_time=None if time is None else datetime.fromisoformat(time),
        requires_python=listed.get("requires-python"),
        has_sig=bool(listed.get("gpg-sig")),
    )


def read_document(
    reader: Reader,
    repository_id: int,
    project: str,
    version_key: str | None,
    base_url: str,
    *,
    simple: bool,
    known: OnPackage | None = None,
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
    releases = {version.key: _stored_release(version, by_version.get(version.id, ()), base_url) for version in every}
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
        simple_files=index_documents.fragment_bodies(reader, package.id, JSON_PAGE) if simple else None,
        known=known,
    )
    return body, package.serial


def _stored_release(version: Version, stored: Iterable[File], base_url: str) -> Release:
    return Release(
        version=version.text,
        sort=version.sort,
        meta=version.meta,
        files=[_stored_file(file, base_url) for file in stored if file.role is None],
        yanked=version.reason if version.state is VersionState.YANKED else None,
    )


def _stored_file(file: File, base_url: str) -> ReleaseFile:
    return ReleaseFile(
        filename=file.path.rsplit("/", 1)[-1],
        url=f"{base_url}/" + "/".join(quote(part) for part in file.path.split("/")),
        packagetype=file.attrs.get("packagetype", ""),
        python_version=file.attrs.get("python_version", ""),
        size=file.size,
        digests=file.digests,
        upload_time=file.published_at,
        requires_python=file.attrs.get("requires_python"),
        has_sig=bool(file.attrs.get("signature")),
        comment=file.attrs.get("comment", ""),
    )
