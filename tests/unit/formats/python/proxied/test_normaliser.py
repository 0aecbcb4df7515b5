"""What is made of the pages of upstreams: of good ones, of odd ones, and of hostile ones."""

from __future__ import annotations

import io
import json
from collections.abc import Iterable
from contextlib import suppress
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pkgrepo.errors import Invalid
from pkgrepo.formats.python.index.pages import HTML_PAGE, JSON_PAGE, NAME_LIST, project_page_html
from pkgrepo.formats.python.names import parse_version
from pkgrepo.formats.python.proxied.json_listing import LARGEST_FILE
from pkgrepo.formats.python.proxied.normaliser import NAMES, normalise, normalise_list
from pkgrepo.proxy.parts.file import PartsFile
from pkgrepo.proxy.parts.values import Context, Entry, FileSource, Normalised
from pkgrepo.proxy.parts.writing import write_parts
from pkgrepo.repositories.publish.splicing import BASE

URL = "https://index.example/root/simple/demo-pkg/"
WHEEL = "demo_pkg-1.0-py3-none-any.whl"
SDIST = "demo_pkg-1.0.tar.gz"
PATH = f"packages/demo-pkg/1.0/{WHEEL}"
SHA, OTHER = "ab" * 32, "cd" * 32


def page(*files: Any, **members: Any) -> bytes:
    value = {"meta": {"api-version": "1.4"}, "name": "demo-pkg", "files": list(files), **members}
    return json.dumps(value).encode()


def listed(filename: str = WHEEL, **members: Any) -> dict[str, Any]:
    return {"filename": filename, "url": f"https://files.example/a/{filename}", "hashes": {"sha256": SHA}, **members}


def anchor(filename: str = WHEEL, fragment: str = f"#sha256={SHA}", attributes: str = "") -> str:
    return f'<a href="https://files.example/a/{filename}{fragment}" {attributes}>{filename}</a><br>'


def html(*anchors: str, head: str = "<title>Links for demo-pkg</title>") -> bytes:
    return f"<!DOCTYPE html><html><head>{head}</head><body>{' '.join(anchors)}</body></html>".encode()


def read(source: bytes, url: str = URL, name: str = "demo-pkg") -> tuple[dict[str, Any], list[Entry]]:
    normalised = normalise(source, Context(name, url))
    return normalised.top, list(normalised.entries)


def read_one(source: bytes, url: str = URL) -> Entry:
    (entry,) = read(source, url)[1]
    return entry


def shown(entry: Entry) -> dict[str, Any]:
    value: dict[str, Any] = json.loads(entry.fragments[JSON_PAGE])
    return value


def source_of(entry: Entry, suffix: str = "") -> FileSource:
    return next(each for each in entry.files if each.path == PATH + suffix)


def reread(entry: Entry) -> dict[str, Any]:
    """What we read in our own anchor."""
    document = project_page_html("demo-pkg", 1, ["1.0"], [entry.fragments[HTML_PAGE]]).joined()
    return shown(read_one(document))


FULL = listed(
    **{
        "requires-python": "<4,>=3.8",
        "size": 1447,
        "upload-time": "2024-01-02T03:04:05.123456Z",
        "yanked": "broken",
        "core-metadata": {"sha256": OTHER},
        "gpg-sig": True,
        "provenance": "https://index.example/integrity/x/provenance",
        "x-scanned": {"by": ["z"]},
    }
)


def test_a_file_is_shown_as_the_upstream_lists_it_at_our_address() -> None:
    entry = read_one(page(FULL))
    ours = f"../../{PATH}"
    assert shown(entry) == {**FULL, "url": ours, "provenance": f"{ours}.provenance"}
    assert (entry.sort, entry.key, entry.version) == (parse_version("1.0")[1], WHEEL, "1.0")
    assert entry.published_ms == 1704164645123
    assert not entry.first_seen


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
    entry = read_one(page(listed(**{key: value})))
    assert shown(entry)["core-metadata"] == expected
    assert len(entry.files) == (1 if expected is False else 2)


@pytest.mark.parametrize("name", ["data-core-metadata", "data-dist-info-metadata"])
@pytest.mark.parametrize(
    ("value", "expected"),
    [(f'="sha256={OTHER}"', {"sha256": OTHER}), ('="true"', True), ("", True), ('="false"', False)],
)
def test_metadata_is_found_in_all_spellings_of_html(name: str, value: str, expected: Any) -> None:
    entry = read_one(html(anchor(attributes=name + value)))
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


@pytest.mark.parametrize(
    "filename",
    [
        "demo_pkg-1.0.egg",
        "demo_pkg-1.0.exe",
        "demo_pkg-french.tar.gz",
        "demo_pkg-1.0-py3-none.whl",
        "../demo_pkg-1.0.tar.gz",
        "other-1.0.tar.gz",
        "démo-1.0.tar.gz",
        "",
    ],
)
def test_files_with_other_names_are_left_out(filename: str) -> None:
    assert [each.key for each in read(page(listed(), listed(filename)))[1]] == [WHEEL]


@pytest.mark.parametrize("url", ["ftp://h/x", "https://u:p@h.example/x", "https://[", "https://h:99999/", "file:///x"])
def test_files_that_cannot_be_fetched_are_left_out(url: str) -> None:
    assert read(page(listed(url=url)))[1] == []


