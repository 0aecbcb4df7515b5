"""What is made of the packuments of upstreams: of good ones, of odd ones, and of hostile ones."""

import base64
import json
import subprocess
import sys
from datetime import UTC, datetime
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pkgrepo.errors import Invalid
from pkgrepo.formats.npm import semver
from pkgrepo.formats.npm.limits import README_LENGTH
from pkgrepo.formats.npm.packument.document import (
    FULL,
    SHORT,
    TIME,
    full_fragment,
    short_fragment,
    time_fragment,
    version_document,
)
from pkgrepo.formats.npm.proxied.normaliser import LARGEST_FIELD, NORMALISER, normalise
from pkgrepo.proxy.parts.values import Context, Entry, Normalised
from pkgrepo.repositories.publish.splicing import BASE

URL = "https://registry.example/@sc%2fx"
STAMP = "2024-05-06T07:08:09.123Z"
SHA512, SHA1 = "ab" * 64, "cd" * 20
INTEGRITY = f"sha512-{base64.b64encode(bytes.fromhex(SHA512)).decode()}"
DIST = {"integrity": INTEGRITY, "shasum": SHA1, "fileCount": 3, "unpackedSize": 12, "signatures": [{"keyid": "k"}]}


def manifest(version: str = "1.0.0", **fields: Any) -> dict[str, Any]:
    tarball = f"https://files.example/x-{version}.tgz"
    return {
        "name": "@sc/x",
        "version": version,
        "_id": f"@sc/x@{version}",
        "dist": {**DIST, "tarball": tarball},
        **fields,
    }


def document(*versions: Any, **fields: Any) -> dict[str, Any]:
    return {
        "_id": "@sc/x",
        "_rev": "3-b",
        "name": "@sc/x",
        "dist-tags": {"latest": "1.0.0"},
        "versions": {each["version"]: each for each in versions or (manifest(),)},
        "time": {"created": STAMP, "modified": STAMP, "1.0.0": STAMP},
        **fields,
    }


def read(value: Any, name: str = "@sc/x") -> tuple[dict[str, Any], list[Entry]]:
    source = value if isinstance(value, bytes) else json.dumps(value).encode()
    normalised = normalise(source, Context(name, URL))
    return normalised.top, list(normalised.entries)


def read_one(**fields: Any) -> Entry:
    (entry,) = read(document(manifest(**fields)))[1]
    return entry


def version_of(entry: Entry, kind: str = FULL) -> Any:
    return json.loads(version_document(entry.fragments[kind]).replace(BASE, b"http://h"))


def test_fragments_are_those_of_a_hosted_package() -> None:
    fields: dict[str, Any] = {
        "description": "é\u2028",
        "bin": {"x": "x.js"},
        "cpu": ["x64"],
        "hasInstallScript": True,
        "custom": [1.5, None],
    }
    hosted = {**manifest(**fields), "dist": DIST}
    entry = read_one(**fields, deprecated="old")

    def same(kind: str, wanted: bytes) -> None:
        assert json.loads(b"{%b}" % entry.fragments[kind].replace(BASE, b"")) == json.loads(
            b"{%b}" % wanted.replace(BASE, b"")
        )
        assert entry.fragments[kind].count(BASE) == wanted.count(BASE)

    same(FULL, full_fragment(hosted, "old"))
    same(SHORT, short_fragment(hosted, "old"))
    assert entry.fragments[TIME] == time_fragment("1.0.0", datetime(2024, 5, 6, 7, 8, 9, 123_000, UTC))
    assert set(entry.fragments) == {FULL, SHORT, TIME}


def test_entry_has_the_order_of_a_hosted_version_and_its_text_as_key() -> None:
    for text in ("1.0.0", "1.0.0-rc.1", "1.0.0-rc.1+build.5"):
        version = semver.parse_version(text)
        (entry,) = read(document(manifest(text)))[1]
        assert (entry.sort, entry.key, entry.version) == (version.sort, text, text)
    assert read_one().published_ms == 1_714_979_289_123


def test_tarball_is_looked_for_where_the_upstream_says() -> None:
    (source,) = read_one().files
    assert source.path == "@sc/x/-/x-1.0.0.tgz"
    assert source.url == "https://files.example/x-1.0.0.tgz"
    assert source.digests == {"sha512": SHA512}


