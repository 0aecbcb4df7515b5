"""The normalisers of project pages and of lists of projects, links, and the addresses of pages."""

from __future__ import annotations

import io
import json
from collections.abc import Iterable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pkgrepo.errors import Invalid
from pkgrepo.formats.python.index.pages import HTML_PAGE, NAME_LIST
from pkgrepo.formats.python.proxied.normaliser import NAMES, NORMALISER, Links, normalise, normalise_list
from pkgrepo.formats.python.proxied.upstream import index_probes, list_question, page_question
from pkgrepo.formats.python.versions import parse_version
from pkgrepo.outbound.urls import parse_url, resolve_reference
from pkgrepo.proxy.parts.file import PartsFile, write_parts
from pkgrepo.proxy.parts.jobs import Job
from pkgrepo.proxy.parts.jobs import normalise as normalise_document
from pkgrepo.proxy.parts.values import Context, Entry
from pkgrepo.storage.blobs.durability import memory_file
from tests.support.index_pages import (
    FULL,
    OTHER,
    PATH,
    SDIST,
    SHA,
    URL,
    WHEEL,
    anchor,
    html,
    listed,
    page,
    read,
    read_one,
    reread,
    shown,
    source_of,
)

SEEN_MS = 1704164645123


def test_a_file_is_shown_as_the_upstream_lists_it_at_our_address() -> None:
    entry = read_one(page(FULL))
    ours = f"../../{PATH}"
    assert shown(entry) == {**FULL, "url": ours, "provenance": f"{ours}.provenance"}
    assert (entry.sort, entry.key, entry.version) == (parse_version("1.0")[1], WHEEL, "1.0")
    assert entry.published_ms == 1704164645123
    assert not entry.first_seen


def test_a_file_without_a_time_has_the_one_when_it_was_first_seen_and_says_so() -> None:
    def run(document: bytes, now_ms: int, previous: bytes = b"") -> bytes:
        out, kept = io.BytesIO(), None
        if previous:
            kept = memory_file(previous)
        normalise_document(document, Job(NORMALISER, Context("demo-pkg", URL), now_ms), kept, out)
        return out.getvalue()

    def entry_of(parts: bytes) -> Entry:
        with PartsFile(parts) as file:
            return next(iter(file.entries()))

    undated = html(anchor(WHEEL))
    first = run(undated, SEEN_MS)
    again = run(undated + b"<!-- more -->", SEEN_MS + 1000, first)
    for each in (first, again):
        assert shown(entry_of(each))["upload-time"] == "2024-01-02T03:04:05.123000Z"
        assert shown(entry_of(each))["_first-seen"] is True
    listed_by_us = run(page(shown(entry_of(first))), SEEN_MS + 5000)  # by another proxy
    assert (entry_of(listed_by_us).published_ms, entry_of(listed_by_us).first_seen) == (SEEN_MS, True)
    dated = shown(entry_of(run(page(FULL), SEEN_MS + 1000)))
    assert "_first-seen" not in dated
    assert dated["upload-time"] == FULL["upload-time"]


def test_a_file_and_its_companions_have_addresses_at_the_upstream() -> None:
    entry = read_one(page(FULL))
    assert source_of(entry).digests == {"sha256": SHA}
    assert source_of(entry).size == 1447
    assert source_of(entry, ".metadata").digests == {"sha256": OTHER}
    assert {each.path.removeprefix(PATH): each.url for each in entry.files} == {
        "": f"https://files.example/a/{WHEEL}",
        ".metadata": f"https://files.example/a/{WHEEL}.metadata",
        ".asc": f"https://files.example/a/{WHEEL}.asc",
        ".provenance": "https://index.example/integrity/x/provenance",
    }


def test_html_says_the_same_as_json_as_far_as_it_can() -> None:
    entry = read_one(page(FULL))
    absent = ("size", "upload-time", "x-scanned")
    assert reread(entry) == {key: value for key, value in shown(entry).items() if key not in absent}


