"""The languages of the console: which one is chosen, whether catalogs are whole, and whether any text is forgotten."""

from __future__ import annotations

import ast
import json
import re
from collections import Counter
from collections.abc import Iterator
from html.parser import HTMLParser
from typing import Any

import pytest
from babel.messages.pofile import read_po
from jinja2 import DictLoader, Environment, nodes
from markupsafe import Markup

from pkgrepo.web.rendering.filters import FILTERS
from pkgrepo.web.rendering.languages import (
    LONGEST_FIELD,
    Language,
    Message,
    choose_language,
    load_languages,
    read_catalog,
    said,
)
from pkgrepo.web.rendering.marking import is_text, tokens_of, with_marks
from pkgrepo.web.rendering.pages import Assets, PageRenderer
from pkgrepo.web.rendering.translation import MarkedTemplates, Translation
from tests.languages import CATALOGS, ROOM, messages
from tests.support.browser import Browser

LANGUAGES = load_languages()
CODES = {"de": "de", "zh_Hans": "zh-Hans"}
PLACES = re.compile(r"%\(\w+\)s|</?\w+>")


# Which language


@pytest.mark.parametrize(
    ("chosen", "accepted", "code"),
    [
        (None, "", "en"),
        (None, "de", "de"),
        (None, "de-AT,de;q=0.9,en;q=0.8", "de"),
        (None, "en-GB,en;q=0.9,de;q=0.8", "en"),
        (None, "fr, de;q=0.5, en;q=0.4", "de"),
        (None, "fr;q=1.0", "en"),
        (None, "zh-CN", "zh-Hans"),
        (None, "zh-Hans-SG", "zh-Hans"),
        (None, "ZH", "zh-Hans"),
        (None, "zh-TW, de;q=0.1", "de"),
        (None, "zh-Hant", "en"),
        (None, "de;q=0", "en"),
        (None, "*", "en"),
        (None, "de;q=0.3, *;q=0.5", "en"),
        (None, "de;q=2, zh;q=0.1", "zh-Hans"),
        (None, "de;q=x", "en"),
        (None, "de;q=0.3;q=0.4,\x00, zh;q=0.2", "zh-Hans"),
        (None, "x" * LONGEST_FIELD + ",de", "en"),
        ("zh-Hans", "de", "zh-Hans"),
        ("en", "de", "en"),
        ("xx", "de", "de"),
        ("../de", "", "en"),
    ],
)
def test_the_choice_of_a_visitor_comes_before_what_the_browser_accepts(
    chosen: str | None, accepted: str, code: str
) -> None:
    assert choose_language(LANGUAGES, chosen, accepted).code == code


async def test_a_page_is_in_the_language_that_a_browser_accepts(browser: Browser) -> None:
    await browser.stack.add_repository("py")
    reply = await browser.raw("GET", "/ui/", **{"Accept-Language": "de-DE,de;q=0.9"})
    text = reply.body.decode()
    assert '<html lang="de"' in text
    assert "Anmelden" in text
    assert "Log in" not in text
    assert {"Accept-Language", "Cookie"} <= {each.strip() for each in reply.headers["vary"].split(",")}
    assert '<html lang="en">' in (await browser.get("/ui/")).html


async def test_a_language_is_chosen_at_the_foot_of_a_page_without_a_login(browser: Browser) -> None:
    page = await browser.get("/ui/docs/permissions?x=1")
    assert page.languages["next"] == "/ui/docs/permissions?x=1"
    reply = await browser.raw("POST", "/ui/language", {**page.languages, "language": "zh-Hans"})
    assert (reply.status, reply.headers["location"]) == (303, "http://registry.example/ui/docs/permissions?x=1")
    cookie = reply.headers["set-cookie"]
    assert cookie.startswith("pkgrepo_language=zh-Hans; Path=/; Max-Age=31536000; HttpOnly; SameSite=Lax")
    page = await browser.get("/ui/docs/permissions")
    assert '<html lang="zh-Hans"' in page.html
    assert '<article class="prose" lang="en">' in page.html  # the book is not translated


@pytest.mark.parametrize(
    "target", ["//evil.example", "https://evil.example", "/ui/../api", "/ui/%2e%2e/api", "/api/user/logout", ""]
)
async def test_a_choice_leads_to_no_other_place(browser: Browser, target: str) -> None:
    reply = await browser.raw("POST", "/ui/language", {"next": target, "language": "de"})
    assert reply.headers["location"] == "http://registry.example/ui/"


