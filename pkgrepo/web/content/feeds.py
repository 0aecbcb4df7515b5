"""Badges and Atom feeds, for readmes and feed readers: beside the pages, with the same operations and permissions."""

from __future__ import annotations

import re
from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Any, Final
from urllib.parse import quote
from xml.sax.saxutils import escape, quoteattr

from attrs import frozen

from pkgrepo.errors import AuthenticationRequired, Forbidden, Invalid, NotFound, RepositoryInactive
from pkgrepo.gateway.badges import render_badge
from pkgrepo.gateway.responses.content import choose_encoding, document_response
from pkgrepo.http.responses import Response
from pkgrepo.repositories.publish.splicing import render
from pkgrepo.web.tables import PageTable
from pkgrepo.web.visits import PREFIX, Visit

ENTRIES: Final = 30  # versions in a feed
SVG: Final = "image/svg+xml; charset=utf-8"
ATOM: Final = "application/atom+xml; charset=utf-8"
UNKNOWN: Final = "unknown"
GREY: Final = "9f9f9f"
VARY: Final = (b"Vary", b"Cookie, Authorization, Accept-Encoding")
SHORT: Final = b"public, max-age=300"  # of what everybody may see: sites with badges ask often
PRIVATE: Final = b"private, no-cache"
SEALED: Final = (b"Content-Security-Policy", b"default-src 'none'; style-src 'unsafe-inline'; sandbox")
_NO_XML: Final = re.compile("[^\\t\\n\\r\\x20-\\ud7ff\\ue000-\\ufffd\\U00010000-\\U0010ffff]")  # XML 1.0, section 2.2

badges = PageTable()
feeds = PageTable()


@frozen
class Entry:
    """A version in a feed."""

    package: str
    version: str
    at: datetime
    author: str


@badges.get("/<storage>/<name>/<path:file>")
async def show_badge(visit: Visit) -> Response:
    """
    A picture of the latest version of a package, with the texts ``label`` and ``color`` of the query.

    One of a package that is absent, or that the caller may not see, says that it is unknown, with 404 in both cases.
    """
    label, color = visit.query("label"), visit.query("color") or None
    try:
        visit.at["package"] = _stem(visit, ".svg")
        repository = await visit.repository()
        latest = (await visit.api("GET", "/package/<repository>/<package>")).latest
        if latest and await _is_refused(visit, latest):
            latest = await _highest_served(visit)
    except (AuthenticationRequired, Forbidden, Invalid, NotFound, RepositoryInactive):
        return _document(visit, SVG, render_badge(label or "package", UNKNOWN, GREY), PRIVATE, status=404)
    value = f"v{latest}" if latest and latest[0].isdigit() else latest or "no version"
    text = render_badge(label or repository.format, value, color)
    return _document(visit, SVG, text, _caching(visit, repository))


async def _highest_served(visit: Visit) -> str:
    """The highest version that no rule refuses to clients, of the first ``ENTRIES``; empty if there is none."""
    found = await visit.api("GET", "/package/<repository>/<package>/versions", query={"limit": ENTRIES})
    for each in found.items:
        if not await _is_refused(visit, each.version):
            return str(each.version)
    return ""


async def _is_refused(visit: Visit, version: str, **package: str) -> bool:
    """Whether a rule refuses a version to clients, of the package of the document or of another one."""
    place = {"version": version, **package}
    found = await visit.api("GET", "/package/<repository>/<package>/versions/<version>", place, query={"files": 0})
    return found.refused is not None


async def _shown(visit: Visit, entries: Sequence[Entry]) -> list[Entry]:
    """The entries of versions that no rule refuses to clients."""
    found = []
    for each in entries:
        try:
            if not await _is_refused(visit, each.version, package=each.package):
                found.append(each)
        except NotFound:  # it has just been removed
            continue
    return found


