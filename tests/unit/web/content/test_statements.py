"""The console shows what SBOMs and attestations of images say."""

from __future__ import annotations

import json

from tests.support.browser import Browser
from tests.support.console_content import HOSTILE
from tests.support.images import Image, Registry, describe, make_artifact, make_image

CYCLONEDX = {
    "bomFormat": "CycloneDX",
    "specVersion": "1.6",
    "components": [
        {"group": "@acme", "name": "pad", "version": "1.2"},
        {"name": "zlib", "licenses": [{"expression": "Zlib OR MIT"}]},
        {"name": HOSTILE},
    ],
}
PROVENANCE = {"predicateType": "https://slsa.dev/provenance/v1", "predicate": {HOSTILE: 1}}


def about(image: Image, *documents: bytes) -> Image:
    """A manifest with documents about an image."""
    layers = [describe(each, "application/vnd.cyclonedx+json") for each in documents]
    made = make_artifact(image, "application/vnd.cyclonedx+json", layers=layers)
    return Image(made.manifest, (*made.blobs, *documents))


async def test_a_referrer_is_read_by_api_and_console(browser: Browser) -> None:
    stack, image = browser.stack, make_image("one")
    sbom = about(image, json.dumps(CYCLONEDX).encode(), json.dumps(PROVENANCE).encode(), b"plain text")
    await stack.add_repository("images", format="docker")
    registry = Registry(stack)
    await registry.push(image, "v1")
    await registry.push(sbom)
    place = f"packages/app/versions/{sbom.digest}/statements"
    found = await stack.ok("GET", f"/package/main%2Fimages/app/versions/{sbom.digest}/statements", who=None)
    assert [(each["kind"], each["component_count"], each["problem"]) for each in found] == [
        ("CycloneDX 1.6", 3, ""),
        ("https://slsa.dev/provenance/v1", 0, ""),
        ("application/vnd.cyclonedx+json", 0, "it is not JSON"),
    ]
    await browser.log_in()
    page = await browser.get("/ui/repositories/main/images/packages/app/versions/v1")
    assert any(link.endswith("/statements") for link in page.links)
    page = await browser.get(f"/ui/repositories/main/images/{place}")
    assert (page.status, "@acme/pad" in page.text, "3 components" in page.text) == (200, True, True)
    assert "<script>window" not in page.html
    page = await browser.get(f"/ui/repositories/main/images/{place}?q=zlib")
    assert ("@acme/pad" in page.text, "Zlib OR MIT" in page.text) == (False, True)
