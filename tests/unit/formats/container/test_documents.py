"""Parsing of manifests: what they refer to, and which are refused."""

from __future__ import annotations

import base64
import json
from typing import Any

import pytest

from pkgrepo.errors import Invalid
from pkgrepo.formats.container import documents
from pkgrepo.formats.container.documents import ManifestDocument, parse_manifest
from pkgrepo.formats.container.names import DigestInvalid
from tests.support.images import (
    DOCKER_LIST,
    EMPTY,
    OCI_CONFIG,
    OCI_IMAGE,
    OCI_INDEX,
    OCI_LAYER,
    SCHEMA_1,
    describe,
    digest_of,
    make_artifact,
    make_image,
    make_index,
)

CONFIG = describe(b"config", OCI_CONFIG)
LAYER = describe(b"layer", OCI_LAYER)


def image(**changes: Any) -> bytes:
    value = {"schemaVersion": 2, "mediaType": OCI_IMAGE, "config": CONFIG, "layers": [LAYER], **changes}
    return json.dumps({key: each for key, each in value.items() if each is not None}).encode()


def parse(data: bytes, content_type: str = "", **options: bool) -> ManifestDocument:
    return parse_manifest(data, content_type, **options)


def test_an_image_requires_its_config_and_layers() -> None:
    document = parse(image(), OCI_IMAGE)
    assert [(each.digest, each.kind, each.size) for each in document.required] == [
        (CONFIG["digest"], "config", 6),
        (LAYER["digest"], "layer", 5),
    ]
    assert document.media_type == OCI_IMAGE
    assert document.subject is None
    assert document.artifact_type == OCI_CONFIG


def test_artifact_types_may_have_parameters_and_unknown_keys_are_ignored() -> None:
    document = parse(image(artifactType="application/x.thing+json;version=0.3", Extra={"Layers": 1}))
    assert document.artifact_type == "application/x.thing+json;version=0.3"


def test_an_index_requires_its_manifests() -> None:
    child = make_image()
    document = parse(make_index([child]).manifest, OCI_INDEX)
    assert [(each.digest, each.kind) for each in document.required] == [(child.digest, "manifest")]
    assert document.artifact_type is None


def test_a_referrer_tells_its_subject_type_and_annotations_without_requiring_the_subject() -> None:
    subject = make_image()
    document = parse(make_artifact(subject, "text/spdx", annotations={"a": "b"}).manifest)
    assert document.subject == subject.digest
    assert document.artifact_type == "text/spdx"
    assert document.annotations == {"a": "b"}
    assert subject.digest not in [each.digest for each in document.required]


@pytest.mark.parametrize("content_type", ["", "application/json", "application/octet-stream"])
def test_the_type_is_taken_from_the_document_when_the_request_does_not_say(content_type: str) -> None:
    assert parse(image(), content_type).media_type == OCI_IMAGE
    assert parse(image(mediaType=None), content_type).media_type == OCI_IMAGE
    assert parse(make_index([]).manifest, content_type).media_type == OCI_INDEX


@pytest.mark.parametrize(
    "layer",
    [
        {**LAYER, "urls": ["https://elsewhere.example/layer"]},
        {**LAYER, "mediaType": "application/vnd.docker.image.rootfs.foreign.diff.tar.gzip"},
        {**LAYER, "mediaType": "application/vnd.oci.image.layer.nondistributable.v1.tar+gzip"},
        {**LAYER, "data": base64.b64encode(b"layer").decode()},
    ],
)
def test_foreign_layers_are_not_required(layer: dict[str, Any]) -> None:
    document = parse(image(layers=[layer]))
    assert [each.kind for each in document.required] == ["config"]
    assert (LAYER["digest"], "layer") in document.references