async def test_another_language_and_another_origin_are_refused(browser: Browser) -> None:
    for fields, headers, status in (
        ({"language": "xx\r\nSet-Cookie: a=b"}, {}, 422),
        ({"language": "de"}, {"Origin": "https://evil.example"}, 403),
    ):
        reply = await browser.raw("POST", "/ui/language", {"next": "/ui/", **fields}, **headers)
        assert (reply.status, "set-cookie" in reply.headers) == (status, False)


async def test_a_refused_form_is_refused_in_the_language_of_the_page(browser: Browser) -> None:
    german = {"Accept-Language": "de"}
    reply = await browser.raw("POST", "/ui/login", {"username": "ada", "password": "wrong"}, **german)
    assert "Der Benutzername oder das Passwort ist falsch." in reply.body.decode()
    reply = await browser.raw("GET", "/ui/nowhere", **german)
    text = reply.body.decode()
    assert "<h1>Hier ist nichts</h1>" in text
    assert '<span lang="en">' in text  # the sentence is that of the API


# Catalogs


@pytest.mark.parametrize("name", CATALOGS)
def test_a_catalog_has_all_messages_and_no_others(name: str) -> None:
    with CATALOGS[name].open("rb") as file:
        catalog = read_po(file, locale=name)
    wanted, there = messages(), {each.id: each for each in catalog if each.id}
    missing = [each for each in wanted if each not in there or not all(_forms(there[each].string))]
    assert not missing, f"run bin/languages, and translate in {CATALOGS[name]}: {missing}"
    assert there.keys() <= set(wanted), f"run bin/languages: {there.keys() - set(wanted)}"
    assert not [each.id for each in there.values() if each.fuzzy]
    assert not catalog.obsolete


def _forms(string: Any) -> tuple[str, ...]:
    return (string,) if isinstance(string, str) else tuple(string)


@pytest.mark.parametrize("name", CATALOGS)
def test_translations_have_the_places_of_their_messages(name: str) -> None:
    for message, forms in LANGUAGES[CODES[name]].messages.items():
        every = message if isinstance(message, tuple) else (message,)
        for form in forms:
            assert Counter(PLACES.findall(form)) == Counter(PLACES.findall(every[-1])), (message, form)
            opened: list[str] = []
            for tag in re.findall(r"<(/?\w+)>", form):
                if tag.startswith("/"):
                    assert opened.pop() == tag[1:], form
                elif f"</{tag}>" in form:
                    opened.append(tag)
            assert not opened, form


@pytest.mark.parametrize("name", CATALOGS)
def test_catalogs_are_read_as_babel_reads_them(name: str) -> None:
    with CATALOGS[name].open("rb") as file:
        catalog = read_po(file, locale=name)
    expected: dict[Message, tuple[str, ...]] = {
        tuple(each.id) if each.pluralizable else each.id: _forms(each.string) for each in catalog if each.id
    }
    language = LANGUAGES[CODES[name]]
    assert dict(read_catalog(CATALOGS[name].read_text("utf-8"))) == expected == language.messages
    plural = re.sub("^.*plural=|;$", "", catalog.plural_forms)
    for count in range(200):
        assert language.form(count) == int(eval(plural, {"n": count})), count


def test_quotes_and_lines_of_a_catalog_are_read() -> None:
    text = (
        'msgid ""\nmsgstr ""\n"Language: x\\n"\n\nmsgid "a \\"b\\"\\n"\n"c"\nmsgstr "d\\\\"\n\nmsgid "e"\nmsgstr ""\n'
    )
    assert read_catalog(text) == [('a "b"\nc', ("d\\",))]


# What is written


@pytest.mark.parametrize("code", [each for each in LANGUAGES if each != "en"])
def test_the_style_sheet_says_its_words_in_each_language(code: str) -> None:
    style = (ROOM / "static" / "style.css").read_text("utf-8")
    words = re.findall(r'content: "[A-Za-z ]{3,}"', style)
    assert (
        len(re.findall(rf":lang\({code.partition('-')[0]}\)[^{{}}]*\{{ content: ", style))
        == style.count('"Sort by"')
        == 1
    )
    assert len(words) == 2  # with that in German


def _language(**translations: str) -> Language:
    entries = (f'msgid "{one}"\nmsgstr "{other}"\n' for one, other in translations.items())
    return Language("xx", "X", ("xx",), lambda _: 0, catalog="\n".join(entries))


