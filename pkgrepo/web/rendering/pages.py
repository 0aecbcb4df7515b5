"""
Renders templates to responses, with the headers that keep package content from running in pages.

The style sheet and the script have addresses that change with their content.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cached_property
from importlib.resources import files
from typing import TYPE_CHECKING, Any, Final

from markupsafe import Markup, escape

from pkgrepo import __version__
from pkgrepo.archives.listing import LONGEST_TEXT, is_archive
from pkgrepo.errors import NotFound
from pkgrepo.gateway.callers.browsers import chosen_language
from pkgrepo.gateway.format import Look
from pkgrepo.gateway.responses.content import choose_encoding, document_response
from pkgrepo.http.request import Request
from pkgrepo.http.responses import NO_STORE, Fields, Response
from pkgrepo.model import Document
from pkgrepo.repositories.publish.splicing import render
from pkgrepo.web.rendering.filters import bars, share, spark
from pkgrepo.web.rendering.languages import Language, choose_language, load_languages

if TYPE_CHECKING:
    from jinja2 import BaseLoader, Environment

FOREVER: Final = ((b"Cache-Control", b"public, max-age=31536000, immutable"), (b"Vary", b"Accept-Encoding"))
_TYPES: Final = {
    "css": "text/css; charset=utf-8",
    "js": "text/javascript; charset=utf-8",
    "svg": "image/svg+xml",
}
_SCRIPT_TEXT: Final = re.compile(r"\btranslated\(\"([^\"\\]+)\"")
ICONS: Final = "icons.svg"
STYLE: Final = "style.css"
_ASKING: Final = re.compile(r'(<form\b[^>]*\bdata-confirm="([^"]*)"[^>]*>)')  # see WebApp._form
HTML: Final = "text/html; charset=utf-8"
POLICY: Final = (
    b"default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self';"
    b" frame-ancestors 'none'; base-uri 'none'; form-action 'self'"
)


class Assets:
    """All files of the folder ``static``, in memory; icons and colours of formats are there by names, as ``f-npm``."""

    def __init__(self, looks: Sequence[tuple[str, Look]] = ()) -> None:
        self._addresses: dict[str, str] = {}
        self._documents: dict[str, Document] = {}
        for name, read in _read():
            data = _with_icons(read, looks) if name == ICONS else _with_tones(read, looks) if name == STYLE else read
            stem, _, kind = name.rpartition(".")
            addressed = f"{stem}-{hashlib.sha256(data).hexdigest()[:12]}.{kind}"
            self._addresses[name] = f"/ui/static/{addressed}"
            self._documents[addressed] = render(_TYPES[kind], data, 0)

    @cached_property
    def script_texts(self) -> list[str]:
        """What the script says, in English."""
        script = next(each for name, each in self._documents.items() if name.endswith(".js"))
        return list(dict.fromkeys(_SCRIPT_TEXT.findall(script.body.decode())))

    def address(self, name: str) -> str:
        """The path of a file on the server, by its name in the folder."""
        return self._addresses[name]

    def answer(self, request: Request, addressed: str) -> Response:
        """The file with this name and hash. :raises NotFound: it does not exist"""
        document = self._documents.get(addressed)
        if document is None:
            raise NotFound("file", addressed)
        return document_response(document, choose_encoding(request.header(b"accept-encoding")), FOREVER)


def _read() -> Iterator[tuple[str, bytes]]:
    for each in files("pkgrepo.web").joinpath("static").iterdir():
        if each.name.rpartition(".")[2] in _TYPES:
            yield each.name, each.read_bytes()


def _with_icons(icons: bytes, looks: Sequence[tuple[str, Look]]) -> bytes:
    made = "".join(f'<symbol id="f-{name}" viewBox="0 0 24 24">{look.icon}</symbol>\n' for name, look in looks)
    return icons.replace(b"</svg>", made.encode() + b"</svg>")


def _with_tones(style: bytes, looks: Sequence[tuple[str, Look]]) -> bytes:
    light, dark = (
        "".join(f".f-{name} {{ --tone: {tone} }}\n" for name, tone in tones if tone)
        for tones in ([(name, look.light) for name, look in looks], [(name, look.dark) for name, look in looks])
    )
    return style + f"{light}@media (prefers-color-scheme: dark) {{\n{dark}}}\n".encode()


def _read_templates() -> Iterator[tuple[str, str]]:
    """The names, as templates use them, and the texts of all templates."""
    folders = [("", files("pkgrepo.web").joinpath("templates"))]
    for prefix, folder in folders:
        for each in folder.iterdir():
            if each.is_dir():
                folders.append((f"{prefix}{each.name}/", each))
            else:
                yield f"{prefix}{each.name}", each.read_text("utf-8")


SECURITY: Final[Fields] = (
    (b"Content-Security-Policy", POLICY),
    # With no-referrer browsers send "Origin: null" with forms (Fetch standard, section 3.2).
    (b"Referrer-Policy", b"same-origin"),
    (b"Cross-Origin-Opener-Policy", b"same-origin"),
    (b"Vary", b"Cookie, Authorization, Accept-Language, Accept-Encoding"),
)


_BUTTON: Final = Markup(
    '<button class="link" name="language" value="{code}" lang="{code}"{current} translate="no">{name}</button>'
)


def _button(each: Language, shown: Language) -> Markup:
    """The button that chooses a language, on a page in one."""
    return _BUTTON.format(
        code=each.code, name=each.name, current=Markup(' aria-current="true"') if each is shown else ""
    )


def _script_texts(language: Language, texts: Sequence[str]) -> str:
    """The translations of what the script says, as it reads them; empty in English."""
    found = {each: language.text(each) for each in texts}
    return "" if language.is_source else json.dumps(found, ensure_ascii=False, separators=(",", ":"))


class PageRenderer:
    """
    Renders the templates of this package, in each of its ``languages``.

    They are read at once, as are the catalogs: an upgrade replaces the files while this version still serves.
    """

    def __init__(self, assets: Assets, languages: Mapping[str, Language] | None = None) -> None:
        self.languages = load_languages() if languages is None else languages
        self._assets = assets
        self._sources = dict(_read_templates())
        self._environments: dict[str, Environment] = {}

    def language_of(self, request: Request) -> Language:
        """The language in which a visitor reads pages."""
        accepted = (request.header(b"accept-language") or b"").decode("ascii", "replace")
        return choose_language(self.languages, chosen_language(request), accepted)

    @cached_property
    def _templates(self) -> BaseLoader:
        # A server without visitors of its console saves 20 ms of its start, and 5 MB.
        from pkgrepo.web.rendering.translation import MarkedTemplates  # noqa: PLC0415

        return MarkedTemplates(self._sources)

    def _environment(self, language: Language) -> Environment:
        """What renders in a language; all share the compiled templates."""
        found = self._environments.get(language.code)
        if found is None:
            found = self._environments[language.code] = self._make_environment(language)
        return found

    def _make_environment(self, language: Language) -> Environment:
        from jinja2 import Environment, StrictUndefined  # noqa: PLC0415

        from pkgrepo.web.rendering.translation import Translation  # noqa: PLC0415

        environment = Environment(
            loader=self._templates,
            autoescape=True,
            undefined=StrictUndefined,
            trim_blocks=True,
            lstrip_blocks=True,
            auto_reload=False,
            extensions=[Translation],
        )
        environment.extend(language=language)
        environment.filters.update(language.filters)
        environment.tests["archive"] = is_archive
        environment.globals.update(
            asset=self._assets.address, bars=bars, longest=LONGEST_TEXT, share=share, spark=spark, version=__version__
        )
        environment.globals.update(
            _=language.text,
            languages=Markup("\n").join(_button(each, language) for each in self.languages.values()),
            script_texts=escape(_script_texts(language, self._assets.script_texts)),
        )
        return environment

    def answer(
        self,
        request: Request,
        language: Language,
        template: str,
        values: Mapping[str, Any],
        *,
        status: int = 200,
        headers: Fields = (),
        change: Callable[[str], str] | None = None,
    ) -> Response:
        """A page for a request, after a ``change`` of its text; ``status`` is a variable of every template."""
        text = self._environment(language).get_template(template).render(status=status, **values)
        text = _ASKING.sub(r'\1<input type="hidden" name="ask" value="\2">', text)
        if change is not None:
            text = change(text)
        document = render(HTML, text.encode("utf-8", "replace"), 0)
        encoding = choose_encoding(request.header(b"accept-encoding"))
        answer = document_response(document, encoding, (*SECURITY, *NO_STORE, *headers))
        # without an ETag: NO_STORE says that nothing is kept
        return Response(status, answer.body, answer.content_type, answer.headers)
