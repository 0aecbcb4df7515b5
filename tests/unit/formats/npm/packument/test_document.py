"""Packuments in both forms, and the address in them."""

import gzip
import json
import zlib
from datetime import UTC, datetime, timedelta, timezone
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pkgrepo.formats.npm.packument import document as packument
from pkgrepo.formats.npm.packument.document import Top
from pkgrepo.repositories.clock import format_time
from pkgrepo.repositories.publish.splicing import BASE, Renderer, Spliced

AT = datetime(2026, 3, 4, 5, 6, 7, 89_999, UTC)
URL = "https://host.example/prefix/repositories/main/npm"
STAMP = "2026-03-04T05:06:07.089Z"
TOP = Top(name="@sc/x", revision="7-a", tags={"latest": "1.0.0"}, created=STAMP, modified=STAMP)


def manifest(version: str = "1.0.0", **fields: Any) -> dict[str, Any]:
    dist = {"integrity": "sha512-A==", "shasum": "ab", "fileCount": 1, "unpackedSize": 2}
    stored = {"name": "@sc/x", "version": version, "_id": f"@sc/x@{version}", "_hasShrinkwrap": False}
    return {
        **stored,
        "description": "d",
        "scripts": {"test": "t"},
        **fields,
        "dist": {**dist, **fields.get("dist", {})},
    }


def render(spliced: Spliced, url: str = URL) -> Any:
    return json.loads(Renderer().render(spliced, url, content_type=packument.FULL_TYPE, serial=1).body)


def times(*versions: str) -> list[bytes]:
    return [packument.time_fragment(version, AT) for version in versions]


def test_full_form_has_all_fields() -> None:
    latest = manifest(author={"name": "a"}, license="MIT", keywords=["k"], custom=1)
    fields = {"maintainers": [{"name": "alice", "email": "a@example.org"}], "license": "MIT", "readme": "# é"}
    top = Top(
        name="@sc/x",
        revision="7-a",
        tags={"latest": "1.0.0"},
        created=STAMP,
        modified="2026-03-04T06:06:07.089Z",
        fields={key: json.dumps(value) for key, value in fields.items()},
    )
    document = render(packument.splice_full(top, times("1.0.0"), [packument.full_fragment(latest)]))
    assert document == {
        "_id": "@sc/x",
        "_rev": "7-a",
        "name": "@sc/x",
        "dist-tags": {"latest": "1.0.0"},
        **fields,
        "time": {
            "created": "2026-03-04T05:06:07.089Z",
            "modified": "2026-03-04T06:06:07.089Z",
            "1.0.0": "2026-03-04T05:06:07.089Z",
        },
        "versions": {
            "1.0.0": {**latest, "dist": {"tarball": f"{URL}/@sc/x/-/x-1.0.0.tgz", **latest["dist"]}},
        },
    }


def test_abbreviated_form_has_its_fields_and_no_others() -> None:
    wanted = {
        "dependencies": {"a": "1"},
        "optionalDependencies": {"b": "1"},
        "devDependencies": {},
        "bundleDependencies": ["a"],
        "bundledDependencies": ["a"],
        "peerDependencies": {"c": "1"},
        "peerDependenciesMeta": {"c": {"optional": True}},
        "acceptDependencies": {"d": "1"},
        "bin": {"x": "x.js"},
        "directories": {"lib": "lib"},
        "engines": {"node": ">=18"},
        "funding": "https://example.org",
        "cpu": ["x64"],
        "os": ["linux"],
        "libc": ["musl"],
        "_hasShrinkwrap": True,
        "hasInstallScript": True,
    }
    stored = manifest(**wanted, _npmUser={"name": "a"}, readme="no", types="x.d.ts")
    fragment = packument.short_fragment(stored, "old")
    document = render(packument.splice_short(TOP, times("1.0.0"), [fragment]))
    assert document == {
        "name": "@sc/x",
        "dist-tags": {"latest": "1.0.0"},
        "modified": "2026-03-04T05:06:07.089Z",
        "time": dict.fromkeys(("created", "modified", "1.0.0"), "2026-03-04T05:06:07.089Z"),
        "versions": {
            "1.0.0": {
                "name": "@sc/x",
                "version": "1.0.0",
                **wanted,
                "deprecated": "old",
                "dist": {"tarball": f"{URL}/@sc/x/-/x-1.0.0.tgz", **stored["dist"]},
            }
        },
    }


