"""
Reads project pages and lists of projects of upstreams, in HTML and in JSON (PEP 503, 592, 629, 658, 691, 700, 708, 714,
740, 792).
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from html.parser import HTMLParser
from typing import Any, Final, Literal
from urllib.parse import unquote

import msgspec
from attrs import Factory, frozen

from pkgrepo.errors import Invalid
from pkgrepo.outbound.urls import parse_url, resolve_reference
from pkgrepo.untrusted.strict_json import ERRORS, describe

LONGEST_TEXT: Final = 4096  # characters of the reason of a yank, of Requires-Python and of a status
MOST_LOCATIONS: Final = 100  # URLs of PEP 708

LARGEST_HTML: Final = 64 * 1024 * 1024  # bytes of a page
LARGEST_SIZE: Final = 2**53  # bytes of a file; clients read larger numbers wrongly
LARGEST_FILE: Final = 64 * 1024  # bytes of the object of one file; most have less than 1 KiB

# The length of hexadecimal digests by the names of hashlib.
_DIGESTS: Final = {"sha256": 64, "sha512": 128, "sha384": 96, "sha224": 56, "blake2b": 128, "sha1": 40, "md5": 32}
_HEX: Final = re.compile("[0-9a-f]+")
_CONTROLS: Final = re.compile("[\x00-\x1f\x7f]+")
_VERSION: Final = re.compile(r"1(?:\.[0-9]{1,9})?")


_TITLES: Final = ("title", "h1")
_ATTRIBUTES: Final = ("data-core-metadata", "data-dist-info-metadata")
_VERSION_META: Final = "pypi:repository-version"
_CORE_METADATA: Final = ("core-metadata", "data-core-metadata", "dist-info-metadata", "data-dist-info-metadata")
_KNOWN: Final = frozenset(
    {
        *_CORE_METADATA,
        *("filename", "url", "hashes", "requires-python", "size", "upload-time", "yanked", "gpg-sig", "provenance"),
    }
)
_decode = msgspec.json.decode


@frozen
class ListedFile:
    """
    A file as a page lists it; ``url`` may be relative to ``Listing.base``. The rest is as in ``pages.FileEntry``.

    ``upload_time`` is the upstream's text, and ``provenance`` the upstream's URL.
    """

    filename: str
    url: str
    hashes: Mapping[str, str]
    requires_python: str | None = None
    size: int | None = None
    upload_time: str | None = None
    yanked: Literal[False] | str = False
    core_metadata: Mapping[str, str] | bool = False
    has_sig: bool = False
    provenance: str | None = None
    other: Mapping[str, Any] = Factory(dict)


@frozen
class Listing:
    """
    A project's page. ``name`` is None, and ``versions`` empty, if the page does not have them.

    Links are relative to ``base``. ``files`` can be read once.
    """

    name: str | None
    base: str
    files: Iterable[ListedFile]
    versions: Sequence[str] = ()
    status: str = "active"
    reason: str | None = None
    tracks: Sequence[str] = ()
    alternate_locations: Sequence[str] = ()


def check_api_version(text: str) -> None:
    """Check the version of a page (PEP 629). :raises Invalid: its major version is not 1"""
    if not _VERSION.fullmatch(text):
        raise Invalid(f"it has version {text[:40]!a} of the simple index, and 1 is known")


def find_text(value: Any) -> str | None:
    """A text without control characters, which is short and not empty; else None."""
    if not isinstance(value, str) or len(value) > LONGEST_TEXT:
        return None
    return _CONTROLS.sub(" ", value).strip() or None


def find_hashes(given: Mapping[str, Any]) -> dict[str, str]:
    """The known hashes that are well-formed."""
    found: dict[str, str] = {}
    for name, value in given.items():
        text = value.lower() if isinstance(value, str) else ""
        if len(text) == _DIGESTS.get(name) and _HEX.fullmatch(text):
            found[name] = text
    return found


def find_locations(given: Iterable[Any]) -> list[str]:
    """The URLs of other repositories (PEP 708)."""
    urls = [text for text in map(find_text, given) if text is not None and text.startswith(("http://", "https://"))]
    return urls[:MOST_LOCATIONS]


def read_html(source: bytes, url: str) -> Listing:
    """
    The page at a URL.

    :raises Invalid: it is no project page
    """
    page = _parse(source)
    files = [file for file in map(_html_file, page.anchors) if file is not None]
    # Any server that answers 200 for what it does not know sends HTML.
    if not files and _VERSION_META not in page.metas and not page.title.strip().lower().startswith("links for"):
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
    if not names and _VERSION_META not in page.metas:
        raise Invalid("it is no list of projects: it has no links")
    return names


def _parse(source: bytes) -> _HtmlPage:
    if len(source) > LARGEST_HTML:
        raise Invalid(f"it is a page in HTML of more than {LARGEST_HTML} bytes")
    page = _HtmlPage()
    try:
        # Not closed: the parser would search the whole rest again for each construct that has no end.
        page.feed(source.decode("utf-8", "replace"))
    except (AssertionError, ValueError) as error:  # of the parser: a malformed declaration, a number of 5,000 digits
        raise Invalid("its HTML is malformed") from error
    check_api_version((page.metas.get(_VERSION_META) or ["1.0"])[0].strip())
    return page


class _HtmlPage(HTMLParser):
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


def _html_file(attributes: Mapping[str, str | None]) -> ListedFile | None:
    """The file that an anchor links to; None if it links to a folder."""
    url, _, fragment = (attributes.get("href") or "").strip().partition("#")
    filename = unquote(url.partition("?")[0].rpartition("/")[2])
    if not filename or "." not in filename.strip("."):
        return None
    yanked = attributes.get("data-yanked", False)
    return ListedFile(
        filename=filename,
        url=url,
        hashes=_fragment_hashes(fragment),
        requires_python=find_text(attributes.get("data-requires-python")),
        yanked=False if yanked is False else find_text(yanked) or "",
        core_metadata=_html_core_metadata(attributes),
        has_sig=(attributes.get("data-gpg-sig") or "").lower() == "true",
        provenance=find_text(attributes.get("data-provenance")),
    )


def _html_core_metadata(attributes: Mapping[str, str | None]) -> Mapping[str, str] | bool:
    name = next((name for name in _ATTRIBUTES if name in attributes), None)
    value = "false" if name is None else (attributes[name] or "").strip()
    return False if value.lower() == "false" else _fragment_hashes(value) or True


def _fragment_hashes(text: str) -> Mapping[str, str]:
    """The hashes in a fragment such as ``sha256=<hex>``, which may have other parts, joined by ``&``."""
    parts = (part.partition("=") for part in text[:2048].split("&"))
    return find_hashes({name.strip().lower(): value.strip() for name, _, value in parts})


def _resolve(url: str, reference: str) -> str:
    try:
        return resolve_reference(parse_url(url), reference.strip().encode().decode("latin-1")).text
    except ValueError:
        return url


class _JsonPage(msgspec.Struct, rename="kebab"):
    """A page, of which only the outer form is checked."""

    name: str
    files: list[msgspec.Raw]
    meta: Any = None
    versions: Any = None
    project_status: Any = None
    alternate_locations: Any = None


class _Project(msgspec.Struct, gc=False):
    name: str


class _JsonList(msgspec.Struct):
    projects: list[_Project]
    meta: Any = None


def read_json(source: bytes, url: str) -> Listing:
    """
    The page at a URL. Files that cannot be read are left out.

    :raises Invalid: it is no project page
    """
    try:
        page = _decode(source, type=_JsonPage)
    except ERRORS as error:
        raise Invalid(f"it is no page of a project in JSON: {describe(source, error)}") from None
    check_api_version(_api_version(page.meta))
    meta, status = _object(page.meta), _object(page.project_status)
    return Listing(
        name=page.name,
        base=url,
        files=_json_files(page.files),
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
        page = _decode(source, type=_JsonList)
    except ERRORS as error:
        raise Invalid(f"it is no list of projects in JSON: {describe(source, error)}") from None
    check_api_version(_api_version(page.meta))
    return [project.name for project in page.projects]


def _api_version(meta: Any) -> str:
    return str(meta.get("api-version", "1.0")) if isinstance(meta, dict) else "1.0"


def _json_files(raws: list[msgspec.Raw]) -> Iterator[ListedFile]:
    for raw in raws:
        try:
            file = _decode(raw) if len(bytes(raw)) <= LARGEST_FILE else None
        except ERRORS:
            continue
        if isinstance(file, dict) and isinstance(file.get("filename"), str) and isinstance(file.get("url"), str):
            yield _json_file(file)


def _json_file(file: Mapping[str, Any]) -> ListedFile:
    size = file.get("size")
    return ListedFile(
        filename=file["filename"],
        url=file["url"],
        hashes=find_hashes(_object(file.get("hashes"))),
        requires_python=find_text(file.get("requires-python")),
        size=size if type(size) is int and 0 <= size <= LARGEST_SIZE else None,
        upload_time=find_text(file.get("upload-time")),
        yanked=_yanked(file.get("yanked")),
        core_metadata=_json_core_metadata(file),
        has_sig=file.get("gpg-sig") is True,
        provenance=find_text(file.get("provenance")),
        other={key: value for key, value in file.items() if key not in _KNOWN},
    )


def _yanked(value: Any) -> Literal[False] | str:
    """A reason that is too long to pass on still yanks the file."""
    return (find_text(value) or "") if value else False


def _json_core_metadata(file: Mapping[str, Any]) -> Mapping[str, str] | bool:
    value = next((file[key] for key in _CORE_METADATA if key in file), False)
    return find_hashes(value) or True if isinstance(value, dict) else value is True


def _object(value: Any) -> Mapping[str, Any]:
    return value if isinstance(value, dict) else {}


def _list(value: Any) -> list[Any]:
    return value if isinstance(value, list) else []