@pytest.mark.parametrize(
    ("tarball", "url"),
    [
        ("http://127.0.0.1:1/odd path?x=1", "http://127.0.0.1:1/odd%20path?x=1"),
        ("https://h.example/é%2fx", "https://h.example/%C3%A9%2fx"),
        ("/x/-/x-1.0.0.tgz", "https://registry.example/x/-/x-1.0.0.tgz"),
        ("x-1.0.0.tgz", "https://registry.example/x-1.0.0.tgz"),
    ],
)
def test_address_of_a_tarball_may_be_relative(tarball: str, url: str) -> None:
    assert read_one(dist={**DIST, "tarball": tarball}).files[0].url == url


@pytest.mark.parametrize(
    "tarball",
    [None, "", 7, [], "file:///etc/passwd", "ftp://h/x", "http://[::1", "https://u:p@h/", "https://h/" + "x" * 9000],
)
def test_version_without_a_usable_tarball_is_left_out(tarball: Any) -> None:
    good = manifest("2.0.0")
    bad = manifest(dist={**DIST, "tarball": tarball})
    assert [entry.key for entry in read(document(bad, good))[1]] == ["2.0.0"]


@pytest.mark.parametrize(
    ("dist", "digests"),
    [
        ({"integrity": INTEGRITY + "?opt"}, {"sha512": SHA512}),
        (
            {"integrity": f"sha1-{base64.b64encode(b'a' * 20).decode()} {INTEGRITY}"},
            {"sha512": SHA512, "sha1": "61" * 20},
        ),
        ({"shasum": SHA1.upper()}, {"sha1": SHA1}),
        ({"integrity": "sha512-AAAA", "shasum": SHA1}, {"sha1": SHA1}),
        ({"integrity": "sha512-=", "shasum": "x"}, {}),
        ({"integrity": "crc-AAAA sha512", "shasum": 7}, {}),
        ({"integrity": ["sha512"]}, {}),
    ],
)
def test_digests_are_those_that_the_upstream_gives(dist: Any, digests: dict[str, str]) -> None:
    tarball = "https://files.example/x"
    assert read_one(dist={**dist, "tarball": tarball}).files[0].digests == digests
    assert version_of(read_one(dist={**dist, "tarball": tarball}))["dist"] == {
        "tarball": "http://h/@sc/x/-/x-1.0.0.tgz",
        **dist,
    }


def test_attestations_have_our_address() -> None:
    attestations = {"url": "https://registry.example/a", "provenance": {"predicateType": "p"}}
    entry = read_one(dist={**DIST, "tarball": "https://h/x", "attestations": attestations})
    for kind in (FULL, SHORT):
        assert version_of(entry, kind)["dist"] == {
            "tarball": "http://h/@sc/x/-/x-1.0.0.tgz",
            **DIST,
            "attestations": {
                "url": "http://h/-/npm/v1/attestations/@sc/x@1.0.0",
                "provenance": {"predicateType": "p"},
            },
        }
        assert b"registry.example" not in entry.fragments[kind]


@pytest.mark.parametrize(
    ("fields", "found"),
    [
        ({"scripts": {"postinstall": "x"}}, True),
        ({"scripts": {"test": "x", "install": ""}}, None),
        ({"scripts": {"install": False}}, None),
        ({"scripts": ["install"]}, None),
        ({"gypfile": True}, True),
        ({"gypfile": False}, None),
        ({"hasInstallScript": True}, True),
    ],
)
def test_install_scripts_are_marked(fields: Any, found: bool | None) -> None:
    entry = read_one(**fields)
    assert version_of(entry, SHORT).get("hasInstallScript") is found
    assert version_of(entry, FULL).get("hasInstallScript") is found


def test_install_script_with_an_escaped_name_is_marked() -> None:
    text = json.dumps(document(manifest(scripts={"postinstall": "x"}))).replace("postinstall", "post\\u0069nstall")
    (entry,) = read(text.encode())[1]
    assert version_of(entry)["hasInstallScript"] is True


@pytest.mark.parametrize("deprecated", [None, False, ""])
def test_empty_deprecation_is_none(deprecated: Any) -> None:
    assert "deprecated" not in version_of(read_one(deprecated=deprecated))


def test_readme_of_a_version_is_left_out() -> None:
    assert "readme" not in version_of(read_one(readme="x"))


def test_name_and_number_of_a_version_are_its_keys() -> None:
    entry = read_one(name="other", version="1.0.0")
    assert version_of(entry)["name"] == "@sc/x"
    value = document()
    value["versions"] = {"v1.0.0": manifest("9.9.9")}
    (entry,) = read(value)[1]
    assert (entry.version, version_of(entry)["version"]) == ("1.0.0", "1.0.0")