def _rendered(source: str, language: Language, **values: Any) -> str:
    environment = Environment(
        loader=MarkedTemplates({"page": source}),
        autoescape=True,
        trim_blocks=True,
        lstrip_blocks=True,
        extensions=[Translation],
    )
    environment.extend(language=language)
    environment.filters.update(FILTERS)
    environment.globals["_"] = language.text
    return environment.get_template("page").render(**values)


def test_a_catalog_brings_words_alone() -> None:
    language = _language(**{"See <a>%(name)s</a>": "<script>x</script> %(other)s %% <a>%(name)s</a><b>{{ 7*7 }}"})
    page = _rendered('<p>See <a href="/x?{{ name }}">{{ name }}</a></p>', language, name='"><i>')
    assert page == (
        "<p>&lt;script&gt;x&lt;/script&gt; %(other)s %% "
        '<a href="/x?&#34;&gt;&lt;i&gt;">&#34;&gt;&lt;i&gt;</a>&lt;b&gt;{{ 7*7 }}</p>'
    )


def test_attributes_are_translated_and_escaped() -> None:
    language = _language(**{"Copy %(name)s": 'a\\"b %(name)s'})
    assert _rendered('<i title="Copy {{ name }}"></i>', language, name='"') == '<i title="a&#34;b &#34;"></i>'


def test_a_sentence_with_values_is_said_in_a_language() -> None:
    language = _language(**{"type %(name)s": "tippe %(name)s", "%(a)s: %(b)s": "%(b)s - %(a)s", "open": "x"})
    assert language.sentence(said("type %(name)s", name="<open>")) == "Tippe <open>."
    assert not isinstance(language.sentence(said("type %(name)s", name="x")), Markup)
    assert language.sentence(said("%(a)s: %(b)s", a="open", b=said("type %(name)s", name=1))) == "Tippe 1 - open."
    assert language.sentence("of <the> API") == Markup('<span lang="en">Of &lt;the&gt; API.</span>')


@pytest.mark.parametrize(
    ("source", "message"),
    [
        ("<p>Read <b>it</b> now.</p>", "Read <b>it</b> now."),
        ("<p>{{ icon('x') }} Read {{ a.name|upper }} of {{ b.name }}</p>", "Read %(name)s of %(name2)s"),
        ("<p>a <i>x</i> <i>y</i> z</p>", "a <i>x</i> <i2>y</i2> z"),
        ("<p>  two\n   lines  </p>", "two lines"),
        ("<p>a &lt; b &amp; c</p>", "a < b & c"),
        ("<input placeholder='x' aria-label=\"Find > all\">", "Find > all"),
    ],
)
def test_texts_of_templates_are_messages(source: str, message: str) -> None:
    environment = Environment(extensions=[Translation])
    texts = environment.parse(with_marks(source)).find_all(nodes.Filter)
    assert [each.node.value for each in texts if each.name == "translated"] == [message]


@pytest.mark.parametrize(
    "source",
    [
        "<p>{{ x }} <code>npm install</code></p>",
        "<pre>Some text</pre>",
        '<p translate="no">Some <b>text</b></p>',
        '<input placeholder="main/npm" value="Word">',
        "<p>pkgrepo · SHA-256</p>",
        "<p>{# A comment #}{% if x == 'Some text' %}{{ y }}{% endif %}</p>",
    ],
)
def test_code_names_and_examples_are_not_translated(source: str) -> None:
    assert with_marks(source) == source


def test_english_is_written_as_it_stands() -> None:
    source = """<p title="{{ t }}">
      {% for each in rows %}
        {{ loop.index }}. Row <a{% if each %} class="{{ each }}"{% endif %}>of {{ each or 'no' }}</a>;  two  spaces
      {% endfor %}
    </p>"""
    values = {"t": "T", "rows": ["a", "", "<b>"]}
    plain = Environment(loader=DictLoader({"page": source}), autoescape=True, trim_blocks=True, lstrip_blocks=True)
    expected = plain.get_template("page").render(**values)
    assert _rendered(source, LANGUAGES["en"], **values) == expected
    # and so is what a catalog lacks, apart from spaces
    assert _rendered(source, _language(), **values).split() == expected.split()


# Texts that are forgotten


