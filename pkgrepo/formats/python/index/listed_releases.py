"""The releases of a project as its page lists them, for repositories that do not have all files."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import datetime
from typing import Any

import msgspec
from attrs import evolve

from pkgrepo.formats.python.names import FileName, parse_filename
from pkgrepo.storage.gil import GilReleaser

from .project_json import Release, ReleaseFile


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
        name = parse_filename(listed["filename"], project=project)
        yanked = listed["yanked"]
        reason = None if yanked is False else "" if yanked is True else str(yanked)
        file = _file(listed, name, base_url)
        release = found.get(name.version_key)
        if release is None:
            meta = {} if file.requires_python is None else {"requires_python": file.requires_python}
            found[name.version_key] = Release(name.version_text, name.version_sort, meta, [file], reason)
        else:
            still = None if reason is None else release.yanked
            found[name.version_key] = evolve(release, files=[*release.files, file], yanked=still)
        gil.release_if_due()
    return found


def _file(listed: Mapping[str, Any], name: FileName, base_url: str) -> ReleaseFile:
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