def test_top_has_the_fields_of_the_upstream() -> None:
    fields = {"description": "d", "maintainers": [{"name": "a"}], "readme": "# x", "unknown": {"a": [1]}, "users": {}}
    top, _ = read(document(**fields, _attachments={}, __proto__={"a": 1}))
    assert top["name"] == "@sc/x"
    assert top["tags"] == {"latest": "1.0.0"}
    assert top["created"] == top["modified"] == STAMP
    assert {key: json.loads(text) for key, text in top["fields"].items()} == fields


def test_long_texts_of_the_top_are_bounded() -> None:
    top, _ = read(document(readme="é" * 10_000_000, users={str(n): True for n in range(50_000)}, license="MIT"))
    assert json.loads(top["fields"]["readme"]) == "é" * README_LENGTH
    assert "users" not in top["fields"]
    assert sum(map(len, top["fields"].values())) < LARGEST_FIELD


def test_half_of_a_surrogate_pair_is_replaced() -> None:
    value = document(manifest(description="\ud83d", keywords=["\ude00", "😀", "\\ud83d"]), readme="cut \ud83d")
    top, (entry,) = read(value)
    assert json.loads(top["fields"]["readme"]) == "cut \ufffd"
    assert version_of(entry)["description"] == "\ufffd"
    assert version_of(entry)["keywords"] == ["\ufffd", "😀", "\\ud83d"]


def test_dist_tags_name_versions_that_exist() -> None:
    tags = {"latest": "2.0.0", "next": "1.0.0", "1.x": "1.0.0", "__proto__": "1.0.0", "bad": 7, "x" * 999: "1.0.0"}
    top, _ = read(document(manifest("1.0.0"), manifest("1.1.0-rc.1"), **{"dist-tags": tags}))
    assert top["tags"] == {"latest": "1.0.0", "next": "1.0.0", "1.x": "1.0.0"}


def test_missing_latest_is_the_highest_release() -> None:
    versions = [manifest(text) for text in ("1.9.0", "1.10.0", "2.0.0-rc.1")]
    assert read(document(*versions, **{"dist-tags": None}))[0]["tags"] == {"latest": "1.10.0"}
    assert read(document(manifest("2.0.0-rc.1"), **{"dist-tags": []}))[0]["tags"] == {"latest": "2.0.0-rc.1"}


@pytest.mark.parametrize("lost", [{"dist": {}}, {"dist": None}, {"dist": {"tarball": "file:///etc/passwd"}}])
def test_no_tag_names_a_version_that_is_left_out(lost: dict[str, Any]) -> None:
    versions = [manifest("1.0.0"), manifest("1.1.0"), manifest("3.0.0"), manifest("2.0.0", **lost)]
    top, entries = read(document(*versions, **{"dist-tags": {"latest": "2.0.0", "next": "2.0.0", "old": "1.0.0"}}))
    assert [each.version for each in entries] == ["1.0.0", "1.1.0", "3.0.0"]
    assert top["tags"] == {"latest": "1.1.0", "old": "1.0.0"}


def test_latest_of_a_version_that_was_removed_goes_to_the_highest_release_below() -> None:
    versions = [manifest("1.0.0"), manifest("1.1.0"), manifest("3.0.0")]
    assert read(document(*versions, **{"dist-tags": {"latest": "2.0.0"}}))[0]["tags"] == {"latest": "1.1.0"}


@pytest.mark.parametrize("time", [None, 7, "", "yesterday", "x" * 1_000_000, "2024-13-01", {"unpublished": 1}])
def test_version_without_a_time_has_none(time: Any) -> None:
    value = document(time={"created": time, "modified": time, "1.0.0": time})
    top, (entry,) = read(value)
    assert entry.published_ms is None
    assert TIME not in entry.fragments
    assert top["created"] == top["modified"] == ""


def test_times_are_in_utc_unless_they_say_otherwise() -> None:
    (utc,) = read(document(time={"1.0.0": "2024-05-06T07:08:09"}))[1]
    (zoned,) = read(document(time={"1.0.0": "2024-05-06T08:08:09+01:00"}))[1]
    assert utc.published_ms == zoned.published_ms == 1_714_979_289_000
    for text in ("0001-01-01T00:00:00+23:59", "9999-12-31T23:59:59-23:59"):
        assert read(document(time={"1.0.0": text}))[1][0].published_ms is not None


@pytest.mark.parametrize(
    ("created", "expected"),
    [
        ("2024-05-06T07:08:09.124Z", STAMP),
        ("2024-05-06T09:08:09.123+02:00", "2024-05-06T09:08:09.123+02:00"),
        ("2012-01-01T00:00:00Z", "2012-01-01T00:00:00Z"),
        ("soon", ""),
    ],
)
def test_package_is_at_least_as_old_as_its_oldest_version(created: str, expected: str) -> None:
    assert read(document(time={"created": created, "1.0.0": STAMP}))[0]["created"] == expected


