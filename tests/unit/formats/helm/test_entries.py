"""Indexes of other servers become entries: what is kept of hostile and odd ones."""

import json

import pytest
import yaml

from pkgrepo.errors import Invalid
from pkgrepo.formats.helm import entries
from pkgrepo.formats.helm.entries import ENTRY, normalise_index
from pkgrepo.proxy.parts.values import Context

SHA256 = "ab" * 32
CONTEXT = Context("index.yaml", "https://charts.example/stable/index.yaml")


def one(**fields):
    return {"name": "demo", "version": "1.0.0", "urls": ["demo-1.0.0.tgz"], "digest": SHA256, **fields}


def normalise(*listed, name="demo", **top):
    document = {"apiVersion": "v1", "entries": {name: list(listed)}, **top}
    return list(normalise_index(yaml.safe_dump(document).encode(), CONTEXT).entries)


@pytest.mark.parametrize(
    ("url", "expected"),
    [
        ("demo-1.0.0.tgz", "https://charts.example/stable/demo-1.0.0.tgz"),
        ("../x/demo-1.0.0.tgz", "https://charts.example/x/demo-1.0.0.tgz"),
        ("/files/demo.tgz", "https://charts.example/files/demo.tgz"),
        ("demo:1.tgz", "https://charts.example/stable/demo:1.tgz"),
        ("http://cdn.example:8080/a.tgz", "http://cdn.example:8080/a.tgz"),
    ],
)
def test_an_archive_may_be_anywhere(url, expected):
    [entry] = normalise(one(urls=[url, "https://never.example/x"]))
    assert [each.url for each in entry.files] == [expected, f"{expected}.prov"]
    assert [each.path for each in entry.files] == ["charts/demo-1.0.0.tgz", "charts/demo-1.0.0.tgz.prov"]
    assert json.loads(entry.fragments[ENTRY])["urls"] == ["charts/demo-1.0.0.tgz"]


def test_an_entry_has_the_fields_that_helm_knows_and_no_others():
    [entry] = normalise(one(odd=1, created="2026-01-02T03:04:05.123456789Z", appVersion="1.10", removed=False), weird=1)
    assert json.loads(entry.fragments[ENTRY]) == {
        "apiVersion": "v1",
        "name": "demo",
        "version": "1.0.0",
        "appVersion": "1.10",
        "urls": ["charts/demo-1.0.0.tgz"],
        "digest": SHA256,
        "created": "2026-01-02T03:04:05.123Z",
    }
    assert entry.published_ms == 1_767_323_045_123


@pytest.mark.parametrize(
    ("said", "digests"),
    [(f"sha256:{SHA256}", {"sha256": SHA256}), (SHA256.upper(), {"sha256": SHA256}), ("x", {}), (None, {})],
)
def test_a_digest_may_have_its_algorithm(said, digests):
    [entry] = normalise(one(digest=said))
    assert entry.files[0].digests == digests


@pytest.mark.parametrize(
    "broken",
    [
        "text",
        {},
        {"name": "demo", "version": "1.0.0"},
        one(urls=[]),
        one(urls="demo.tgz"),
        one(urls=["oci://charts.example/demo"]),
        one(urls=["file:///etc/passwd"]),
        one(urls=["http://[x/demo.tgz"]),
        one(name="other"),
        one(version="latest"),
        one(version=""),
        one(version=None),
        one(description="x" * 300_000),
        one(name="../demo"),
    ],
)
def test_an_entry_that_nobody_can_use_does_not_take_others_with_it(broken):
    assert [each.version for each in normalise(broken, one(version="2.0.0"))] == ["2.0.0"]


def test_of_two_entries_of_one_version_the_first_counts():
    first, second = one(urls=["first.tgz"]), one(urls=["second.tgz"])
    assert [each.files[0].url[-9:] for each in normalise(first, second)] == ["first.tgz"]


def test_versions_have_the_order_of_helm_also_with_missing_parts():
    found = normalise(*(one(version=each) for each in ("1.2", "v1.10.0", "1.2.0-rc.1", "2", "1.2.1+b")))
    found.sort(key=lambda each: each.sort)
    assert [each.version for each in found] == ["1.2.0-rc.1", "1.2", "1.2.1+b", "v1.10.0", "2"]


def test_an_index_may_be_json_and_may_be_empty():
    document = {"apiVersion": "v1", "entries": {"demo": [one()]}}
    assert len(list(normalise_index(json.dumps(document).encode(), CONTEXT).entries)) == 1
    for source in (b"apiVersion: v1\nentries: {}\n", b"apiVersion: v1\n", b"entries:\n", b'{"entries": null}'):
        assert list(normalise_index(source, CONTEXT).entries) == []


@pytest.mark.parametrize(
    "source",
    [b"", b"<html><body>Log in</body></html>", b"[]", b"a: b", b"entries: [", b"{", b"\xff\xfe", b"a: *b", b"[" * 5000],
)
def test_what_is_no_index_is_refused(source):
    with pytest.raises(Invalid):
        normalise_index(source, CONTEXT)


def test_aliases_do_not_make_an_index_grow_without_end(monkeypatch):
    monkeypatch.setattr(entries, "LARGEST", 10_000)
    words = ", ".join(["w" * 50] * 100)
    listed = "\n".join(f"  - {{name: demo, version: 1.0.{number}, urls: [a], keywords: *k}}" for number in range(100))
    source = f"x: &k [{words}]\nentries:\n  demo:\n{listed}\n".encode()
    with pytest.raises(Invalid, match="more than 10000 bytes"):
        list(normalise_index(source, CONTEXT).entries)
