"""
The simple index in its two forms (PEP 503, 592, 629, 658, 691, 700, 708, 714, 740, 792).

A project's page is joined from one fragment per file, so that publishing a file renders one fragment.
"""

from __future__ import annotations

import re
import urllib.parse
from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime
from html import escape
from typing import Any, Literal

import msgspec
from attrs import Factory, frozen

from pkgrepo.formats.python.names import collapse
from pkgrepo.repositories.publish.splicing import Spliced

JSON_PAGE = "simple.json"
HTML_PAGE = "simple.html"
HELD_PAGE = "simple.json.held"  # the page in JSON with what rules hold
KIND_OF_FRAGMENTS = {JSON_PAGE: JSON_PAGE, HTML_PAGE: HTML_PAGE, HELD_PAGE: JSON_PAGE}

# The kind of fragments of an upstream's list of projects: some pairs of key and name, as JSON.
NAME_LIST = "names"

API_VERSION = "1.4"

# The member of a file whose time is when it was first seen, and not when it was uploaded: one of our own (PEP 691).
FIRST_SEEN = "_first-seen"

# The hashes that clients know in the fragments of URLs; the one that all of them know comes first.
URL_HASHES = ("sha256", "sha512", "sha384", "sha224", "sha1", "md5")

_METADATA_ATTRIBUTE = re.compile(rb' data-(?:core-metadata|dist-info-metadata)="[^"]*"')  # quotes in values are escaped
_UNRESERVED = re.compile(r"[A-Za-z0-9._~-]*")  # RFC 3986 section 2.3

_encode = msgspec.json.Encoder().encode


@frozen
class FileEntry:
    """
    The entry of one file in the simple index.

    ``url`` is relative to the project's page and percent-encoded. ``hashes`` are hexadecimal, by ``hashlib`` names.
    ``size`` (bytes) and ``upload_time`` (aware) are None if the upstream does not say them. ``yanked`` is False or the
    reason, which may be empty. ``core_metadata`` are the hashes of ``<url>.metadata``, False if there is none, True if
    they are unknown. ``other`` has JSON members for which there is no field here.
    """

    filename: str
    url: str
    hashes: Mapping[str, str]
    requires_python: str | None
    size: int | None
    upload_time: datetime | None
    yanked: Literal[False] | str
    core_metadata: Mapping[str, str] | bool
    has_sig: bool = False
    provenance: str | None = None
    other: Mapping[str, Any] = Factory(dict)


def quote(part: str) -> str:
    """Percent-encode one segment of a path, including the ``+`` and ``!`` of versions."""
    return part if _UNRESERVED.fullmatch(part) else urllib.parse.quote(part, safe="")


def format_time(time: datetime) -> str:
    """Format a time as PEP 700 does: UTC, ``Z``, microseconds."""
    return time.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")


def file_fragment_json(entry: FileEntry) -> bytes:
    """The file's object in a project's JSON page."""
    value: dict[str, Any] = {
        "filename": entry.filename,
        "url": entry.url,
        "hashes": entry.hashes,
    }
    if entry.size is not None:
        value["size"] = entry.size
    if entry.upload_time is not None:
        value["upload-time"] = format_time(entry.upload_time)
    # PEP 691 allows a string or true. An empty string is false in most languages, so an empty reason becomes true.
    value["yanked"] = entry.yanked or entry.yanked == ""
    # PEP 714: some versions of pip before 23.1.2 crash if the older key holds an object.
    value["core-metadata"] = entry.core_metadata
    if entry.requires_python:
        value["requires-python"] = entry.requires_python
    if entry.has_sig:
        value["gpg-sig"] = True
    if entry.provenance:
        value["provenance"] = entry.provenance
    if entry.other:
        value = {**entry.other, **value}
    return _encode(value)


def file_fragment_html(entry: FileEntry) -> bytes:
    """The file's anchor in a project's HTML page."""
    attributes = {"href": f"{entry.url}{_named_hash(entry.hashes, '#')}"}
    if entry.requires_python:
        attributes["data-requires-python"] = entry.requires_python
    if entry.yanked is not False:
        attributes["data-yanked"] = entry.yanked
    if entry.core_metadata is not False:
        digest = "true" if entry.core_metadata is True else _named_hash(entry.core_metadata) or "true"
        attributes["data-core-metadata"] = digest
        # PEP 714: pip before 23.2 reads this name only.
        attributes["data-dist-info-metadata"] = digest
    if entry.has_sig:
        attributes["data-gpg-sig"] = "true"
    if entry.provenance:
        attributes["data-provenance"] = entry.provenance
    text = " ".join(f'{name}="{escape(value)}"' for name, value in attributes.items())
    return f"<a {text}>{escape(entry.filename)}</a><br>".encode()


