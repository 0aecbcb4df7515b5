"""Reads project pages and lists of projects in JSON (PEP 691, 700, 708, 714, 740, 792)."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Final, Literal

import msgspec

from pkgrepo.errors import Invalid
from pkgrepo.untrusted.strict_json import ERRORS, describe

from .listing import (
    ListedFile,
    Listing,
    check_api_version,
    find_hashes,
    find_locations,
    find_text,
)

LARGEST_SIZE: Final = 2**53  # bytes of a file; clients read larger numbers wrongly
LARGEST_FILE: Final = 64 * 1024  # bytes of the object of one file; most have less than 1 KiB

_CORE_METADATA: Final = ("core-metadata", "data-core-metadata", "dist-info-metadata", "data-dist-info-metadata")
_KNOWN: Final = frozenset(
    {
        *_CORE_METADATA,
        *("filename", "url", "hashes", "requires-python", "size", "upload-time", "yanked", "gpg-sig", "provenance"),
    }
)

_decode = msgspec.json.decode


class _Page(msgspec.Struct, rename="kebab"):
    """A page, of which only the outer form is checked."""

    name: str
    files: list[msgspec.Raw]
    meta: Any = None
    versions: Any = None
    project_status: Any = None
    alternate_locations: Any = None


class _Project(msgspec.Struct, gc=False):
    name: str


class _List(msgspec.Struct):
    projects: list[_Project]
    meta: Any = None


def read_json(source: bytes, url: str) -> Listing:
    """
    The page at a URL. Files that cannot be read are left out.

    :raises Invalid: it is no project page
    """
    try:
        page = _decode(source, type=_Page)
    except ERRORS as error:
        raise Invalid(f"it is no page of a project in JSON: {describe(source, error)}") from None
    check_api_version(_version(page.meta))
    meta, status = _object(page.meta), _object(page.project_status)
    return Listing(
        name=page.name,
        base=url,
        files=_files(page.files),
        versions=[each for each in _list(page.versions) if isinstance(each, str)],
        status=find_text(status.get("status")) or "active",
        reason=find_text(status.get("reason")),
        tracks=find_locations(_list(meta.get("tracks"))),
        alternate_locations=find_locations(_list(page.alternate_locations)),
    )


def read_json_list(source: bytes) -> Iterable[str]:
    """
    The names in a list of projects.

    :raises Invalid: the bytes are no listing
    """
    try:
        page = _decode(source, type=_List)
    except ERRORS as error:
        raise Invalid(f"it is no list of projects in JSON: {describe(source, error)}") from None
    check_api_version(_version(page.meta))
    return [project.name for project in page.projects]


def _version(meta: Any) -> str:
    return str(meta.get("api-version", "1.0")) if isinstance(meta, dict) else "1.0"


def _files(raws: list[msgspec.Raw]) -> Iterator[ListedFile]:
    for raw in raws:
        try:
            file = _decode(raw) if len(bytes(raw)) <= LARGEST_FILE else None
        except ERRORS:
            continue
        if isinstance(file, dict) and isinstance(file.get("filename"), str) and isinstance(file.get("url"), str):
            yield _file(file)


def _file(file: Mapping[str, Any]) -> ListedFile:
    size = file.get("size")
    return ListedFile(
        filename=file["filename"],
        url=file["url"],
        hashes=find_hashes(_object(file.get("hashes"))),
        requires_python=find_text(file.get("requires-python")),
        size=size if type(size) is int and 0 <= size <= LARGEST_SIZE else None,
        upload_time=find_text(file.get("upload-time")),
        yanked=_yanked(file.get("yanked")),
        core_metadata=_core_metadata(file),
        has_sig=file.get("gpg-sig") is True,
        provenance=find_text(file.get("provenance")),
        other={key: value for key, value in file.items() if key not in _KNOWN},
    )


def _yanked(value: Any) -> Literal[False] | str:
    """A reason that is too long to pass on still yanks the file."""
    return (find_text(value) or "") if value else False


def _core_metadata(file: Mapping[str, Any]) -> Mapping[str, str] | bool:
    value = next((file[key] for key in _CORE_METADATA if key in file), False)
    return find_hashes(value) or True if isinstance(value, dict) else value is True


def _object(value: Any) -> Mapping[str, Any]:
    return value if isinstance(value, dict) else {}


def _list(value: Any) -> list[Any]:
    return value if isinstance(value, list) else []