def test_what_the_upstream_does_not_say_is_left_out() -> None:
    entry = read_one(page({"filename": SDIST, "url": SDIST, "hashes": {}}))
    ours = f"../../packages/demo-pkg/1.0/{SDIST}"
    assert shown(entry) == {"filename": SDIST, "url": ours, "hashes": {}, "yanked": False, "core-metadata": False}
    assert entry.published_ms is None
    assert [each.digests for each in entry.files] == [{}]
    assert b"#" not in entry.fragments[HTML_PAGE]


@pytest.mark.parametrize(
    "key", ["core-metadata", "dist-info-metadata", "data-core-metadata", "data-dist-info-metadata"]
)
@pytest.mark.parametrize(
    ("value", "expected"),
    [({"sha256": OTHER}, {"sha256": OTHER}), (True, True), ({}, True), ({"sha256": "z"}, True), (False, False)],
)
def test_metadata_is_found_in_all_spellings_of_json(key: str, value: Any, expected: Any) -> None:
    wheel, sdist = (read_one(page(listed(name, **{key: value}))) for name in (WHEEL, SDIST))
    assert (shown(wheel)["core-metadata"], shown(sdist)["core-metadata"]) == (expected or True, expected)
    urls = [each.url for each in wheel.files]
    assert urls == [urls[0], urls[0] if expected is False else f"{urls[0]}.metadata"]
    assert len(sdist.files) == (1 if expected is False else 2)


@pytest.mark.parametrize("name", ["data-core-metadata", "data-dist-info-metadata"])
@pytest.mark.parametrize(
    ("value", "expected"),
    [(f'="sha256={OTHER}"', {"sha256": OTHER}), ('="true"', True), ("", True), ('="false"', False)],
)
def test_metadata_is_found_in_all_spellings_of_html(name: str, value: str, expected: Any) -> None:
    entry = read_one(html(anchor(SDIST, attributes=name + value)))
    assert shown(entry)["core-metadata"] == expected


def test_the_newer_spelling_wins() -> None:
    entry = read_one(page(listed(**{"dist-info-metadata": True, "core-metadata": {"sha256": OTHER}})))
    assert shown(entry)["core-metadata"] == {"sha256": OTHER}


@pytest.mark.parametrize(
    ("yanked", "expected"), [(True, True), (False, False), ("why", "why"), ("", False), (None, False)]
)
def test_yanked_in_json(yanked: Any, expected: Any) -> None:
    assert shown(read_one(page(listed(yanked=yanked))))["yanked"] == expected


@pytest.mark.parametrize(
    ("attribute", "expected"), [("data-yanked", True), ('data-yanked=""', True), ('data-yanked="a &lt; b"', "a < b")]
)
def test_yanked_in_html(attribute: str, expected: Any) -> None:
    assert shown(read_one(html(anchor(attributes=attribute))))["yanked"] == expected


@pytest.mark.parametrize("fragment", [f"#md5={'1' * 32}&sha256={SHA}", f"#egg=x&SHA256={SHA.upper()}"])
def test_fragments_of_links_have_hashes(fragment: str) -> None:
    assert source_of(read_one(html(anchor(fragment=fragment)))).digests["sha256"] == SHA


@pytest.mark.parametrize(
    ("href", "head", "expected"),
    [
        (f"../../f/{WHEEL}", "", f"https://index.example/root/f/{WHEEL}"),
        (f"/f/{WHEEL}?sig=a+b", "", f"https://index.example/f/{WHEEL}?sig=a+b"),
        (f"//other.example/{WHEEL}", "", f"https://other.example/{WHEEL}"),
        (WHEEL, '<base href="https://cdn.example/x/">', f"https://cdn.example/x/{WHEEL}"),
        (WHEEL, '<base href="/y/">', f"https://index.example/y/{WHEEL}"),
        (WHEEL, '<base href="https://[">', f"{URL}{WHEEL}"),
        (f"../../%2Bf/a/{WHEEL}", "", f"https://index.example/root/%2Bf/a/{WHEEL}"),
        (f"../../+f/a/{WHEEL}", "", f"https://index.example/root/+f/a/{WHEEL}"),
    ],
)
def test_links_are_relative_to_the_final_url_or_the_base(href: str, head: str, expected: str) -> None:
    entry = read_one(html(f'<a href="{href}">{WHEEL}</a>', head=head))
    assert source_of(entry).url == expected