@pytest.mark.parametrize(
    "file",
    [
        None,
        3,
        {},
        {"filename": 1, "url": 2},
        {"filename": WHEEL},
        {**FULL, "x": "a" * LARGEST_FILE},
    ],
)
def test_files_that_cannot_be_read_are_left_out(file: Any) -> None:
    assert [each.key for each in read(page(file, listed(SDIST)))[1]] == [SDIST]


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("hashes", [1]),
        ("hashes", {"sha256": "AB", "md5": 3, "crc": "00"}),
        ("size", -1),
        ("size", True),
        ("size", "3"),
        ("upload-time", "yesterday"),
        ("upload-time", "0001-01-01T00:00:00+23:59"),
        ("upload-time", 4),
        ("requires-python", {}),
        ("requires-python", "x" * 5000),
        ("core-metadata", 7),
        ("gpg-sig", "yes"),
        ("provenance", "http://["),
    ],
)
def test_odd_members_are_as_if_they_were_absent(key: str, value: Any) -> None:
    file = {name: each for name, each in FULL.items() if name != key}
    expected = shown(read_one(page(file)))
    assert shown(read_one(page({**file, key: value}))) == expected


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


@pytest.mark.parametrize(
    "source",
    [
        b"",
        b"{}",
        b"{",
        b"[1]",
        b'{"name":"demo-pkg","files":{}}',
        page(name="other"),
        page(name="*"),
        page(name=None),
        page(meta={"api-version": "2.0"}),
        page(listed("other-1.0.tar.gz")),
        page().replace(b"demo", b"d\xff"),
        b"<html><head><title>Sign in</title></head><body><a href='/login'>x</a></body></html>",
        html(anchor("other-1.0.tar.gz")),
        html(head='<meta name="pypi:repository-version" content="2.0">'),
        b"<![<![",
        b"\x89PNG\r\n",
    ],
)
def test_what_is_no_page_of_this_project_is_refused(source: bytes) -> None:
    with pytest.raises(Invalid):
        read(source)


def test_a_project_without_files_is_no_error() -> None:
    assert read(html()) == read(page())


def test_zero_bytes_of_the_upstream_are_no_placeholders() -> None:
    source = html(anchor(attributes='data-yanked="a\x00b" data-requires-python="\x00>=3"'))
    entry = read_one(source)
    assert BASE not in entry.fragments[HTML_PAGE] + entry.fragments[JSON_PAGE]
    assert shown(entry)["yanked"] == "a b"


def test_markup_of_the_upstream_is_escaped() -> None:
    entry = read_one(page(listed(yanked='"><script>')))
    assert b"<script>" not in entry.fragments[HTML_PAGE]
    assert reread(entry)["yanked"] == '"><script>'


def test_entries_are_found_by_the_path_of_each_file() -> None:
    out = io.BytesIO()
    write_parts(out, normalise(page(FULL, listed(SDIST)), Context("demo-pkg", URL)))
    with PartsFile(out.getvalue()) as parts:
        assert parts.count == 2
        for suffix in ("", ".metadata", ".asc", ".provenance"):
            found = parts.find_path(PATH + suffix)
            assert found is not None
            assert (found[0].key, found[1].path) == (WHEEL, PATH + suffix)


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


_TEXTS = st.sampled_from([WHEEL, SDIST, "demo-pkg", "https://h.example/x", "1.0", "", "\x00", "é"]) | st.text(
    max_size=9
)
_VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | _TEXTS,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(_TEXTS, inner, max_size=3),
    max_leaves=6,
)


def _written(source: bytes) -> None:
    with suppress(Invalid):
        write_parts(io.BytesIO(), normalise(source, Context("demo-pkg", URL)))


@given(st.dictionaries(st.sampled_from([*FULL]), _VALUES), st.dictionaries(_TEXTS, _VALUES, max_size=3), _VALUES)
def test_no_json_raises_anything_but_invalid(file: dict[str, Any], top: dict[str, Any], status: Any) -> None:
    members = {**top, "project-status": status, "versions": status, "alternate-locations": status}
    value = {"name": "demo-pkg", **members, "meta": status, "files": [{**FULL, **file}, file]}
    _written(json.dumps(value).encode())


DECLARATIONS = [
    "<!--",
    "-->",
    "<![",
    "<!",
    "<?",
    "&#0;",
    "&#x110000;",
    "<base ",
    "<meta name='pypi:tracks' ",
    "<script>",
]
_MARKUP = st.lists(
    st.sampled_from([*"\"'> \n", "<a ", "href=", "</a>", f"/{WHEEL}", f"#sha256={SHA}", "data-yanked", *DECLARATIONS]),
    max_size=30,
)


@given(_MARKUP)
def test_no_html_raises_anything_but_invalid(markup: list[str]) -> None:
    _written(("<html>" + "".join(markup)).encode())


@given(st.binary(max_size=200))
def test_no_bytes_raise_anything_but_invalid(source: bytes) -> None:
    _written(source)


@pytest.mark.parametrize("text", ["\n1.0\n", " 1.0", "1.0\x1c", "\u2003v1.0\u2003"])
def test_white_space_around_a_version_is_removed(text: str) -> None:
    entry = read_one(page(listed(), versions=[text]))
    assert entry.version in ("1.0", "v1.0")


@pytest.mark.parametrize("size", [-1, 2**53 + 1, 2**64, 10**30, True, 1.5, "1"])
def test_a_size_that_is_none_is_left_out(size: Any) -> None:
    entry = read_one(page(listed(size=size)))
    assert "size" not in shown(entry)
    assert write_and_count(entry) == 1


def write_and_count(entry: Entry) -> int:
    out = io.BytesIO()
    write_parts(out, Normalised(top={}, entries=iter([entry])))
    return PartsFile(out.getvalue()).count
