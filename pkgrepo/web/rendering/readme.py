"""
Readmes, and the pages of repositories, as HTML that cannot do anything.

They are Markdown, reStructuredText or plain text, and are cleaned by an allow-list. Images become links or texts, since
loading them would tell their hosts who reads. Rendering runs in a thread; what was rendered is kept in memory.

The libraries for it take 50 ms to import, and 8 MB: they are imported when the first readme is rendered.
"""

from __future__ import annotations

import hashlib
import html
import re
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Final

from markupsafe import Markup, escape

from pkgrepo.concurrency.lru import SizedCache
from pkgrepo.concurrency.pools import Pools
from pkgrepo.concurrency.single_flight import SingleFlight

if TYPE_CHECKING:
    from markdown_it import MarkdownIt
    from markdown_it.token import Token

LONGEST_RENDERED: Final = 64 * 1024  # characters; longer texts are shown as they are: the worst ones need 1 s
LONGEST_HIGHLIGHTED: Final = 2048  # characters of a block of code; regular expressions of lexers may be quadratic
MOST_HIGHLIGHTED: Final = 16 * 1024  # characters of all blocks together
LONGEST_SHOWN: Final = 1024 * 1024  # characters
CACHE_SIZE: Final = 16 * 1024 * 1024  # bytes

_TAGS: Final = """
    a abbr b blockquote br caption cite code dd del details div dl dt em h1 h2 h3 h4 h5 h6 hr i img ins kbd li ol p pre
    q s samp section small span strong sub summary sup table tbody td tfoot th thead tr tt u ul var
"""
_ATTRIBUTES: Final[dict[str, set[str]]] = {
    "a": {"href", "title"},
    "img": {"alt"},
    "td": {"align", "colspan", "rowspan"},
    "th": {"align", "colspan", "rowspan"},
    "ol": {"start"},
    "span": {"class"},
    "*": {"id"},
}
_FOCUSABLE: Final = {"tabindex": "0"}  # what scrolls has to be reached by keys
_IMAGE: Final = re.compile(r'<img(?: alt="(?P<text>[^"]*)")?>')  # as it is cleaned
# Languages whose lexers were tried with hostile texts; a lexer holds the interpreter while it matches.
_LANGUAGES: Final = frozenset(
    [
        *("bash", "console", "css", "diff", "docker", "go", "groovy", "ini", "java", "javascript", "js"),
        *("json", "kotlin", "python", "py", "ruby", "rb", "rust", "scala", "sh", "shell", "sql", "toml", "ts"),
        *("typescript", "xml", "yaml", "yml"),
    ]
)
_TASK: Final = re.compile(r"(<li>\n?(?:<p>)?)\[([ xX])\] ")  # GitHub Flavored Markdown, section 5.3
_INDENTED: Final = re.compile(r"^(?:  |\t|[-=~*#+]{3})|\S {3}", re.MULTILINE)
_BLANK_LINES: Final = re.compile(r"\n\s*\n")
_ENDINGS: Final = {
    "cfg": "ini",
    "cjs": "js",
    "gemspec": "ruby",
    "gradle": "groovy",
    "kt": "kotlin",
    "mjs": "js",
    "pom": "xml",
    "pyi": "python",
    "rs": "rust",
}
_DOCUTILS: Final = {
    "cloak_email_addresses": False,
    "doctitle_xform": True,
    "file_insertion_enabled": False,
    "halt_level": 3,  # an error: the text is shown as it is
    "initial_header_level": 2,
    "raw_enabled": False,
    "report_level": 5,
    "sectnum_xform": False,
    "strip_comments": True,
    "syntax_highlight": "none",
    "traceback": True,
    "warning_stream": False,
}


class Readmes:
    """Renders readmes, each once for all who wait for it."""

    def __init__(self, pools: Pools) -> None:
        self._pools = pools
        self._kept: SizedCache[Markup] = SizedCache(CACHE_SIZE)
        self._flight: SingleFlight[bytes, Markup] = SingleFlight()

    async def render(self, text: str, media_type: str) -> Markup:
        """The HTML of a text; ``media_type`` is text/markdown, text/x-rst or text/plain."""
        key = hashlib.blake2b(f"{media_type}\0{text}".encode("utf-8", "replace"), digest_size=16).digest()
        found = self._kept.get(key)
        if found is not None:
            return found
        return await self._flight.run(key, lambda: self._render(key, text, media_type))

    async def lines(self, text: str, filename: str) -> list[Markup]:
        """The lines of a file as HTML; see L{render_lines}."""
        return await self._pools.cpu(render_lines, text, filename)

    async def _render(self, key: bytes, text: str, media_type: str) -> Markup:
        rendered = await self._pools.cpu(render_readme, text, media_type)
        self._kept.put(key, rendered, len(rendered))
        return rendered


