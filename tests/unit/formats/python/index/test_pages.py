"""The simple index in its forms, and the choice of the form."""

from datetime import UTC, datetime, timedelta, timezone
from html.parser import HTMLParser
from typing import Any

import msgspec
import pytest
from attrs import evolve
from hypothesis import given
from hypothesis import strategies as st

from pkgrepo.formats.python.index import pages
from pkgrepo.formats.python.index.pages import FileEntry
from pkgrepo.formats.python.index.requests import choose_page_type

ENTRY = FileEntry(
    filename="demo_pkg-1.0-py3-none-any.whl",
    url="../../packages/demo-pkg/1/demo_pkg-1.0-py3-none-any.whl",
    hashes={"sha256": "ab" * 32},
    requires_python="<4,>=3.8",
    size=1447,
    upload_time=datetime(2024, 1, 1, 0, 0, 0, 123456, UTC),
    yanked=False,
    core_metadata={"sha256": "cd" * 32},
    has_sig=True,
    provenance="../../packages/demo-pkg/1/demo_pkg-1.0-py3-none-any.whl.provenance",
)
BARE = evolve(ENTRY, requires_python=None, core_metadata=False, has_sig=False, provenance=None)


class Page(HTMLParser):
    """What a client reads in an HTML page."""

    def __init__(self, text: bytes) -> None:
        super().__init__()
        self.anchors: list[tuple[dict[str, str | None], str]] = []
        self.metas: list[tuple[str | None, str | None]] = []
        self._attributes: dict[str, str | None] | None = None
        self.feed(text.decode())

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        if tag == "meta":
            self.metas.append((dict(attrs).get("name"), dict(attrs).get("content")))
        if tag == "a":
            self._attributes = dict(attrs)

    def handle_data(self, data: str) -> None:
        if self._attributes is not None:
            self.anchors.append((self._attributes, data))
            self._attributes = None


def decode(data: bytes) -> Any:
    return msgspec.json.decode(data)


def test_json_fragment_says_everything_of_a_file() -> None:
    assert decode(pages.file_fragment_json(ENTRY)) == {
        "filename": "demo_pkg-1.0-py3-none-any.whl",
        "url": "../../packages/demo-pkg/1/demo_pkg-1.0-py3-none-any.whl",
        "hashes": {"sha256": "ab" * 32},
        "requires-python": "<4,>=3.8",
        "size": 1447,
        "upload-time": "2024-01-01T00:00:00.123456Z",
        "yanked": False,
        "core-metadata": {"sha256": "cd" * 32},
        "gpg-sig": True,
        "provenance": "../../packages/demo-pkg/1/demo_pkg-1.0-py3-none-any.whl.provenance",
    }


def test_json_fragment_leaves_out_what_is_not_there() -> None:
    value = decode(pages.file_fragment_json(BARE))
    assert value["core-metadata"] is False
    assert not {"requires-python", "gpg-sig", "provenance", "dist-info-metadata"} & set(value)


@pytest.mark.parametrize(("yanked", "value"), [(False, False), ("", True), ("broken", "broken")])
def test_yank_without_a_reason_is_true_in_json_and_empty_in_html(yanked: Any, value: Any) -> None:
    entry = evolve(ENTRY, yanked=yanked)
    assert decode(pages.file_fragment_json(entry))["yanked"] == value
    [(attributes, _)] = Page(pages.file_fragment_html(entry)).anchors
    assert attributes.get("data-yanked") == (None if yanked is False else yanked)
    assert ("data-yanked" in attributes) == (yanked is not False)


def test_html_fragment_says_everything_of_a_file() -> None:
    fragment = pages.file_fragment_html(ENTRY)
    assert b'data-requires-python="&lt;4,&gt;=3.8"' in fragment
    [(attributes, text)] = Page(fragment).anchors
    assert text == ENTRY.filename
    assert attributes == {
        "href": f"{ENTRY.url}#sha256={ENTRY.hashes['sha256']}",
        "data-requires-python": "<4,>=3.8",
        "data-core-metadata": f"sha256={'cd' * 32}",
        "data-dist-info-metadata": f"sha256={'cd' * 32}",
        "data-gpg-sig": "true",
        "data-provenance": ENTRY.provenance,
    }
    [(attributes, _)] = Page(pages.file_fragment_html(BARE)).anchors
    assert list(attributes) == ["href"]


@given(st.text(alphabet=st.characters(exclude_categories=["Cs"], exclude_characters="\x00\r")))
def test_text_from_outside_survives_both_forms(reason: str) -> None:
    entry = evolve(ENTRY, yanked=reason, requires_python=reason or None)
    value = decode(pages.file_fragment_json(entry))
    assert value["yanked"] == (reason or True)
    fragment = pages.file_fragment_html(entry)
    [(attributes, text)] = Page(fragment).anchors
    assert attributes["data-yanked"] == reason
    assert text == ENTRY.filename
    assert fragment.count(b"<") == 3


@pytest.mark.parametrize(
    ("time", "text"),
    [
        (datetime(2024, 1, 1, tzinfo=UTC), "2024-01-01T00:00:00.000000Z"),
        (datetime(2024, 1, 1, 1, tzinfo=timezone(timedelta(hours=2))), "2023-12-31T23:00:00.000000Z"),
    ],
)
def test_times_are_utc_with_microseconds(time: datetime, text: str) -> None:
    assert pages.format_time(time) == text