def test_companions_of_an_address_with_a_query_have_it_too() -> None:
    entry = read_one(page({**FULL, "url": f"https://files.example/{WHEEL}?key=1"}))
    assert source_of(entry, ".metadata").url == f"https://files.example/{WHEEL}.metadata?key=1"


def test_local_versions_and_epochs_are_encoded_in_addresses() -> None:
    name = "demo_pkg-1!2.0+cu121-py3-none-any.whl"
    entry = read_one(html(anchor(name.replace("+", "%2B").replace("!", "%21"))))
    assert entry.files[0].path == f"packages/demo-pkg/1!2.0+cu121/{name}"
    assert shown(entry)["url"] == f"../../packages/demo-pkg/1%212.0%2Bcu121/{name}".replace("1!2.0+", "1%212.0%2B")


def test_files_of_one_version_have_one_spelling_of_it_but_paths_of_their_own() -> None:
    entries = read(page(listed("demo_pkg-1.0.0.tar.gz"), listed(), versions=["1"]))[1]
    assert [each.version for each in entries] == ["1", "1"]
    assert {each.files[0].path.split("/")[2] for each in entries} == {"1.0.0", "1.0"}


def test_the_top_has_the_status_and_other_locations() -> None:
    top, _ = read(
        page(
            listed(),
            meta={"api-version": "1.2", "tracks": ["https://a.example/", 3, "javascript:x"], "_last-serial": 9},
            **{
                "project-status": {"status": "archived", "reason": "no\ntime"},
                "alternate-locations": ["https://b.example/"],
            },
        )
    )
    assert top == {
        "status": "archived",
        "reason": "no time",
        "tracks": ["https://a.example/"],
        "alternate_locations": ["https://b.example/"],
    }


def test_the_top_is_also_read_from_html() -> None:
    metas = "".join(
        f'<meta name="pypi:{name}" content="{content}">'
        for name, content in [
            ("repository-version", "1.4"),
            ("project-status", "deprecated"),
            ("project-status-reason", "see y"),
            ("tracks", "https://a.example/"),
            ("tracks", "https://b.example/"),
            ("alternate-locations", "https://c.example/"),
        ]
    )
    assert read(html(head=metas))[0] == {
        "status": "deprecated",
        "reason": "see y",
        "tracks": ["https://a.example/", "https://b.example/"],
        "alternate_locations": ["https://c.example/"],
    }


def test_a_quarantined_project_has_no_files() -> None:
    assert read(page(listed(), **{"project-status": {"status": "quarantined"}}))[1] == []


@pytest.mark.parametrize("prefix", [b"", b"\xef\xbb\xbf", b" \r\n"])
@pytest.mark.parametrize("source", [page(listed()), html(anchor())])
def test_the_content_decides_whether_it_is_json_or_html(prefix: bytes, source: bytes) -> None:
    assert read_one(prefix + source).key == WHEEL


@pytest.mark.parametrize("name", ["Demo.Pkg", "demo__pkg", "DEMO-PKG"])
def test_any_spelling_of_the_name_is_this_project(name: str) -> None:
    assert read_one(page(listed(), name=name)).key == WHEEL


def test_a_project_without_files_is_no_error() -> None:
    assert read(html()) == read(page())


def test_entries_are_found_by_the_path_of_each_file() -> None:
    out = io.BytesIO()
    write_parts(out, normalise(page(FULL, listed(SDIST)), Context("demo-pkg", URL)))
    with PartsFile(out.getvalue()) as parts:
        assert parts.count == 2
        for suffix in ("", ".metadata", ".asc", ".provenance"):
            found = parts.find_path(PATH + suffix)
            assert found is not None
            assert (found[0].key, found[1].path) == (WHEEL, PATH + suffix)


@pytest.mark.parametrize("text", ["\n1.0\n", " 1.0", "1.0\x1c", "\u2003v1.0\u2003"])
def test_white_space_around_a_version_is_removed(text: str) -> None:
    entry = read_one(page(listed(), versions=[text]))
    assert entry.version in ("1.0", "v1.0")


HOST = "https://index.example"


