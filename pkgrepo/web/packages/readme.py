"""
Readmes as HTML that cannot do anything: Markdown, reStructuredText or plain text, cleaned by an allow-list.

Images of other hosts are left out, since they would tell their hosts who reads. Rendering runs in a thread; what was
rendered is kept in memory.
"""

from __future__ import annotations

import hashlib
from typing import Final

import nh3
from markdown_it import MarkdownIt
from markupsafe import Markup, escape
from pygments import highlight
from pygments.formatters import HtmlFormatter
from pygments.lexers import get_lexer_by_name
from pygments.util import ClassNotFound
from readme_renderer import rst

from pkgrepo.concurrency.single_flight import SingleFlight
from pkgrepo.http.response_cache import ResponseCache
from pkgrepo.storage.pools import Pools

LONGEST_RENDERED: Final = 128 * 1024  # characters; longer texts are shown as they are: docutils needs 1 s for as many
LONGEST_SHOWN: Final = 1024 * 1024  # characters
CACHE_SIZE: Final = 16 * 1024 * 1024  # bytes

_TAGS: Final = """
    a abbr b blockquote br caption cite code dd del details div dl dt em h1 h2 h3 h4 h5 h6 hr i img ins kbd li ol p pre
    q s samp section small span strong sub summary sup table tbody td tfoot th thead tr tt u ul var
"""
_ATTRIBUTES: Final[dict[str, set[str]]] = {
    "a": {"href", "title"},
    "img": {"src", "alt", "title", "width", "height"},
    "td": {"align", "colspan", "rowspan"},
    "th": {"align", "colspan", "rowspan"},
    "ol": {"start"},
    "span": {"class"},
    "*": {"id"},
}
_DATA_IMAGES: Final = ("data:image/png;", "data:image/jpeg;", "data:image/gif;", "data:image/webp;")


class Readmes:
    """Renders readmes, each once for all who wait for it."""

    def __init__(self, pools: Pools) -> None:
        self._pools = pools
        self._kept: ResponseCache[Markup] = ResponseCache(CACHE_SIZE)
        self._flight: SingleFlight[bytes, Markup] = SingleFlight()

    async def render(self, text: str, media_type: str) -> Markup:
        """The HTML of a text; ``media_type`` is text/markdown, text/x-rst or text/plain."""
        key = hashlib.blake2b(f"{media_type}\0{text}".encode("utf-8", "replace"), digest_size=16).digest()
        found = self._kept.get(key)
        if found is not None:
            return found
        return await self._flight.run(key, lambda: self._render(key, text, media_type))

    async def _render(self, key: bytes, text: str, media_type: str) -> Markup:
        html = await self._pools.cpu(render_readme, text, media_type)
        self._kept.put(key, html, len(html))
        return html


def render_readme(text: str, media_type: str) -> Markup:
    """The HTML of a readme. Blocks: up to a second for the longest one that is rendered."""
    html: str | None = None
    if len(text) <= LONGEST_RENDERED:
        if media_type == "text/markdown":
            html = _MARKDOWN.render(text)
        elif media_type == "text/x-rst":
            html = rst.render(text)
    if html is None:
        return Markup("<pre>{}</pre>").format(text[:LONGEST_SHOWN])
    return Markup(  # noqa: S704 - cleaned by the allow-list
        nh3.clean(
            html,
            tags=set(_TAGS.split()),
            attributes=_ATTRIBUTES,
            attribute_filter=_filter,
            url_schemes={"http", "https", "mailto", "data"},
            link_rel="nofollow noopener noreferrer",
            id_prefix="readme-",
        )
    )


def _filter(tag: str, attribute: str, value: str) -> str | None:
    """Drop images of other hosts, and links to data; keep only the classes of highlighted code."""
    if tag == "img" and attribute == "src":
        return value if value.startswith(_DATA_IMAGES) else None
    if attribute == "href":
        if value.startswith("#"):
            return f"#readme-{value[1:]}"
        return value if value.lower().startswith(("http://", "https://", "mailto:")) else None
    if attribute == "class":
        return value if len(value) <= 3 and value.isalnum() else None
    return value


def _highlight(code: str, language: str, _attributes: str) -> str:
    try:
        lexer = get_lexer_by_name(language)
    except ClassNotFound:
        return str(escape(code))
    marked: str = highlight(code, lexer, HtmlFormatter(nowrap=True))
    return marked


_MARKDOWN: Final = MarkdownIt("commonmark", {"html": True, "highlight": _highlight}).enable(["table", "strikethrough"])