@feeds.get("/<storage>/<file>")
async def show_repository_feed(visit: Visit) -> Response:
    """The versions that were published in a repository last."""
    visit.at["repository"] = f"{visit.at['storage']}/{_stem(visit, '.atom')}"
    repository = await visit.repository()
    found = await visit.api("GET", "/repository/<repository>/releases", query={"limit": ENTRIES})
    entries = [Entry(each.package, each.version, each.published_at, each.publisher) for each in found]
    return _feed(visit, repository, visit.at["repository"], "", await _shown(visit, entries))


@feeds.get("/<storage>/<name>/<path:file>")
async def show_package_feed(visit: Visit) -> Response:
    """The versions of a package that were published last."""
    package = visit.at["package"] = _stem(visit, ".atom")
    repository = await visit.repository()
    query: dict[str, str | int] = {"limit": ENTRIES, "sort": "-published_at"}
    found = await visit.api("GET", "/package/<repository>/<package>/versions", query=query)
    entries = [Entry(package, each.version, each.published_at, each.publisher) for each in found.items]
    entries, title = await _shown(visit, entries), f"{package} in {visit.at['repository']}"
    return _feed(visit, repository, title, f"/packages/{quote(package, safe='')}", entries)


def _stem(visit: Visit, ending: str) -> str:
    """The name of the file without its ending. :raises NotFound: it has another one"""
    stem, dot, _ = visit.at["file"].rpartition(ending)
    if not dot or not stem:
        raise NotFound("feed", visit.at["file"])
    return stem


def _feed(visit: Visit, repository: Any, title: str, place: str, entries: Sequence[Entry]) -> Response:
    """A feed (RFC 4287); ``place`` is its page below that of the repository."""
    home = f"{visit.base_url}{PREFIX}/repositories/{quote(repository.storage_name)}/{quote(repository.name)}"
    updated = max((each.at for each in entries), default=repository.created_at)
    parts = [
        '<?xml version="1.0" encoding="utf-8"?>\n<feed xmlns="http://www.w3.org/2005/Atom">\n'
        f"<id>{escape(visit.base_url + visit.path)}</id>\n<title>{_text(title)}</title>\n"
        f"<updated>{_time(updated)}</updated>\n<author><name>{_text(repository.storage_name)}</name></author>\n"
        f'<link rel="self" type="application/atom+xml" href={quoteattr(visit.base_url + visit.path)}/>\n'
        f'<link rel="alternate" type="text/html" href={quoteattr(home + place)}/>\n'
    ]
    for each in entries:
        page = f"{home}/packages/{quote(each.package, safe='')}/versions/{quote(each.version, safe='')}"
        author = f"<author><name>{_text(each.author)}</name></author>" if each.author else ""
        parts.append(
            f"<entry><id>{escape(page)}</id><title>{_text(f'{each.package} {each.version}')}</title>"
            f"<updated>{_time(each.at)}</updated>{author}"
            f'<link rel="alternate" type="text/html" href={quoteattr(page)}/></entry>\n'
        )
    return _document(visit, ATOM, "".join((*parts, "</feed>\n")), _caching(visit, repository))


def _text(text: str) -> str:
    """A text as content of an element; characters that XML cannot have are replaced."""
    return escape(_NO_XML.sub("\ufffd", text))


def _time(at: datetime) -> str:
    return at.astimezone(UTC).isoformat(timespec="seconds").replace("+00:00", "Z")


def _caching(visit: Visit, repository: Any) -> bytes:
    # of a virtual repository known callers may see members that others do not
    for_everybody = repository.visibility == "public" and (repository.type != "Virtual" or visit.identity.anonymous)
    return SHORT if for_everybody else PRIVATE


def _document(visit: Visit, kind: str, text: str, caching: bytes, *, status: int = 200) -> Response:
    document = render(kind, text.encode("utf-8", "replace"), 0)
    headers = ((b"Cache-Control", caching), VARY, SEALED)
    answer = document_response(document, choose_encoding(visit.request.header(b"accept-encoding")), headers)
    return answer if status == 200 else Response(status, answer.body, answer.content_type, answer.headers)
