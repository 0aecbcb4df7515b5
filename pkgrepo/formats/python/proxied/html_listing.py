"""Reads project pages and lists of projects in HTML (PEP 503, 592, 629, 658, 714, 740, 792)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from html.parser import HTMLParser
from typing import Final
from urllib.parse import unquote

from pkgrepo.errors import Invalid
from pkgrepo.outbound.urls import parse_url, resolve_reference

from .listing import ListedFile, Listing, check_api_version, find_hashes, find_locations, find_text

LARGEST: Final = 64 * 1024 * 1024  # bytes of a page

_TITLES: Final = ("title", "h1")
_CORE_METADATA: Final = ("data-core-metadata", "data-dist-info-metadata")
_VERSION: Final = "pypi:repository-version"


def read_html(source: bytes, url: str) -> Listing:
    """
    The page at a URL.

    :raises Invalid: it is no project page
    """
    page = _parse(source)
    files = [file for file in map(_file, page.anchors) if file is not None]
    # Any server that answers 200 for what it does not know sends HTML.
    if not files and _VERSION not in page.metas and not page.title.strip().lower().startswith("links for"):
        raise Invalid("it is no page of a project: it has no links to files")
    return Listing(
        name=None,
        base=url if page.base is None else _resolve(url, page.base),
        files=files,
        status=find_text((page.metas.get("pypi:project-status") or [""])[0]) or "active",
        reason=find_text((page.metas.get("pypi:project-status-reason") or [""])[0]),
        tracks=find_locations(page.metas.get("pypi:tracks", ())),
        alternate_locations=find_locations(page.metas.get("pypi:alternate-locations", ())),
    )


def read_html_list(source: bytes) -> Iterable[str]:
    """
    The names in a list of projects: the last parts of its links.

    :raises Invalid: the bytes are no listing
    """
    page = _parse(source)
    links = ((attributes.get("href") or "").partition("#")[0].partition("?")[0] for attributes in page.anchors)
    names = [unquote(link.strip().rstrip("/").rpartition("/")[2]) for link in links]
    # Any server that answers 200 for what it does not know sends HTML.
    if not names and _VERSION not in page.metas:
        raise Invalid("it is no list of projects: it has no links")
    return names


def _parse(source: bytes) -> _Page:
    if len(source) > LARGEST:
        raise Invalid(f"it is a page in HTML of more than {LARGEST} bytes")
    page = _Page()
    try:
        # Not closed: the parser would search the whole rest again for each construct that has no end.
        page.feed(source.decode("utf-8", "replace"))
    except AssertionError as error:  # of the parser, for a malformed declaration
        raise Invalid("its HTML is malformed") from error
    check_api_version((page.metas.get(_VERSION) or ["1.0"])[0].strip())
    return page


class _Page(HTMLParser):
    """Collects the attributes of anchors, ``<base href>``, metas by their names, and the title."""

    def __init__(self) -> None:
        super().__init__()
        self.anchors: list[Mapping[str, str | None]] = []
        self.metas: dict[str, list[str]] = {}
        self.base: str | None = None
        self.title = ""
        self._in_title = False

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        if tag == "a":
            self.anchors.append(dict(attrs))
        elif tag == "base" and self.base is None:
            self.base = dict(attrs).get("href")
        elif tag == "meta":
            named = dict(attrs)
            self.metas.setdefault((named.get("name") or "").lower(), []).append(named.get("content") or "")
        self._in_title = tag in _TITLES

    def handle_data(self, data: str) -> None:
        if self._in_title and not self.title:
            self.title = data


def _file(attributes: Mapping[str, str | None]) -> ListedFile | None:
    """The file that an anchor links to; None if it links to a folder."""
    url, _, fragment = (attributes.get("href") or "").strip().partition("#")
    filename = unquote(url.partition("?")[0].rpartition("/")[2])
    if not filename or "." not in filename.strip("."):
        return None
    yanked = attributes.get("data-yanked", False)
    return ListedFile(
        filename=filename,
        url=url,
        hashes=_hashes(fragment),
        requires_python=find_text(attributes.get("data-requires-python")),
        yanked=False if yanked is False else find_text(yanked) or "",
        core_metadata=_core_metadata(attributes),
        has_sig=(attributes.get("data-gpg-sig") or "").lower() == "true",
        provenance=find_text(attributes.get("data-provenance")),
    )


def _core_metadata(attributes: Mapping[str, str | None]) -> Mapping[str, str] | bool:
    name = next((name for name in _CORE_METADATA if name in attributes), None)
    value = "false" if name is None else (attributes[name] or "").strip()
    return False if value.lower() == "false" else _hashes(value) or True


def _hashes(text: str) -> Mapping[str, str]:
    """The hashes in a fragment such as ``sha256=<hex>``, which may have other parts, joined by ``&``."""
    parts = (part.partition("=") for part in text[:2048].split("&"))
    return find_hashes({name.strip().lower(): value.strip() for name, _, value in parts})


def _resolve(url: str, reference: str) -> str:
    try:
        return resolve_reference(parse_url(url), reference.strip().encode().decode("latin-1")).text
    except ValueError:
        return url