def test_package_without_versions_has_no_entries() -> None:
    value = document()
    del value["versions"]
    assert read(value)[1] == []


@pytest.mark.parametrize("name", ["@sc/X", "x", "", None, 7, ["@sc/x"]])
def test_document_of_another_name_is_refused(name: Any) -> None:
    with pytest.raises(Invalid, match="not the document of '@sc/x'"):
        read(document(name=name))


def test_names_of_old_packages_have_upper_case_letters() -> None:
    (entry,) = read(document(manifest(), name="JSONStream"), name="JSONStream")[1]
    assert entry.files[0].path == "JSONStream/-/JSONStream-1.0.0.tgz"


@pytest.mark.parametrize(
    "source",
    [
        b"",
        b"null",
        b"[]",
        b"<html>",
        b'{"name":"@sc/x","versions":[]}',
        b'{"name":"@sc/x","versions":null}',
        b'{"name":"@sc/x","versions":{}',
        b'{"name":"@sc/x","readme":"\xff","versions":{}}',
        b'{"name":"@sc/x","readme":"\x00","versions":{}}',
        b'{"name":"@sc/x","versions":{"1.0.0":' + b"[" * 1_000_000 + b"]" * 1_000_000 + b"}}",
        b'{"name":"@sc/x","versions":{},"x":"\\ud800","y":}',
        b'\xef\xbb\xbf{"name":"@sc/x","versions":{}}',
    ],
)
def test_document_that_is_none_is_refused(source: bytes) -> None:
    with pytest.raises(Invalid):
        read(source)


@pytest.mark.parametrize(
    "version", ["", "latest", "1.0", "1.0.0.0", "__proto__", "../1.0.0", "1.0.0/..", f"1.0.{'9' * 5000}", "1.0.0\x00"]
)
def test_version_of_a_wrong_form_is_left_out(version: str) -> None:
    value = document()
    value["versions"][version] = manifest()
    assert [entry.key for entry in read(value)[1]] == ["1.0.0"]


ODD: Any = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5) | st.just("__proto__"), inner),
    max_leaves=8,
)
MEMBERS = ["dist", "scripts", "deprecated", "version", "name", "gypfile", "bin", "constructor", "hasInstallScript"]
IN_DIST = ["tarball", "integrity", "shasum", "attestations", "signatures"]


@given(
    st.dictionaries(st.sampled_from(MEMBERS), ODD),
    st.dictionaries(st.sampled_from(IN_DIST), ODD),
    st.dictionaries(st.sampled_from(["dist-tags", "time", "readme", "maintainers", "_rev", "modified"]), ODD),
)
def test_odd_values_make_documents_that_clients_can_read(fields: Any, dist: Any, top_fields: Any) -> None:
    one = manifest()
    one |= {"dist": {**one["dist"], **dist}} | fields
    value = document()
    value |= {"versions": {"1.0.0": one, "2.0.0": manifest("2.0.0")}} | top_fields
    top, entries = read(value)
    assert {"2.0.0"} <= {entry.version for entry in entries} <= {"1.0.0", "2.0.0"}
    assert set(top["tags"].values()) <= {"1.0.0", "2.0.0"}
    for text in top["fields"].values():
        json.loads(text)
    for entry in entries:
        for kind, fragment in entry.fragments.items():
            assert set(json.loads(b"{%b}" % fragment.replace(BASE, b"http://h"))) == {entry.version}
            assert fragment.count(BASE) == {FULL: 1, SHORT: 1, TIME: 0}[kind] + (b"/-/npm/v1/" in fragment)
        assert msgspec.msgpack.decode(msgspec.msgpack.encode(entry), type=Entry) == entry
    msgspec.msgpack.encode(top)


@given(st.binary())
def test_any_bytes_are_read_or_refused(source: bytes) -> None:
    try:
        found: Normalised | None = normalise(source, Context("x", URL))
    except Invalid:
        found = None
    assert found is None or list(found.entries) == []


def test_process_that_normalises_loads_no_reactor() -> None:
    module, _, function = NORMALISER.partition(":")
    code = (
        f"import sys, {module}; assert callable({module}.{function}); "
        "assert not {'twisted.internet', 'twisted.web', 'apsw', 'klein'} & set(sys.modules)"
    )
    subprocess.run([sys.executable, "-c", code], check=True)