def test_version_in_a_url_is_encoded() -> None:
    assert pages.quote("1!2.0+cu121") == "1%212.0%2Bcu121"
    assert pages.quote("a/b") == "a%2Fb"


def test_json_page_joins_fragments() -> None:
    fragments = [pages.file_fragment_json(ENTRY), pages.file_fragment_json(BARE)]
    page = decode(pages.project_page_json("demo-pkg", 42, ["1.0", "1.1"], fragments).joined())
    assert page == {
        "meta": {"api-version": "1.4", "_last-serial": 42},
        "name": "demo-pkg",
        "project-status": {"status": "active"},
        "versions": ["1.0", "1.1"],
        "files": [decode(fragment) for fragment in fragments],
    }


def test_pages_carry_status_and_places() -> None:
    extra: dict[str, Any] = {
        "status": "deprecated",
        "reason": 'use "other" <instead>',
        "tracks": ["https://a.example/simple/demo/"],
        "alternate_locations": ["https://b.example/simple/demo/", "https://c.example/?a=1&b=2"],
    }
    value = decode(pages.project_page_json("demo", 1, [], [], **extra).joined())
    assert value["project-status"] == {"status": "deprecated", "reason": extra["reason"]}
    assert value["meta"]["tracks"] == extra["tracks"]
    assert value["alternate-locations"] == extra["alternate_locations"]
    assert value["files"] == []
    metas = Page(pages.project_page_html("demo", 1, [], [], **extra).joined()).metas
    assert metas[1:] == [
        ("pypi:repository-version", "1.4"),
        ("pypi:project-status", "deprecated"),
        ("pypi:project-status-reason", extra["reason"]),
        ("pypi:tracks", extra["tracks"][0]),
        *(("pypi:alternate-locations", url) for url in extra["alternate_locations"]),
    ]


def test_html_page_lists_its_files() -> None:
    fragments = [pages.file_fragment_html(each) for each in (ENTRY, BARE)]
    page = pages.project_page_html("demo-pkg", 42, ["1.0"], fragments).joined()
    assert page.startswith(b"<!DOCTYPE html>\n")
    assert [text for _, text in Page(page).anchors] == [ENTRY.filename] * 2


def test_project_lists_show_names_as_given_and_link_their_keys() -> None:
    names = ["Demo.Pkg", "zope.interface", "simple"]
    value = decode(pages.project_list_json(7, [pages.listed_json(names[:2]), pages.listed_json(names[2:])]).joined())
    assert value == {"meta": {"api-version": "1.4", "_last-serial": 7}, "projects": [{"name": name} for name in names]}
    listed = [pages.listed_html(names[:2]), pages.listed_html(names[2:])]
    anchors = Page(pages.project_list_html(7, listed).joined()).anchors
    assert [(attributes["href"], text) for attributes, text in anchors] == [
        ("demo-pkg/", "Demo.Pkg"),
        ("zope-interface/", "zope.interface"),
        ("simple/", "simple"),
    ]


def test_empty_lists_are_valid() -> None:
    assert decode(pages.project_list_json(0, []).joined())["projects"] == []
    assert Page(pages.project_list_html(0, []).joined()).anchors == []


JSON = b"application/vnd.pypi.simple.v1+json"
V1_HTML = b"application/vnd.pypi.simple.v1+html"
HTML = b"text/html; charset=utf-8"

PIP = JSON + b", " + V1_HTML + b"; q=0.1, text/html; q=0.01"
UV = JSON + b", " + V1_HTML + b";q=0.2, text/html;q=0.01"


@pytest.mark.parametrize(
    ("accept", "expected"),
    [
        (PIP, JSON),
        (UV, JSON),
        (JSON + b", */*;q=0.1", JSON),
        (b"*/*", HTML),
        (None, HTML),
        (b"", HTML),
        (b"text/html", HTML),
        (b"text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8", HTML),
        (V1_HTML, V1_HTML),
        (JSON + b", text/html", JSON),
        (b"text/html, " + JSON, JSON),
        (JSON + b";q=0.1, text/html;q=0.2", HTML),
        (JSON + b";q=0, text/html;q=0.1", HTML),
        (JSON + b";q=0", HTML),
        (JSON.upper(), JSON),
        (b"application/vnd.pypi.simple.latest+json", JSON),
        (b"application/vnd.pypi.simple.latest+html", V1_HTML),
        (b"application/vnd.pypi.simple.v2+json", HTML),
        (b"application/*", HTML),
        (b"image/png", HTML),
        (b"nonsense;;;", HTML),
    ],
)
def test_client_gets_the_form_it_likes_best(accept: bytes | None, expected: bytes) -> None:
    assert choose_page_type(accept, None) == expected


@pytest.mark.parametrize(
    ("parameter", "expected"),
    [
        (JSON.decode(), JSON),
        ("application/vnd.pypi.simple.latest+json", JSON),
        (V1_HTML.decode(), V1_HTML),
        ("text/html", HTML),
        ("nonsense", HTML),
        ("\u20ac", HTML),
    ],
)
def test_parameter_wins_over_the_header(parameter: str, expected: bytes) -> None:
    assert choose_page_type(PIP, parameter) == expected
    assert choose_page_type(b"text/html", parameter) == expected