def test_absent_fields_stay_absent_in_the_abbreviated_form() -> None:
    document = render(packument.splice_short(TOP, [], [packument.short_fragment(manifest(cpu=None))]))
    assert set(document["versions"]["1.0.0"]) == {"name", "version", "dist"}


def test_deprecation_is_in_both_forms() -> None:
    for render_fragment in (packument.full_fragment, packument.short_fragment):
        assert (
            json.loads(b"{%b}" % render_fragment(manifest(), 'say "no"').replace(BASE, b""))["1.0.0"]["deprecated"]
            == 'say "no"'
        )
        assert b"deprecated" not in render_fragment(manifest())


@pytest.mark.parametrize("fields", [{}, {"x": {"deprecated": "y"}}, {"x": '"deprecated":"y"'}, {"scripts": {}}])
@pytest.mark.parametrize("before", ["", "old", 'say "no"', '","deprecated":"', "é\\"])
@pytest.mark.parametrize("after", ["", "new", '"'])
def test_a_deprecation_is_changed_in_the_fragment(fields: dict[str, Any], before: str, after: str) -> None:
    for render_fragment in (packument.full_fragment, packument.short_fragment):
        fragment = render_fragment(manifest(**fields), before)
        assert packument.with_deprecation(fragment, after) == render_fragment(manifest(**fields), after)


def test_attestations_have_the_whole_address() -> None:
    stored = manifest(dist={"attestations": {"provenance": {"predicateType": "p"}}, "signatures": [{"keyid": "k"}]})
    document = render(packument.splice_full(TOP, [], [packument.full_fragment(stored)]))
    assert document["versions"]["1.0.0"]["dist"] == {
        "tarball": f"{URL}/@sc/x/-/x-1.0.0.tgz",
        "integrity": "sha512-A==",
        "shasum": "ab",
        "fileCount": 1,
        "unpackedSize": 2,
        "signatures": [{"keyid": "k"}],
        "attestations": {
            "url": f"{URL}/-/npm/v1/attestations/@sc/x@1.0.0",
            "provenance": {"predicateType": "p"},
        },
    }


def test_document_of_a_version_is_cut_from_its_fragment() -> None:
    fragment = packument.full_fragment(manifest("1.0.0-rc.1+b"))
    version = json.loads(packument.version_document(fragment).replace(BASE, b"http://h"))
    assert version["version"] == "1.0.0-rc.1+b"
    assert version["dist"]["tarball"] == "http://h/@sc/x/-/x-1.0.0-rc.1+b.tgz"


def test_versions_keep_their_order() -> None:
    versions = ["0.9.0", "1.0.0-rc.1", "1.0.0", "1.10.0"]
    fragments = [packument.full_fragment(manifest(each)) for each in versions]
    document = render(packument.splice_full(TOP, times(*versions), fragments))
    assert list(document["versions"]) == versions
    assert list(document["time"]) == ["created", "modified", *versions]


def test_published_text_cannot_contain_the_placeholder() -> None:
    stored = manifest(description=BASE.decode(), custom={BASE.decode(): "\x00"})
    document = render(packument.splice_full(TOP, [], [packument.full_fragment(stored)]))
    assert document["versions"]["1.0.0"]["description"] == BASE.decode()
    assert document["versions"]["1.0.0"]["custom"] == {BASE.decode(): "\x00"}


@pytest.mark.parametrize("url", ['http://h"/x', "http://h\\x", "http://é"])
def test_unusual_address_is_escaped(url: str) -> None:
    document = render(packument.splice_full(TOP, [], [packument.full_fragment(manifest())]), url)
    assert document["versions"]["1.0.0"]["dist"]["tarball"] == f"{url}/@sc/x/-/x-1.0.0.tgz"


