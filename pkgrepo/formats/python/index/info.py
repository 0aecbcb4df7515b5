"""The description of a repository at its root, as JSON or HTML."""

from __future__ import annotations

from datetime import datetime
from html import escape

import msgspec
from attrs import frozen

from pkgrepo.gateway.answers.content import document_cache_control
from pkgrepo.http.answering.negotiation import best_media_type, names_media_type
from pkgrepo.http.answers import Answer, Fields, json_answer
from pkgrepo.interfaces import Reader
from pkgrepo.model import Repository
from pkgrepo.storage.catalog.packages.events import last_activity
from pkgrepo.storage.catalog.usage import downloads

HTML = b"text/html"
JSON = b"application/json"
ALL_DAYS = (0, 10**6)  # since 1970
POLICY = b"default-src 'none'; style-src 'unsafe-inline'; frame-ancestors 'none'; base-uri 'none'"

_PAGE = """<!DOCTYPE html>
<html lang="en"><head><meta charset="utf-8"><title>{title}</title></head><body>
<h1>{title}</h1>
<p>{description}</p>
<p>{packages} packages, downloaded {downloads} times. <a href="{simple}">Simple index</a></p>
<pre>pip install --index-url {simple} PACKAGE</pre>
</body></html>
"""


@frozen
class Figures:
    """The number of downloads, and the time of the last change of content or settings (aware UTC)."""

    downloaded: int
    changed_at: datetime


def read_figures(reader: Reader, repository: Repository) -> Figures:
    """Read the figures of a repository: a row for each file and day, so this belongs in a reader thread."""
    counted = sum(count for _, count in downloads.downloads_by_day(reader, repository.id, *ALL_DAYS))
    last = last_activity(reader, repository.id)
    return Figures(counted, repository.updated_at if last is None else max(last, repository.updated_at))


def info_answer(accept: bytes | None, repository: Repository, figures: Figures, address: str) -> Answer:
    """
    The description: HTML if Accept names and prefers it, as browsers do, else JSON.

    ``address`` is the repository's URL without a trailing slash.
    """
    simple = f"{address}/simple/"
    headers: Fields = ((b"Cache-Control", document_cache_control(repository)), (b"Vary", b"Accept"))
    if names_media_type(accept, HTML) and best_media_type(accept, (JSON, HTML)) == HTML:
        page = _PAGE.format(
            title=escape(repository.path),
            description=escape(repository.description),
            packages=repository.package_count,
            downloads=figures.downloaded,
            simple=escape(simple),
        )
        safe: Fields = ((b"Content-Security-Policy", POLICY),)
        return Answer(body=page.encode(), content_type=b"text/html; charset=utf-8", headers=(*headers, *safe))
    value = {
        "repository": repository.path,
        "title": repository.name,
        "description": repository.description,
        "packages_count": repository.package_count,
        "downloads_count": figures.downloaded,
        "last_updated": msgspec.to_builtins(figures.changed_at),
        "simple": simple,
    }
    return json_answer(value, headers=headers)
