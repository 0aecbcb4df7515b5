"""Renders the JSON metadata of a project (the ``/pypi/<project>/json`` API), which other tools than installers read."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any, Final

import msgspec
from attrs import field, frozen

from pkgrepo.formats.python.names import find_version

from .pages import format_time, quote

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
) -> bytes:
    """
    The document of a project, or of its ``selected`` version; ``releases`` are in order.

    ``base_url`` is the repository's URL without a trailing slash. ``simple_files`` are the fragments of the project's
    simple page, added under ``files``.
    """
    chosen = selected or newest(releases)
    head = {
        "info": _info(chosen, name=name, project_key=project_key, base_url=base_url),
        "last_serial": serial,
        "releases": {release.version: _files(release) for release in releases},
        "urls": [] if chosen is None else _files(chosen),
        "vulnerabilities": [],
    }
    body = msgspec.json.encode(head)
    if simple_files is None:
        return body
    return b"".join((body[:-1], b',"files":[', b",".join(simple_files), b"]}"))


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