def test_errors_of_the_console_are_messages() -> None:
    forgotten = []
    for path in sorted(ROOM.rglob("*.py")):
        for each in ast.walk(ast.parse(path.read_text())):
            match each:
                case ast.Call(func=ast.Name(id="Invalid" | "Conflict" | "Forbidden" as name), args=[first, *_]):
                    forgotten += [(path.name, name, ast.unparse(first))] if _is_literal(first) else []
                case ast.Call(func=ast.Name(id="Refusal"), args=[_, second, *_]):
                    forgotten += [(path.name, "Refusal", ast.unparse(second))] if _is_literal(second) else []
                case ast.Assign(targets=[ast.Attribute(attr="error")], value=value) if _is_literal(value):
                    forgotten += [(path.name, "error", ast.unparse(value))]
    assert forgotten == [
        ("visits.py", "Refusal", "'a form is sent as application/x-www-form-urlencoded'"),  # no browser gets these
    ]


def _is_literal(value: ast.expr) -> bool:
    return isinstance(value, ast.JoinedStr) or (isinstance(value, ast.Constant) and bool(value.value))


# Calls whose texts nobody reads as words: addresses, names of icons, and commands.
UNREAD = {
    "commands",
    "copied",
    "asset",
    "icon",
    "format_icon",
    "query",
    "with_query",
    "get",
    "replace",
    "split",
    "strftime",
}


def test_no_text_is_forgotten_in_an_expression_of_a_template() -> None:
    environment = PageRenderer(Assets())._environment(LANGUAGES["en"])
    forgotten = []
    for name, source in sorted(PageRenderer(Assets())._sources.items()):
        for value in _values(source):
            [shown] = environment.parse(value).find_all(nodes.Output)
            forgotten += [(name, text) for each in shown.nodes for text in _texts(each)]
    assert not forgotten


def _values(source: str) -> Iterator[str]:
    """The expressions of a template in its texts, and in attributes that people read."""
    for token in tokens_of(source):
        if token.kind == "value":
            yield token.source
        elif token.kind == "tag":
            for each in token.read_attributes():
                yield from (each.source for each in tokens_of(each["text"]) if each.kind == "value")


def _texts(value: nodes.Node) -> Iterator[str]:
    """The texts that an expression may write, and those that look like sentences in calls of macros."""
    match value:
        case nodes.Const(value=str() as text) if is_text(text):
            yield text
        case nodes.CondExpr(expr1=one, expr2=other):
            yield from _texts(one)
            yield from _texts(other) if other else ()
        case nodes.Or(right=other):
            yield from _texts(other)
        case nodes.Concat(nodes=parts):
            for each in parts:
                yield from _texts(each)
        case nodes.Filter(node=nodes.Node() as inner):
            yield from _texts(inner)
        case nodes.Getitem(node=nodes.Dict(items=items)):
            for each in items:
                yield from _texts(each.value)
        case nodes.Call(node=nodes.Name(name=name) | nodes.Getattr(attr=name), args=args) if name not in UNREAD | {"_"}:
            for each in args:
                yield from (text for text in _texts(each) if " " in text or text[:1].isupper())


SHOWN = (
    *("/ui/", "/ui/search?q=demo", "/ui/waiting", "/ui/account", "/ui/account/tokens", "/ui/account/rights"),
    *(
        "/ui/account/services",
        "/ui/projects",
        "/ui/projects/core",
        "/ui/docs",
        "/ui/docs?q=token",
        "/ui/api",
        "/ui/login",
    ),
    *("/ui/second-factor", "/ui/device", "/ui/password-link", "/ui/nowhere", "/ui/admin", "/ui/admin/users"),
    *(
        f"/ui/admin/{each}"
        for each in ("groups", "tokens", "grants", "policy", "recall", "stages", "retention", "quotas")
    ),
    *(f"/ui/admin/{each}" for each in ("trash", "health", "statistics", "jobs", "hosts", "webhooks", "audit")),
    *(f"/ui/admin/repositories/new{each}" for each in ("", "?format=python&type=Hosted", "?format=npm&type=Proxy")),
    *(
        f"/ui/repositories/main/py{each}"
        for each in ("", "/tree/", "/stages", "/trash", "/upload", "/explain", "/past")
    ),
    *(f"/ui/repositories/main/py/settings{each}" for each in ("", "/rules", "/retention", "/publishers", "/webhooks")),
    *(f"/ui/repositories/main/py/{each}" for each in ("vulnerabilities", "settings/import", "explain?package=demo")),
    *(f"/ui/repositories/main/py/packages/demo{each}" for each in ("", "/versions", "/dependents", "/downloads")),
    *(
        f"/ui/repositories/main/py/packages/demo/{each}"
        for each in ("difference", "versions/1.0", "versions/1.0/files")
    ),
)
DATA = {  # what people have chosen, names, and words that configurations and the API have as they are
    *(
        "admin",
        "main",
        "py",
        "demo",
        "demo-1.0-py3-none-any.whl",
        "python",
        "core",
        "Core",
        "UTC",
        "Python",
        "pip",
        "uv",
    ),
    *(
        "cargo",
        "conda",
        "docker",
        "go",
        "helm",
        "maven",
        "npm",
        "raw",
        "ruby",
        "toy",
        "mamba",
        "pixi",
        "podman",
        "oras",
    ),
    *("Maven", "Gradle", "sbt", "pnpm", "yarn", "bun", "poetry", "curl", "wget", "gem", "bundler", "twine"),
    *("read", "write", "overwrite", "delete", "edit", "api", "users", "system", "metrics", "audit", "login"),
    *("artifactory", "bundle", "devpi", "gitea", "nexus", "container", "harbor", "registry", "folder", "warehouse"),
    *("block", "warn", "allow", "trash", "untag", "auto", "sha256", "pkg", "https", "team-", "T00", "Z"),
    *("X11", "Linux", "KHTML", "like", "Gecko", "Chrome", "on"),  # a browser
    *("young", "critical", "licence", "contents", "differs", "trust", "fell", "install", "scripts"),  # names of rules
    *(
        "old",
        "versions",
        "prereleases",
        "unused",
        "token",
        "First",
        "steps",
        "Twisted",
        "SQLite",
        "catalog",
        "schema",
        "commit",
    ),
    *("CloudEvents", "other"),
}


