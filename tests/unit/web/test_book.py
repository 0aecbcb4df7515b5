"""The book of documentation: complete, current, and shown with the addresses of the server."""

from __future__ import annotations

import re
import tempfile
from pathlib import Path

import pytest
from markupsafe import Markup

import pkgrepo
from pkgrepo.cli import main
from pkgrepo.composition.core import make_formats
from pkgrepo.config import read_config
from pkgrepo.config.explain import settings_page
from pkgrepo.gateway.refusals import HELP, STATUSES
from pkgrepo.management.api.openapi import api_page
from pkgrepo.management.app import EVERY_TABLE
from pkgrepo.management.repositories.reference import configuration_page
from pkgrepo.web.book import (
    LAST,
    MOST_WORDS,
    PICTURES,
    BookPage,
    Picture,
    anchor_of,
    find_sections,
    load_book,
    picture,
    sections_of,
    text_and_pictures,
    with_anchors,
)
from tests.support.added_formats import ADDED
from tests.support.browser import Browser
from tests.support.clients_page import clients_page, collected
from tests.support.commands_page import commands_page
from tests.support.incidents_page import incidents_page

FOLDER = Path(pkgrepo.__file__).parent / "docs"
BOOK = load_book()


def assert_current(name: str, made: str) -> None:
    """Fail if a page of the book is not as it is made now, and leave the new one where it can be copied from."""
    if (FOLDER / name).read_text() != made:
        place = Path(tempfile.gettempdir(), name)
        place.write_text(made)
        pytest.fail(f"pkgrepo/docs/{name} is old: cp {place} pkgrepo/docs/")


def test_the_index_links_to_every_page() -> None:
    assert {f"{name}.md" for name in BOOK} == {each.name for each in FOLDER.iterdir() if each.is_file()}


@pytest.mark.parametrize("name", BOOK)
def test_a_page_begins_with_its_heading_and_its_links_lead_to_pages(name: str) -> None:
    page = BOOK[name]
    assert page.text.startswith(f"# {page.title}\n\n")
    assert set(re.findall(r"\]\(([^)#]+\.md)", page.text)) <= {f"{each}.md" for each in BOOK}
    assert len(re.findall(r"^```", page.text, re.MULTILINE)) % 2 == 0


def test_pictures_are_shown_with_their_sizes() -> None:
    parts = [each for page in BOOK.values() for each in text_and_pictures(page.text) if isinstance(each, Picture)]
    assert {each.name for each in parts} | {"package.png"} == PICTURES  # that one is in the README alone
    assert {each.width for each in parts} == {1280}
    assert all(300 < each.height <= 900 and each.text[0].isupper() for each in parts)
    assert max(len(picture(each)) for each in PICTURES) < 100_000
    assert not [page for page in BOOK.values() if "![" in "".join(_texts(page.text))]


def _texts(text: str) -> list[str]:
    return [each for each in text_and_pictures(text) if isinstance(each, str)]


def test_links_to_parts_of_pages_lead_to_their_headings() -> None:
    headings = {
        name: {anchor_of(each) for each in re.findall(r"^###? (.+)$", page.text, re.MULTILINE)}
        for name, page in BOOK.items()
    }
    found = [
        (name, *each) for name, page in BOOK.items() for each in re.findall(r"\]\(([a-z-]+)\.md#([\w-]+)", page.text)
    ]
    assert found
    assert [each for each in found if each[2] not in headings[each[1]]] == []
    shown, parts = with_anchors(Markup("<h2>A <code>[b.c]</code>!</h2><h3>A</h3><h2>A</h2>"))
    assert shown == '<h2 id="a-bc">A <code>[b.c]</code>!</h2><h3 id="a">A</h3><h2 id="a-1">A</h2>'
    assert parts == [("a-bc", "A [b.c]!"), ("a-1", "A")]


def test_what_helps_with_a_refusal_is_there() -> None:
    assert {*HELP} <= {code for _, code in STATUSES.values()}
    for page in HELP.values():
        name, _, anchor = page.partition("#")
        assert anchor in {each.anchor for each in sections_of(BOOK[name])}


def test_the_page_of_settings_is_current() -> None:
    assert_current("settings.md", settings_page())


def test_the_page_of_commands_is_current() -> None:
    assert_current("commands.md", commands_page(main, ADDED))


def test_the_page_of_the_api_is_current() -> None:
    assert_current("api.md", api_page(EVERY_TABLE))


def test_the_page_of_repository_configurations_is_current_and_explains_every_key() -> None:
    formats = {name: each for name, each in sorted(make_formats(read_config(environ={})).items()) if name not in ADDED}
    made = configuration_page({name: each.configurations.schema() for name, each in formats.items()})
    assert not re.findall(r"^\| `([^`]+)`.*\|  \|$", made, re.MULTILINE)
    assert_current("configuration.md", made)


