"""Recognition of evidence: which layers readers see unsigned."""

from __future__ import annotations

import bz2
import gzip
import io
import json
import lzma
import tarfile
from typing import Any

import pytest

from pkgrepo.formats.container.evidence import HEAD, begins_document
from tests.support.images import OCI_CONFIG, OCI_IMAGE, OCI_LAYER, Image, describe, make_image, make_layer
from tests.support.signing import Signer

STATEMENT = "application/vnd.in-toto+json"


def archive(name: str, *, kind: int = tarfile.USTAR_FORMAT) -> bytes:
    made = io.BytesIO()
    with tarfile.open(fileobj=made, mode="w", format=kind) as tar:
        member = tarfile.TarInfo(name)
        member.size = 5
        tar.addfile(member, io.BytesIO(b"hello"))
    return made.getvalue()


def without_nul() -> bytes:
    """An archive whose first header reads like text from end to end."""
    header = bytearray(b'{"a":"'.ljust(512, b"x"))
    header[100:148] = b"0000644 0000000 0000000 00000000005 00000000000 "
    header[329:345] = b"0000000 0000000 "
    header[148:156] = b" " * 8
    header[156:157] = b"0"
    header[148:156] = b"%06o  " % sum(header)
    return bytes(header) + b"hello".ljust(512, b"x")


@pytest.mark.parametrize(
    "data",
    [
        b"{}",
        b'  \n{"_type": "https://in-toto.io/Statement/v1"}',
        b"[]",
        b'<?xml version="1.0"?><bom/>',
        b"SPDXVersion: SPDX-2.3\n",
        b"# a list of licences\n",
        b"\xd2\x84\x43\xa1\x01\x26",
        b'{"payload": "' + b"0" * 2000 + b'"}',
        b'{"name": "' + "\u00e9".encode() * 1000 + b'"}',
        b'{"123456": ' + b"7" * 600 + b"}",
    ],
)
def test_documents_are_recognized(data: bytes) -> None:
    assert begins_document(data[:HEAD])


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"BZh91AY",
        b"plain words",
        gzip.compress(b"{}"),
        bz2.compress(b"{}"),
        lzma.compress(b"{}"),
        b"\x28\xb5\x2f\xfd{}",
        archive("etc/passwd"),
        archive("{"),
        archive('{"a": 1}'),
        archive("[", kind=tarfile.GNU_FORMAT),
        archive("<bom>", kind=tarfile.PAX_FORMAT),
        archive("# \u00e9"),
        without_nul(),
    ],
)
def test_archives_and_compressed_streams_are_no_documents(data: bytes) -> None:
    assert not begins_document(data[:HEAD])


def test_tar_unpacks_an_archive_whose_header_is_text() -> None:
    with tarfile.open(fileobj=io.BytesIO(without_nul())) as tar:
        assert '{"a":"x' in tar.getmembers()[0].name


def pretend(layer: bytes, media_type: str) -> Image:
    """An image that runs what is in ``layer``, under a type that nobody would run."""
    image = make_image()
    value = {
        "schemaVersion": 2,
        "mediaType": OCI_IMAGE,
        "config": describe(image.blobs[0], OCI_CONFIG),
        "layers": [describe(layer, media_type)],
    }
    return Image(json.dumps(value).encode(), (image.blobs[0], layer))


@pytest.mark.parametrize(
    ("layer", "media_type", "status"),
    [
        (b'{"_type": "https://in-toto.io/Statement/v1"}', STATEMENT, 200),
        (make_layer({"run": b"#!/bin/sh"})[0], STATEMENT, 404),
        (gzip.decompress(make_layer({"{": b"#!/bin/sh"})[0]), STATEMENT, 404),
        (without_nul(), "text/spdx+json", 404),
        (b"{}", OCI_LAYER, 404),
    ],
)
async def test_readers_see_unsigned_only_what_cannot_be_unpacked(
    make_registry: Any, layer: bytes, media_type: str, status: int
) -> None:
    registry = await make_registry()
    repository = registry.stack.assembly.core.registry.find("main", "images")
    config = {
        "type": "Hosted",
        "push_rules": {"require_content_trust": True},
        "trust": {"keys": [Signer().pem]},
    }
    await registry.stack.ok("PUT", f"/repository/{repository.uid}/config", config)
    await registry.push(pretend(layer, media_type), "v1")
    assert (await registry.below("GET", "manifests/v1", who=None)).status == status


async def test_layers_that_are_not_there_yet_are_no_evidence(make_registry: Any) -> None:
    registry = await make_registry(policy={"allow_sparse": True})
    repository = registry.stack.assembly.core.registry.find("main", "images")
    config = {
        "type": "Hosted",
        "push_rules": {"require_content_trust": True},
        "policy": {"allow_sparse": True},
        "trust": {"keys": [Signer().pem]},
    }
    await registry.stack.ok("PUT", f"/repository/{repository.uid}/config", config)
    image = pretend(make_layer({"run": b"#!/bin/sh"})[0], STATEMENT)
    assert (await registry.put(image, "v1")).status == 201
    for blob in image.blobs:
        await registry.push_blob(blob)
    assert (await registry.below("GET", "manifests/v1", who=None)).status == 404