async def test_every_text_of_a_page_is_translated(make_stack: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    catalog = "\n".join(_bracketed(each) for each in messages())
    strange = Language("en-XA", "X", ("en",), lambda count: int(count != 1), catalog=catalog)
    monkeypatch.setattr("pkgrepo.web.app.PageRenderer", lambda assets: PageRenderer(assets, {"en-XA": strange}))
    browser = Browser(await make_stack())
    await browser.stack.add_repository("py")
    await browser.stack.publish("main/py", "demo", "1.0")
    await browser.log_in()
    forgotten: dict[str, set[str]] = {}
    for path in SHOWN:
        words = _Words()
        words.feed((await browser.get(path)).html)
        if unknown := {
            each for each in words.found if each not in DATA and not re.fullmatch("a|[0-9a-f]{20,}.*", each)
        }:
            forgotten[path] = unknown
    assert not forgotten, "\n".join(f"{path}: {each}" for path, each in forgotten.items())


def _bracketed(message: Message) -> str:
    """An entry of a catalog whose translation is the message in brackets."""
    one, *more = (json.dumps(each) for each in ([message] if isinstance(message, str) else message))
    forms = [json.dumps(f"⟦{json.loads(each)}⟧", ensure_ascii=False) for each in (one, *more)]
    if not more:
        return f"msgid {one}\nmsgstr {forms[0]}\n"
    return f"msgid {one}\nmsgid_plural {more[0]}\nmsgstr[0] {forms[0]}\nmsgstr[1] {forms[1]}\n"


class _Words(HTMLParser):
    """The words of a page outside of brackets, code, and what says that it is not translated."""

    def __init__(self) -> None:
        super().__init__(convert_charrefs=True)
        self.found: list[str] = []
        self._kept: list[str] = []
        self._depth = 0  # of brackets, within which a text may have elements

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        given = dict(attrs)
        if tag in {"input", "meta", "link", "br", "img", "use", "path", "wbr", "hr"}:
            pass
        elif self._kept or tag in {"code", "pre", "kbd", "textarea", "svg", "script"} or _is_foreign(tag, given):
            self._kept.append(tag)
        if not self._kept:
            for name in ("title", "aria-label", "placeholder", "alt", "data-label", "data-confirm"):
                depth, self._depth = self._depth, 0
                self._read(given.get(name) or "")
                self._depth = depth

    def handle_endtag(self, tag: str) -> None:
        if self._kept and tag == self._kept[-1]:
            self._kept.pop()

    def handle_data(self, data: str) -> None:
        if not self._kept:
            self._read(data)

    def _read(self, text: str) -> None:
        outside = ""
        for each in text:
            self._depth += (each == "⟦") - (each == "⟧")
            outside += " " if self._depth or each == "⟧" else each
        self.found += [each for each in re.findall(r"[^\W\d_][\w./-]*", outside) if is_text(each)]


def _is_foreign(tag: str, given: dict[str, str | None]) -> bool:
    return given.get("translate") == "no" or (tag != "html" and given.get("lang") == "en")