def test_revision_changes_with_every_change() -> None:
    assert packument.revision("x", 7) == packument.revision("x", 7)
    assert packument.revision("x", 7).startswith("7-")
    assert len({packument.revision("x", 7), packument.revision("x", 8), packument.revision("y", 7)}) == 3


def test_times_are_utc_with_milliseconds() -> None:
    local = datetime(2026, 1, 1, 0, 30, tzinfo=timezone(timedelta(hours=1)))
    assert format_time(local) == "2025-12-31T23:30:00.000Z"


def spliced(versions: list[str], salt: str = "") -> Spliced:
    fragments = [packument.short_fragment(manifest(each, bin={"x": salt + each * 20})) for each in versions]
    return packument.splice_short(TOP, times(*versions), fragments)


VERSIONS = st.lists(st.integers(0, 2000), unique=True, max_size=300).map(lambda ns: [f"1.{n}.0" for n in sorted(ns)])


@given(VERSIONS, VERSIONS)
def test_cached_groups_do_not_change_the_document(first: list[str], second: list[str]) -> None:
    kept = Renderer()
    for versions in (first, second, first):
        parts = spliced(versions)
        document = kept.render(parts, URL, content_type=packument.SHORT_TYPE, serial=3)
        assert document.body == parts.joined().replace(BASE, URL.encode())
        assert (document.gzip is None) == (parts.size < 1024)
        if document.gzip is not None:
            assert gzip.decompress(document.gzip) == document.body
            one = zlib.decompressobj(31)
            assert one.decompress(document.gzip) == document.body
            assert one.eof
            assert one.unused_data == b""
        fresh = Renderer().render(parts, URL, content_type=packument.SHORT_TYPE, serial=3)
        assert fresh == document


def test_validator_follows_bytes_and_address() -> None:
    versions = [f"1.{n}.0" for n in range(100)]
    renderer = Renderer()

    def etag(parts: Spliced, url: str = URL) -> str:
        return renderer.render(parts, url, content_type=packument.SHORT_TYPE, serial=3).etag

    fragments = [packument.full_fragment(manifest(each)) for each in versions]
    etags = [
        etag(spliced(versions)),
        etag(spliced(versions[:-1])),
        etag(spliced(versions), URL + "2"),
        etag(spliced(versions, "changed")),
        etag(packument.splice_full(TOP, times(*versions), fragments)),
    ]
    assert len(set(etags)) == len(etags)
    assert etag(spliced(versions)) == etags[0]


def test_one_more_version_compresses_one_group(monkeypatch: pytest.MonkeyPatch) -> None:
    versions = [f"1.{n}.0" for n in range(2000)]
    renderer = Renderer()
    compressed: list[int] = []
    real = zlib.compressobj

    def counting(*args: Any) -> Any:
        compressed.append(1)
        return real(*args)

    monkeypatch.setattr(zlib, "compressobj", counting)
    renderer.render(spliced(versions), URL, content_type=packument.SHORT_TYPE, serial=3)
    assert len(compressed) > 15
    compressed.clear()
    for more in ("1.5.1", "1.999.1", "2.0.0"):
        place = sorted([*versions, more], key=lambda text: tuple(map(int, text.split("."))))
        renderer.render(spliced(place), URL, content_type=packument.SHORT_TYPE, serial=3)
        assert len(compressed) <= 3  # the head with the times, and a group, or its two halves
        compressed.clear()


def test_cache_of_groups_is_bounded() -> None:
    renderer = Renderer(cache_size=10_000)
    for n in range(30):
        renderer.render(spliced([f"{n}.{m}.0" for m in range(50)]), URL, content_type=packument.SHORT_TYPE, serial=3)
    assert sum(len(each) for _, each in renderer.cache.items()) <= 10_000
    assert renderer.cache