def test_links_and_addresses_become_those_of_the_server() -> None:
    page = BookPage("x", "X", "[a](npm.md) `http://127.0.0.1:8081/v2/` 127.0.0.1:8081/main/app:1 [b](java.md#c)")
    assert page.text_for("https://packages.example") == (
        "[a](https://packages.example/ui/docs/npm) `https://packages.example/v2/` packages.example/main/app:1 "
        "[b](https://packages.example/ui/docs/java#c)"
    )


async def test_the_book_is_read_without_a_login(browser: Browser) -> None:
    page = await browser.get("/ui/docs")
    assert page.status == 200
    assert "http://registry.example" in page.text
    assert "127.0.0.1:8081" not in page.text
    for name in BOOK:
        assert f"/ui/docs/{name}" in page.links
    for name in BOOK:
        shown = (await browser.get(f"/ui/docs/{name}")).html
        assert shown.count("<h1") == 1, f"{name} is shown as it is written"
        assert (await browser.get(f"/ui/docs/{name}")).status == 200
    assert (await browser.get("/ui/docs/nothing")).status == 404
    shown = await browser.get("/ui/docs/stages")
    assert '<img class="picture" src="/ui/docs/pictures/stage.png"' in shown.html
    assert (await browser.raw("GET", "/ui/docs/pictures/stage.png")).body == picture("stage.png")
    assert (await browser.get("/ui/docs/pictures/..%2Findex.md")).status == 404
    assert (await browser.get("/ui/docs/..%2Fpy.typed")).status == 404


def found(query: str) -> list[str]:
    hits = find_sections([section for page in BOOK.values() for section in sections_of(page)], query)
    return [f"{each.section.page.name}#{each.section.anchor}" for each in hits]


def test_sections_have_the_anchors_of_the_page() -> None:
    page = BookPage("x", "X", "# X\n\nfirst\n\n## A `[b.c]`!\n\n```\n## no heading\n```\n\n### A\n\n## A\n")
    assert [(each.anchor, each.title) for each in sections_of(page)] == [
        ("", "X"),
        ("a-bc", "A [b.c]!"),
        ("a", "A"),
        ("a-1", "A"),
    ]


def test_all_words_are_found_and_titles_come_first_and_lists_last() -> None:
    assert found("freeze")[0] == "policy#freeze"
    assert found("minimumReleaseAge pnpm")[0].startswith("cooldowns#")
    assert found("backup restore")[0].startswith("backup#")
    names = [each.partition("#")[0] for each in found("quota")]
    assert names[0] == "quotas"
    assert sorted(names, key=lambda each: each in LAST) == names
    assert found("freeze xyzzy-nowhere") == found(" ") == []


def test_of_a_query_a_few_different_words_are_looked_for() -> None:
    text = "# T\n\n" + " ".join(f"word{n}" for n in range(MOST_WORDS))
    sections = list(sections_of(BookPage("a", "T", text)))
    known = " ".join(f"word{n}" for n in range(MOST_WORDS) for _ in range(9))
    assert len(find_sections(sections, f"{known} unknown")) == 1
    assert find_sections(sections, f"unknown {known}") == []


def test_an_excerpt_is_one_line_around_a_word_without_marks() -> None:
    page = BookPage("x", "X", f"# X\n\n**bold** [link](npm.md)\n\n{'a ' * 300}`needle` {'b ' * 300}\n")
    (hit,) = find_sections(list(sections_of(page)), "needle")
    assert "needle b" in hit.excerpt
    assert hit.excerpt.startswith("… a")
    assert hit.excerpt.endswith("b …")
    (hit,) = find_sections(list(sections_of(page)), "bold")
    assert hit.excerpt == "bold link"


async def test_the_book_is_searched_and_read_by_programs(browser: Browser) -> None:
    page = await browser.get("/ui/docs?q=freeze")
    assert "/ui/docs/policy#freeze" in page.links
    nothing = await browser.get("/ui/docs?q=%3Cscript%3Exyzzy")
    assert "No part of it has all of" in nothing.text
    assert "<script>xyzzy" not in nothing.html
    listed = (await browser.raw("GET", "/ui/docs/llms.txt")).body.decode()
    assert listed.startswith("# pkgrepo\n\n> pkgrepo serves")
    assert "(http://registry.example/ui/docs/policy.md)" in listed
    text = (await browser.raw("GET", "/ui/docs/policy.md")).body.decode()
    assert text.startswith("# Rules, blocks and quarantine\n")
    assert (await browser.get("/ui/docs/nothing.md")).status == 404


def test_the_page_of_incidents_is_current() -> None:
    assert_current("incidents.md", incidents_page(make_formats(read_config(environ={}))))


def test_the_page_of_clients_is_current() -> None:
    assert_current("clients.md", clients_page(collected()))
