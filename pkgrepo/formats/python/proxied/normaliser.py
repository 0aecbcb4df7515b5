"""
The normalisers of project pages and of the list of projects.

Of a page of an upstream they make its top, and an entry with fragments for each file.

What a client would take for an address is replaced by one of ours. Files whose names are not those of wheels or source
distributions, or that have no usable address, are left out. The METADATA of each wheel is offered, also if the upstream
does not offer it. This module runs in a child process and imports little.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime
from typing import Final

import msgspec

from pkgrepo.errors import Invalid
from pkgrepo.formats.python.index.pages import (
    FIRST_SEEN,
    HTML_PAGE,
    JSON_PAGE,
    NAME_LIST,
    FileEntry,
    date_json,
    file_fragment_html,
    file_fragment_json,
    quote,
)
from pkgrepo.formats.python.names import (
    METADATA,
    PROVENANCE,
    PROVENANCE_TYPE,
    SIGNATURE,
    FileName,
    collapse,
    file_path,
    is_valid_name,
    parse_filename,
)
from pkgrepo.formats.python.proxied.listing import (
    ListedFile,
    Listing,
    read_html,
    read_html_list,
    read_json,
    read_json_list,
)
from pkgrepo.formats.python.versions import find_version, parse_version
from pkgrepo.outbound.urls import MOST_CHARACTERS, parse_url, resolve_reference
from pkgrepo.proxy.parts.values import Context, Entry, FileSource, Normalised
from pkgrepo.repositories.clock import from_ms
from pkgrepo.untrusted.text import quoted

NORMALISER: Final = f"{__name__}:normalise"
LIST_NORMALISER: Final = f"{__name__}:normalise_list"

NAMES: Final = 256  # of projects in one fragment

# An absolute URL that is canonical if its beginning is: no dot segments, no user, no query, no fragment.
_PLAIN: Final = re.compile(r"(https?://[^/?#@\\\s]+)((?:/(?!\.\.?(?:/|$))[A-Za-z0-9._~!$&'()*+,;=:@%-]*)+)")
_MOST: Final = 64  # beginnings in memory; pages have one or two
_BOM: Final = b"\xef\xbb\xbf"
_FILE_TYPE: Final = "application/octet-stream"


def normalise(source: bytes, context: Context) -> Normalised:
    """
    The parts of a project's page; see L{pkgrepo.proxy.parts.values.NormaliserFunction}.

    :raises Invalid: it is no page of this project
    """
    text = source.removeprefix(_BOM)
    page = read_json(text, context.url) if _is_json(text) else read_html(text, context.url)
    if page.name is not None and not (is_valid_name(page.name) and collapse(page.name) == context.name):
        raise Invalid(f"it is not the page of {quoted(context.name)} but of {quoted(page.name)}")
    top = {
        "status": page.status,
        "reason": page.reason,
        "tracks": list(page.tracks),
        "alternate_locations": list(page.alternate_locations),
    }
    return Normalised(top=top, entries=_entries(page, context.name), dated=_dated)


def normalise_list(source: bytes, context: Context) -> Normalised:  # noqa: ARG001 - of all normalisers
    """
    The names of all projects: entries of several names each, in order. What is no name is left out.

    :raises Invalid: it is no list of projects
    """
    text = source.removeprefix(_BOM)
    names = read_json_list(text) if _is_json(text) else read_html_list(text)
    known = {collapse(name): name for name in names if is_valid_name(name)}
    return Normalised(top={}, entries=_name_entries(sorted(known.items())))


def _is_json(text: bytes) -> bool:
    """What a text is. Content types are not asked: some servers and middleboxes send one for everything."""
    return text[:1024].lstrip()[:1] == b"{"


def _name_entries(names: Sequence[tuple[str, str]]) -> Iterator[Entry]:
    for at in range(0, len(names), NAMES):
        some = names[at : at + NAMES]
        body = msgspec.json.encode(some)
        yield Entry(
            sort=b"",
            key=some[0][0],
            version="",
            published_ms=0,
            first_seen=False,
            fragments={NAME_LIST: body},
            files=[],
        )


def _entries(page: Listing, project: str) -> Iterator[Entry]:
    """
    The entries of a page, which is of one project unless it has files of others only.

    :raises Invalid: it has
    """
    if page.status == "quarantined":  # PEP 792: nothing may be installed
        return
    # PEP 440 allows white space around a version, and says that it is removed.
    listed = [text.strip() for text in reversed(page.versions) if find_version(text) is not None]
    texts = {parse_version(text)[0]: text for text in listed}
    links = Links(page.base)
    found, foreign = False, ""
    for file in page.files:
        try:
            name = parse_filename(file.filename, project=project)
        except Invalid:
            if not found and not foreign and _is_distribution(file.filename):
                foreign = file.filename
            continue
        url = links.find(file.url)
        if url is not None:
            found = True
            text = texts.setdefault(name.version_key, name.version_text)
            yield _entry(file, name, text, url, links)
    if foreign and not found:
        raise Invalid(f"it is not the page of {quoted(project)}: it lists {quoted(foreign)}")


def _is_distribution(filename: str) -> bool:
    try:
        parse_filename(filename)
    except Invalid:
        return False
    return True


def _entry(file: ListedFile, name: FileName, version_text: str, url: str, links: Links) -> Entry:
    # The path has the version as the file's name has it, whatever other files the page lists.
    path = file_path(name.project_key, name.version_text, name.filename)
    our_url = "../../" + "/".join(quote(part) for part in path.split("/"))
    time = _time(file.upload_time)
    sources = [_source(path, url, file.hashes, file.size)]
    core_metadata = file.core_metadata
    if core_metadata is not False:
        digests = {} if core_metadata is True else core_metadata
        sources.append(_source(path + METADATA, _with_suffix(url, METADATA), digests))
    elif name.kind == "bdist_wheel":  # it is read out of the wheel
        core_metadata = True
        sources.append(_source(path + METADATA, url, {}))
    if file.has_sig:
        sources.append(_source(path + SIGNATURE, _with_suffix(url, SIGNATURE), {}))
    provenance = None if file.provenance is None else links.find(file.provenance)
    if provenance is not None:
        sources.append(_source(path + PROVENANCE, provenance, {}, media_type=PROVENANCE_TYPE))
    entry = FileEntry(
        filename=name.filename,
        url=our_url,
        hashes=file.hashes,
        requires_python=file.requires_python,
        size=file.size,
        upload_time=time,
        yanked=file.yanked,
        core_metadata=core_metadata,
        has_sig=file.has_sig,
        provenance=None if provenance is None else our_url + PROVENANCE,
        other=file.other,
    )
    return Entry(
        sort=name.version_sort,
        key=name.filename,
        version=version_text,
        published_ms=None if time is None else round(time.timestamp() * 1000),
        first_seen=time is not None and file.other.get(FIRST_SEEN) is True,
        fragments={JSON_PAGE: file_fragment_json(entry), HTML_PAGE: file_fragment_html(entry)},
        files=sources,
    )


def _dated(entry: Entry) -> Entry:
    if entry.published_ms is None:
        return entry
    listed = date_json(entry.fragments[JSON_PAGE], from_ms(entry.published_ms), first_seen=entry.first_seen)
    return msgspec.structs.replace(entry, fragments={**entry.fragments, JSON_PAGE: listed})


def _source(
    path: str, url: str, digests: Mapping[str, str], size: int | None = None, *, media_type: str = _FILE_TYPE
) -> FileSource:
    return FileSource(path=path, url=url, size=size, digests=dict(digests), media_type=media_type, meta={})


def _with_suffix(url: str, suffix: str) -> str:
    """The URL of a companion: the suffix belongs to the path (PEP 503, PEP 658)."""
    path, question, query = url.partition("?")
    return f"{path}{suffix}{question}{query}"


def _time(text: str | None) -> datetime | None:
    """A time (PEP 700), aware; None if the text is no time."""
    try:
        time = None if text is None else datetime.fromisoformat(text)
        if time is None or time.year < 1970:
            return None
        return time.replace(tzinfo=UTC) if time.tzinfo is None else time.astimezone(UTC)
    except (ValueError, OverflowError):
        return None


class Links:
    """Resolves the links of a page with this base URL."""

    def __init__(self, base: str) -> None:
        self._base = parse_url(base)
        self._beginnings: dict[str, str | None] = {}

    def find(self, reference: str) -> str | None:
        """The absolute URL of a link; None if it has none that can be fetched."""
        plain = _PLAIN.fullmatch(reference) if len(reference) <= MOST_CHARACTERS else None
        if plain is not None:
            beginning = self._find_beginning(plain[1])
            return None if beginning is None else beginning + plain[2]
        try:
            return resolve_reference(self._base, reference.strip().encode().decode("latin-1")).text
        except ValueError:
            return None

    def _find_beginning(self, text: str) -> str | None:
        """Scheme, host and port of a URL in their canonical form."""
        if text not in self._beginnings:
            if len(self._beginnings) >= _MOST:
                self._beginnings.clear()
            try:
                self._beginnings[text] = parse_url(text).text.removesuffix("/")
            except ValueError:
                self._beginnings[text] = None
        return self._beginnings[text]
