"""Publish documents of each client, and invalid ones."""

import hashlib
import json
from collections.abc import Callable
from typing import Any

import pytest

from pkgrepo.errors import Invalid
from pkgrepo.formats.npm.publish.envelope import Publication, read_publication
from pkgrepo.formats.npm.publish.manifest import check_announced
from pkgrepo.formats.npm.publish.scanner import PublishScanner
from tests.support.npm_packages import CLIENTS, make_publish, make_tarball


def read(body: bytes, url_name: str | None = None) -> tuple[Publication, bytes]:
    scanner = PublishScanner()
    data = b"".join(event for event in scanner.feed(body) if isinstance(event, bytes))
    return read_publication(scanner.finish(), url_name), data


@pytest.mark.parametrize("client", CLIENTS)
@pytest.mark.parametrize("name", ["x", "@sc/x"])
def test_documents_of_every_client_are_read(client: str, name: str) -> None:
    publication, data = read(make_publish(name, "1.0.0-rc.1", client=client, tag="beta"), name)
    assert publication.name == name
    assert publication.version.text == "1.0.0-rc.1"
    assert publication.tags == ("beta",)
    assert publication.filename == "x-1.0.0-rc.1.tgz"
    assert publication.bundle is None
    assert data == make_tarball(name, "1.0.0-rc.1")
    check_announced(publication.manifest, {each: hashlib.new(each, data).hexdigest() for each in ("sha1", "sha512")})


def test_provenance_bundle_is_read() -> None:
    publication, _ = read(make_publish("@sc/x", "1.0.0", bundle='{"mediaType":"b"}'))
    assert publication.bundle == '{"mediaType":"b"}'


@pytest.mark.parametrize("said", ["1.0.0-rc.1", "v1.0.0-rc.1", "1.0.0-rc.1+build.5"])
@pytest.mark.parametrize("attached", ["1.0.0-rc.1", "v1.0.0-rc.1", "1.0.0-rc.1+build.5"])
def test_spellings_of_one_version_are_accepted(said: str, attached: str) -> None:
    document = json.loads(make_publish("@sc/x", said, tag="beta", bundle="{}"))
    document["_attachments"] = {key.replace(said, attached): each for key, each in document["_attachments"].items()}
    publication, _ = read(json.dumps(document).encode())
    assert (publication.version.text, publication.filename) == ("1.0.0-rc.1", "x-1.0.0-rc.1.tgz")
    assert publication.tags == ("beta",)
    assert publication.bundle is not None


def change(edit: Callable[[dict[str, Any]], Any]) -> bytes:
    document = json.loads(make_publish("x", "1.0.0"))
    edit(document)
    return json.dumps(document).encode()


def test_version_is_latest_when_no_tag_is_given() -> None:
    assert read(change(lambda d: d.pop("dist-tags")))[0].tags == ("latest",)
    assert read(change(lambda d: d.update({"dist-tags": {"a": "1.0.0", "b": "1.0.0"}})))[0].tags == ("a", "b")


def test_name_may_be_given_once() -> None:
    assert read(change(lambda d: d.pop("_id")))[0].name == "x"
    assert read(change(lambda d: d.pop("name")))[0].name == "x"
    assert read(change(lambda d: (d.pop("name"), d.pop("_id"))), "x")[0].name == "x"


def rename_attachment(name: str) -> Callable[[dict[str, Any]], Any]:
    return lambda d: d.update(_attachments={name: d["_attachments"]["x-1.0.0.tgz"]})


@pytest.mark.parametrize(
    ("edit", "why"),
    [
        (lambda d: (d.pop("name"), d.pop("_id")), "does not name the package"),
        (lambda d: d.update(name=1), "does not name the package"),
        (lambda d: d.update(_id="y"), "is of package 'y', not 'x'"),
        (lambda d: d.pop("versions"), "must have one version, and has 0"),
        (lambda d: d["versions"].update({"2.0.0": {}}), "must have one version, and has 2"),
        (lambda d: d.update(versions=[]), "must be an object"),
        (lambda d: d.update(versions={"1.0.0": []}), "is no object"),
        (lambda d: d.update(versions={"1.0": d["versions"]["1.0.0"]}), "invalid version: '1.0'"),
        (lambda d: d["versions"]["1.0.0"].update(name="y"), "manifest is of package 'y'"),
        (lambda d: d["versions"]["1.0.0"].update(version="1.0.1"), "manifest is of version '1.0.1'"),
        (lambda d: d["versions"]["1.0.0"].pop("version"), "manifest is of version nothing"),
        (lambda d: d.pop("_attachments"), "one tarball 'x-1.0.0.tgz' attached, and has none"),
        (lambda d: d.update(_attachments={"x-1.0.0.tgz": {}}), "attached, and has none"),
        (rename_attachment("y-1.0.0.tgz"), "attached, and has 'y-1.0.0.tgz'"),
        (rename_attachment("../../x-1.0.1.tgz"), "attached, and has '../../x-1.0.1.tgz'"),
        (lambda d: d["_attachments"].update({"b": {"data": "QUJD"}}), "attached, and has 'x-1.0.0.tgz' and 'b'"),
        (lambda d: d["_attachments"]["x-1.0.0.tgz"].update(length=1), "not '1' as announced"),
        (lambda d: d["_attachments"]["x-1.0.0.tgz"].update(length="x"), "not 'x' as announced"),
        (lambda d: d["_attachments"].update({"x-1.0.0.sigstore": {"data": 1}}), "no provenance bundle"),
        (lambda d: d.update({"dist-tags": {"1.x": "1.0.0"}}), "invalid tag"),
        (lambda d: d.update({"dist-tags": {"latest": "2.0.0"}}), "stands for '2.0.0'"),
        (lambda d: d.update({"dist-tags": {"latest": {}}}), "stands for nothing"),
        (lambda d: d.update({"dist-tags": {f"t{n}": "1.0.0" for n in range(101)}}), "more than 100 dist-tags"),
    ],
)
def test_contradictory_or_incomplete_document_is_refused(edit: Callable[[dict[str, Any]], Any], why: str) -> None:
    with pytest.raises(Invalid, match=why) as caught:
        read(change(edit))
    assert str(caught.value).isprintable()


def test_document_for_another_address_is_refused() -> None:
    with pytest.raises(Invalid, match="is of package 'x', not 'y'"):
        read(make_publish("x", "1.0.0"), "y")


@pytest.mark.parametrize("name", ["Upper", "fs", "../x", "@sc/", "__proto__"])
def test_names_follow_the_rules_for_new_ones(name: str) -> None:
    with pytest.raises(Invalid, match="invalid package name"):
        read(make_publish(name, "1.0.0"))