@pytest.mark.parametrize(
    ("data", "content_type", "word"),
    [
        (b"", "", "JSON"),
        (b"[]", "", "object"),
        (b"{}", "", "kind"),
        (b"{", "", "JSON"),
        (b"[" * 100_000, "", "JSON"),
        (b'{"schemaVersion": 2, "schemaVersion": 2}', "", "twice"),
        (image(), DOCKER_LIST, "calls itself"),
        (image(manifests=[]), "", "either"),
        (image(schemaVersion=1), "", "schema 1"),
        (image(), SCHEMA_1, "schema 1"),
        (image(mediaType=SCHEMA_1), "", "schema 1"),
        (image(layers=None), "", "layers"),
        (image(config=None), OCI_IMAGE, "config"),
        (image(layers=[LAYER] * 10_001), "", "at most"),
        (image(layers=["x"]), "", "object"),
        (image(layers=[{**LAYER, "size": -1}]), "", "size"),
        (image(layers=[{**LAYER, "size": True}]), "", "size"),
        (image(layers=[{**LAYER, "mediaType": ""}]), "", "mediaType"),
        (image(layers=[{**LAYER, "data": "!"}]), "", "base64"),
        (image(layers=[{**LAYER, "data": base64.b64encode(b"other").decode()}]), "", "content"),
        (image(annotations={"a": 1}), "", "annotations"),
        (image(artifactType=1), "", "artifactType"),
        (image(mediaType="no type"), "", "media type"),
        (image(mediaType=None), "no type", "media type"),
        (image(mediaType="application/x.other+json"), "", "other_media_types"),
        (
            json.dumps({"schemaVersion": 2, "mediaType": OCI_INDEX, "manifests": [], "config": CONFIG}).encode(),
            "",
            "neither",
        ),
        (image(subject=LAYER, annotations={"a": "b" * 70_000}), "", "annotations"),
        (image(subject=LAYER, annotations={"a": "\u20ac" * 30_000}), "", "annotations"),
        (image(subject=LAYER, annotations={"a": "\ud800"}), "", "annotations"),
        (image(subject=LAYER, annotations={"\udead": "a"}), "", "annotations"),
        (image(artifactType="a/" + "b" * 300), "", "artifactType"),
        (image(artifactType="\ud800"), "", "artifactType"),
        (image(artifactType="a\0b"), "", "artifactType"),
        (image(config={**CONFIG, "mediaType": "a/" + "b" * 300}), "", "mediaType"),
        (image(config={**CONFIG, "mediaType": "\udfff"}), "", "mediaType"),
        (image(schemaVersion=2.0), "", "schemaVersion"),
        (image(anything=float("nan")), "", "JSON"),
        (image().decode().encode("utf-16"), "", "JSON"),
        (b"\xef\xbb\xbf" + image(), "", "JSON"),
        (image(Layers=[]), "", "Layers"),
        (image(MediaType=OCI_INDEX), "", "MediaType"),
    ],
)
def test_malformed_manifests_are_refused_with_the_reason(data: bytes, content_type: str, word: str) -> None:
    with pytest.raises(Invalid, match=word):
        parse(data, content_type)


@pytest.mark.parametrize("digest", ["sha256:abc", "md5:" + "0" * 32, 7, None])
def test_a_malformed_digest_is_refused_as_such(digest: object) -> None:
    with pytest.raises(DigestInvalid):
        parse(image(layers=[{**LAYER, "digest": digest}]))


def test_other_media_types_are_accepted_where_the_policy_allows_them() -> None:
    blob = describe(EMPTY, "text/plain")
    document = parse(json.dumps({"blobs": [blob]}).encode(), "application/x.other+json", other_types=True)
    assert document.media_type == "application/x.other+json"
    assert [each.digest for each in document.required] == [digest_of(EMPTY)]


def test_a_manifest_of_many_values_is_refused_before_it_is_parsed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(documents, "_object", None)
    with pytest.raises(Invalid, match="the manifest has more than 250000 values"):
        parse(image(more=[[]] * 250_000), "")


@pytest.mark.parametrize("subject", [None, make_image().descriptor], ids=["without subject", "with subject"])
@pytest.mark.parametrize(
    "change",
    [
        {"annotations": {"a": "\ud800"}},
        {"annotations": {"\ud800": "a"}},
        {"manifests": [make_image().descriptor | {"mediaType": "x"}]},
        {"manifests": [make_image().descriptor | {"mediaType": "a/b; c=d"}]},
        {"manifests": [make_image().descriptor | {"annotations": {"a": "\ud800"}}]},
        {"manifests": [make_image().descriptor | {"annotations": {"a": 1}}]},
    ],
)
def test_an_index_is_refused_for_the_same_with_and_without_a_subject(change: Any, subject: Any) -> None:
    value = {"schemaVersion": 2, "mediaType": OCI_INDEX, "manifests": [make_image().descriptor], "subject": subject}
    assert parse(json.dumps(value).encode()).media_type == OCI_INDEX
    with pytest.raises(Invalid):
        parse(json.dumps({**value, **change}).encode())
