"""What manifests about images say: bills of materials as components, attestations and other JSON as text."""

from __future__ import annotations

import base64
import json
from typing import Any

import pytest

from pkgrepo.management.packages.statements import MOST_COMPONENTS, MOST_TEXT, MOST_VALUES, read_statement
from tests.support.console_content import HOSTILE
from tests.support.images import OCI_LAYER, Image, Registry, describe, make_image
from tests.support.memory_server import Stack

CYCLONEDX = {
    "bomFormat": "CycloneDX",
    "specVersion": "1.6",
    "metadata": {"component": {"name": "app"}},
    "components": [
        {
            "type": "library",
            "group": "@acme",
            "name": "pad",
            "version": "1.2",
            "licenses": [{"license": {"id": "MIT"}}],
        },
        {"name": "zlib", "version": 5, "licenses": [{"expression": "Zlib OR MIT"}, {"license": {"name": "Own"}}]},
        {"name": HOSTILE, "purl": "pkg:npm/x@1"},
    ],
}
SPDX = {
    "spdxVersion": "SPDX-2.3",
    "name": "app",
    "creationInfo": {"creators": ["Tool: syft-1.0", "Organization: acme"]},
    "packages": [
        {"name": "musl", "versionInfo": "1.2.5", "licenseConcluded": "NOASSERTION", "licenseDeclared": "MIT"},
        {"name": "x", "externalRefs": [{"referenceType": "purl", "referenceLocator": "pkg:apk/x@2"}]},
    ],
}
PROVENANCE = {"predicateType": "https://slsa.dev/provenance/v1", "subject": [{"name": "app"}], "predicate": {"a": 1}}


def encoded(value: Any) -> bytes:
    return json.dumps(value).encode()


def enveloped(value: Any) -> dict[str, str]:
    payload = base64.b64encode(encoded(value)).decode()
    return {"payloadType": "application/vnd.in-toto+json", "payload": payload}


def statement(predicate: Any) -> dict[str, Any]:
    return {"predicateType": "https://cyclonedx.org/bom", "subject": [{"name": "img"}], "predicate": predicate}


def test_components_of_bills_of_materials_are_read() -> None:
    found = read_statement(encoded(CYCLONEDX))
    assert (found.kind, found.count, found.subjects, found.problem) == ("CycloneDX 1.6", 3, ("app",), "")
    assert [(each.name, each.version, each.license, each.kind) for each in found.components[:2]] == [
        ("@acme/pad", "1.2", "MIT", "library"),
        ("zlib", "", "Zlib OR MIT AND Own", ""),
    ]
    found = read_statement(encoded(SPDX))
    assert (found.kind, found.count, found.made_by) == ("SPDX-2.3", 2, "Tool: syft-1.0, Organization: acme")
    assert [(each.name, each.version, each.license, each.purl) for each in found.components] == [
        ("musl", "1.2.5", "MIT", ""),
        ("x", "", "", "pkg:apk/x@2"),
    ]


@pytest.mark.parametrize(
    "value",
    [
        statement(CYCLONEDX),
        enveloped(statement(CYCLONEDX)),
        {"mediaType": "application/vnd.dev.sigstore.bundle.v0.3+json", "dsseEnvelope": enveloped(statement(CYCLONEDX))},
        statement({"Data": json.dumps(CYCLONEDX)}),
    ],
    ids=["statement", "envelope", "bundle", "text"],
)
def test_bills_of_materials_are_found_in_statements(value: Any) -> None:
    found = read_statement(encoded(value))
    assert (found.kind, found.count, found.subjects) == ("CycloneDX 1.6", 3, ("img",))


def test_other_documents_are_text() -> None:
    found = read_statement(encoded(enveloped(PROVENANCE)))
    assert (found.kind, found.text) == ("https://slsa.dev/provenance/v1", '{\n  "a": 1\n}')
    found = read_statement(encoded({"critical": {"type": "x"}}))
    assert (found.kind, json.loads(found.text)) == ("JSON", {"critical": {"type": "x"}})


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"{",
        b"[" * 100_000,
        encoded([0] * (MOST_VALUES + 10)),
        encoded("x" * 10 * MOST_TEXT),
        encoded({"bomFormat": "CycloneDX", "components": 5}),
        encoded({"payloadType": "x", "payload": "%"}),
        b'{"a": "\xff"}',
    ],
)
def test_what_cannot_be_read_says_so(data: bytes) -> None:
    found = read_statement(data)
    assert found.problem
    assert not found.components


def test_envelopes_in_envelopes_end() -> None:
    value: Any = PROVENANCE
    for _ in range(20):
        value = enveloped(value)
    assert not read_statement(encoded(value)).components


def test_lists_have_bounds() -> None:
    many = {**CYCLONEDX, "components": [{"name": str(each)} for each in range(MOST_COMPONENTS + 1)]}
    found = read_statement(encoded(many))
    assert (len(found.components), found.count) == (MOST_COMPONENTS, MOST_COMPONENTS + 1)


async def test_statements_are_those_of_images_that_the_caller_may_see(stack: Stack) -> None:
    await stack.add_repository("images", format="docker", visibility="private")
    await stack.add_repository()
    await stack.publish("main/py", "demo", "1.0")
    image = make_image("one", layers=[describe(b"x", OCI_LAYER)])
    image = Image(image.manifest, (*image.blobs, b"x"))
    await Registry(stack).push(image, "v1")
    path = "/package/main%2Fimages/app/versions/v1/statements"
    assert [each["problem"] for each in await stack.ok("GET", path)] == ["it is not JSON"]
    assert (await stack.api("GET", path, who=None)).status in (401, 404)
    assert (await stack.api("GET", "/package/main%2Fpy/demo/versions/1.0/statements")).status == 404