def render_readme(text: str, media_type: str) -> Markup:
    """The HTML of a readme. Blocks: up to a second for the longest one that is rendered."""
    rendered = _render(text, media_type) if len(text) <= LONGEST_RENDERED else None
    if rendered is None:
        return _plain(text[:LONGEST_SHOWN], prose=media_type == "text/plain")
    import nh3  # noqa: PLC0415 - see above

    cleaned = nh3.clean(
        rendered,
        tags=set(_TAGS.split()),
        attributes=_ATTRIBUTES,
        attribute_filter=_filter,
        set_tag_attribute_values={"pre": _FOCUSABLE, "table": _FOCUSABLE},
        url_schemes={"http", "https", "mailto"},
        link_rel="nofollow noopener noreferrer",
        id_prefix="readme-",
    )
    return Markup(_IMAGE.sub(_image_text, cleaned))  # noqa: S704 - cleaned by the allow-list


def _plain(text: str, *, prose: bool) -> Markup:
    """A text as it is written; if it may be ``prose``, and is not long or laid out by blanks, as paragraphs."""
    if not prose or len(text) > LONGEST_RENDERED or _INDENTED.search(text):
        return Markup('<pre tabindex="0">{}</pre>').format(text)
    parts = [each for each in _BLANK_LINES.split(text) if each.strip()]
    return Markup("").join(Markup("<p>{}</p>").format(each.strip()) for each in parts)


def render_lines(text: str, filename: str) -> list[Markup]:
    """The lines of a text as HTML, with the words of its language marked if it is one that the limits allow."""
    text = text.removesuffix("\n")
    language = _language(filename) if len(text) <= MOST_HIGHLIGHTED else ""
    if not language:
        return [escape(line) for line in text.split("\n")]
    # Lexers take line ends off the text and add one; a span never goes on in the next line.
    marked = _mark(text, language, stripnl=False, ensurenl=False).removesuffix("\n")
    return [Markup(line) for line in marked.split("\n")]  # noqa: S704 - made by Pygments, which escapes


def _mark(code: str, language: str, **options: bool) -> str:
    """The HTML of code; ``options`` are those of the lexer."""
    from pygments import highlight  # noqa: PLC0415 - see above
    from pygments.formatters import HtmlFormatter  # noqa: PLC0415
    from pygments.lexers import get_lexer_by_name  # noqa: PLC0415

    marked: str = highlight(code, get_lexer_by_name(language, **options), HtmlFormatter(nowrap=True))
    return marked


def _language(filename: str) -> str:
    """The language of a file by the ending of its name; empty for those whose lexers are not used."""
    ending = filename.rpartition("/")[2].lower().rpartition(".")[2]
    language = _ENDINGS.get(ending, ending)
    return language if language in _LANGUAGES else ""


def _render(text: str, media_type: str) -> str | None:
    """The HTML of a text before it is cleaned; None if it is plain, or cannot be rendered."""
    try:
        match media_type:
            case "text/markdown":
                return _TASK.sub(_box, str(_markdown().render(text)))
            case "text/x-rst":
                return _structured_text(text)
            case _:
                return None
    except RecursionError:  # nested too deeply
        return None


def _structured_text(text: str) -> str | None:
    from docutils.core import publish_parts  # noqa: PLC0415 - see above
    from docutils.utils import SystemMessage  # noqa: PLC0415

    try:
        return str(publish_parts(text, writer="html5", settings_overrides=dict(_DOCUTILS))["html_body"])
    except SystemMessage:  # it is wrong
        return None


def _markdown() -> MarkdownIt:
    from markdown_it import MarkdownIt  # noqa: PLC0415 - see above

    options = {"html": True, "highlight": _Highlighter(), "maxNesting": 20}
    markdown = MarkdownIt("commonmark", options).enable(["table", "strikethrough"])
    markdown.add_render_rule("image", _link_to_image)
    return markdown


def _box(task: re.Match[str]) -> str:
    return f'{task[1]}<span class="tsk">{"☐" if task[2] == " " else "☑"}</span> '


def _link_to_image(_renderer: Any, tokens: Sequence[Token], index: int, _options: Any, _environment: Any) -> str:
    source, text = str(tokens[index].attrs.get("src", "")), str(escape(tokens[index].content or "image"))
    if sum(each.nesting for each in tokens[:index] if each.type in ("link_open", "link_close")):
        return text  # the link around it leads to where the author wants people to go
    return f'<a href="{escape(source)}">{text}</a>'


def _image_text(image: re.Match[str]) -> str:
    return str(escape(html.unescape(image["text"] or "") or "image"))


def _filter(_tag: str, attribute: str, value: str) -> str | None:
    """Drop links to anything but pages; keep only the classes of highlighted code."""
    if attribute == "href":
        if value.startswith("#"):
            return f"#readme-{value[1:]}"
        return value if value.lower().startswith(("http://", "https://", "mailto:")) else None
    if attribute == "class":
        return value if len(value) <= 3 and value.isalnum() else None
    return value


class _Highlighter:
    """Marks the words of blocks of code; those that exceed the limits stay as they are."""

    def __init__(self) -> None:
        self._rest = MOST_HIGHLIGHTED

    def __call__(self, code: str, language: str, _attributes: str) -> str:
        if language not in _LANGUAGES or len(code) > min(LONGEST_HIGHLIGHTED, self._rest):
            return str(escape(code))
        self._rest -= len(code)
        return _mark(code, language)