@pytest.mark.parametrize(
    ("url", "indexes"),
    [
        (f"{HOST}/", [f"{HOST}/simple/", f"{HOST}/"]),
        (f"{HOST}/pypi/web", [f"{HOST}/pypi/web/simple/", f"{HOST}/pypi/web/"]),
        (f"{HOST}/simple", [f"{HOST}/simple/"]),
        (f"{HOST}/Simple/", [f"{HOST}/Simple/"]),
        (f"{HOST}/root/dev/+simple", [f"{HOST}/root/dev/+simple/"]),
        (f"{HOST}/root/dev/%2Bsimple", [f"{HOST}/root/dev/%2Bsimple/"]),
        (f"{HOST}/notsimple", [f"{HOST}/notsimple/simple/", f"{HOST}/notsimple/"]),
    ],
)
def test_the_url_of_a_route_is_that_of_the_index_or_the_one_above(url: str, indexes: list[str]) -> None:
    assert list(list_question().urls(url)) == indexes
    assert list(page_question("x-y").urls(url)) == [f"{index}x-y/" for index in indexes]
    above = indexes[1] if len(indexes) > 1 else f"{indexes[0].rsplit('/', 2)[0]}/"
    assert [probe for probe, _ in index_probes(url)] == [indexes[0], f"{indexes[0]}pip/", above]


def list_of(names: Iterable[str]) -> bytes:
    return json.dumps({"meta": {"api-version": "1.4"}, "projects": [{"name": name} for name in names]}).encode()


def read_names(source: bytes) -> list[list[str]]:
    entries = normalise_list(source, Context("list of projects", "https://index.example/simple/")).entries
    return [name for entry in entries for name in json.loads(entry.fragments[NAME_LIST])]


def test_a_list_has_keys_and_names_in_order() -> None:
    found = [["b-b", "B.b"], ["c", "c"]]
    assert read_names(list_of(["c", "B.b", "../x", "é", ""])) == found
    anchors = "<a href='/simple/c/'>c</a> <a href='B.b'>x</a> <a href='../'>up</a> <a>none</a>"
    assert read_names(anchors.encode()) == found


def test_a_long_list_has_several_entries() -> None:
    many = [f"n{number:04}" for number in range(2 * NAMES + 1)]
    entries = [*normalise_list(list_of(many), Context("", "")).entries]
    assert [entry.key for entry in entries] == ["n0000", f"n{NAMES:04}", f"n{2 * NAMES:04}"]
    assert read_names(list_of(many)) == [[name, name] for name in many]


@pytest.mark.parametrize("source", [b"", b"{}", b"<html>Sign in</html>", list_of([]).replace(b"1.4", b"2.0"), b"{["])
def test_what_is_no_list_is_refused(source: bytes) -> None:
    with pytest.raises(Invalid):
        read_names(source)


BASE = "https://index.example:8443/root/simple/x/"

HOSTS = ["h.example", "H.example", "u:p@", ":80", ":443", ":0", "[::1]"]
PATHS = ["/", "..", ".", "a%2Fb", "a+b", "?", "#", " ", "\\", "é", "%", "x-1.0.whl", ";", ":", "\x00", "\n"]
PIECES = st.sampled_from(["http://", "https://", "HTTPS://", "//", *HOSTS, *PATHS])


def expected(reference: str) -> str | None:
    try:
        return resolve_reference(parse_url(BASE), reference.strip().encode().decode("latin-1")).text
    except ValueError:
        return None


@given(st.lists(PIECES, max_size=8).map("".join))
def test_every_link_is_resolved_as_a_location_is(reference: str) -> None:
    links = Links(BASE)
    assert links.find(reference) == expected(reference)
    assert links.find(reference) == expected(reference)


@pytest.mark.parametrize(
    "reference",
    [
        "https://files.example/a/b/x-1.0-py3-none-any.whl",
        "http://Files.Example:80/x",
        "https://files.example/a/../x",
        "https://files.example/a/./x",
        "https://files.example/..",
        "https://files.example/a/..x",
        "https://files.example//x",
        "https://files.example",
        "https://user@files.example/x",
        "https://files.example:0/x",
        "https://files.example/" + "x" * 9000,
        "../../f/x.whl",
    ],
)
def test_links_of_pages(reference: str) -> None:
    assert Links(BASE).find(reference) == expected(reference)