def date_json(fragment: bytes, time: datetime, *, first_seen: bool) -> bytes:
    """The object of a file with a time, which may be when it was ``first_seen`` here: its upstream says none."""
    value = {**msgspec.json.decode(fragment), "upload-time": format_time(time)}
    return _encode({**value, FIRST_SEEN: True} if first_seen else value)


def hold_json(fragment: bytes, why: str) -> bytes:
    """
    The object of a file that a rule holds: yanked, with the reason (PEP 592).

    Clients choose a yanked file only for a requirement of exactly its version, and print why when it is refused.
    """
    return _encode({**msgspec.json.decode(fragment), "yanked": why})


def hide_metadata_json(fragment: bytes) -> bytes:
    """The object of a file without its core metadata."""
    return _encode({**msgspec.json.decode(fragment), "core-metadata": False})


def hide_metadata_html(fragment: bytes) -> bytes:
    """The anchor of a file without its core metadata."""
    return _METADATA_ATTRIBUTE.sub(b"", fragment)


def _named_hash(hashes: Mapping[str, str], prefix: str = "") -> str:
    """The hash that most clients know, as ``sha256=<hex>``; empty if there is none."""
    name = next((name for name in URL_HASHES if name in hashes), None)
    return "" if name is None else f"{prefix}{name}={hashes[name]}"


def project_page_json(
    name: str,
    serial: int,
    versions: Sequence[str],
    fragments: Sequence[bytes],
    *,
    status: str = "active",
    reason: str | None = None,
    tracks: Sequence[str] = (),
    alternate_locations: Sequence[str] = (),
) -> Spliced:
    """A project's page as JSON; ``name`` is the project's key, ``versions`` those that have files."""
    meta: dict[str, Any] = {"api-version": API_VERSION, "_last-serial": serial}
    if tracks:
        meta["tracks"] = list(tracks)
    head: dict[str, Any] = {"meta": meta, "name": name}
    if alternate_locations:
        head["alternate-locations"] = list(alternate_locations)
    head["project-status"] = {"status": status, "reason": reason} if reason else {"status": status}
    head["versions"] = list(versions)
    return Spliced(head=_encode(head)[:-1] + b',"files":[', fragments=fragments, tail=b"]}")


def project_page_html(
    name: str,
    serial: int,
    versions: Sequence[str],  # noqa: ARG001 - same parameters as the JSON form, which lists versions
    fragments: Sequence[bytes],
    *,
    status: str = "active",
    reason: str | None = None,
    tracks: Sequence[str] = (),
    alternate_locations: Sequence[str] = (),
) -> Spliced:
    """A project's page as HTML."""
    metas = [("pypi:repository-version", API_VERSION), ("pypi:project-status", status)]
    if reason:
        metas.append(("pypi:project-status-reason", reason))
    metas += [("pypi:tracks", url) for url in tracks]
    metas += [("pypi:alternate-locations", url) for url in alternate_locations]
    return _html_page(f"Links for {name}", serial, metas, fragments)


def listed_json(names: Iterable[str]) -> bytes:
    """Entries of the JSON project list, by display names."""
    return b",".join(b'{"name":%b}' % _encode(name) for name in names)


def listed_json_with_serials(projects: Iterable[tuple[str, int]]) -> bytes:
    """Entries of the JSON project list with serials, without which bandersnatch 6 mirrors no project."""
    return b",".join(b'{"_last-serial":%d,"name":%b}' % (serial, _encode(name)) for name, serial in projects)


def listed_html(names: Iterable[str]) -> bytes:
    """Entries of the HTML project list, linked to the projects' pages."""
    return "\n".join(f'<a href="{quote(collapse(name))}/">{escape(name)}</a><br>' for name in names).encode()


def project_list_json(serial: int, fragments: Sequence[bytes]) -> Spliced:
    """The project list as JSON, from fragments made by L{listed_json}."""
    head = _encode({"meta": {"api-version": API_VERSION, "_last-serial": serial}})
    return Spliced(head=head[:-1] + b',"projects":[', fragments=fragments, tail=b"]}")


def project_list_html(serial: int, fragments: Sequence[bytes]) -> Spliced:
    """The project list as HTML, from fragments made by L{listed_html}."""
    return _html_page("Simple index", serial, [("pypi:repository-version", API_VERSION)], fragments)


def _html_page(title: str, serial: int, metas: Iterable[tuple[str, str]], lines: Sequence[bytes]) -> Spliced:
    head = [
        "<!DOCTYPE html>",
        "<html>",
        "<head>",
        '<meta charset="utf-8">',
        *(f'<meta name="{name}" content="{escape(content)}">' for name, content in metas),
        f"<title>{escape(title)}</title>",
        "</head>",
        "<body>",
        f"<h1>{escape(title)}</h1>",
        "",
    ]
    tail = [*([""] if lines else []), "</body>", "</html>", f"<!--SERIAL {serial}-->", ""]
    return Spliced("\n".join(head).encode(), lines, "\n".join(tail).encode(), separator=b"\n")
