"""Known vulnerabilities by API, in searches, in the JSON of Python projects, and on pages."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest
import pytest_twisted

from pkgrepo.composition.core import make_formats
from pkgrepo.config import Config
from pkgrepo.repositories.advisories.package_urls import read_purl
from tests.support.conda_packages import make_conda
from tests.support.images import Image, Registry, describe, make_image, make_index
from tests.support.memory_server import Stack
from tests.support.npm_packages import make_publish
from tests.support.osv_records import (
    MINIMIST,
    PY,
    REQUESTS,
    REQUESTS_PYSEC,
    affected,
    record,
    since,
    write_folder,
    write_zip,
)


@pytest_twisted.async_yield_fixture
async def filled(make_stack: Any, tmp_path: Path) -> Any:
    """Two repositories with packages, and a source that is not loaded yet."""
    source = write_folder(tmp_path / "osv", [REQUESTS, REQUESTS_PYSEC, PY])
    stack = await make_stack(advisories__source=str(source))
    await stack.add_repository("py")
    for name, version in (("requests", "2.28.1"), ("requests", "2.31.0"), ("py", "1.11.0"), ("fine", "1.0")):
        await stack.publish("main/py", name, version)
    await stack.add_repository("npm", format="npm")
    path, headers = "/repositories/main/npm/minimist", {"Content-Type": "application/json"}
    assert (await stack.call("PUT", path, raw=make_publish("minimist", "1.2.0"), headers=headers)).status == 201
    yield stack


async def load(stack: Stack) -> Any:
    """Load the source, also if the schedule does so just now."""
    while (reply := await stack.api("POST", "/advisories/refresh?wait=true")).status == 409:
        pass
    assert reply.status == 200
    return reply.json


async def findings(stack: Stack, query: str = "") -> list[tuple[str, str, str, list[str]]]:
    found = await stack.ok("GET", f"/advisories?{query}", who=None)
    return [
        (each["package"], each["advisory"]["id"], each["advisory"]["severity"], each["versions"])
        for each in found["items"]
    ]


REQUESTS_FOUND = ("requests", "GHSA-j8r2-6x86-q33q", "moderate", ["2.28.1"])
PY_FOUND = ("py", "PYSEC-2022-42969", "unknown", ["1.11.0"])


async def test_vulnerabilities_of_a_repository_are_listed_the_worst_first(filled: Stack) -> None:
    await load(filled)
    assert await findings(filled, "repository=main/py") == [REQUESTS_FOUND, PY_FOUND]
    assert await findings(filled, "repository=main/py&sort=package") == [PY_FOUND, REQUESTS_FOUND]
    assert await findings(filled, "repository=main/py&severity=unknown") == [PY_FOUND]
    assert await findings(filled, "repository=main/py&package=Requests") == [REQUESTS_FOUND]
    found = await filled.ok("GET", "/advisories?repository=main/py&limit=1")
    assert (found["severities"], found["packages"], found["checked"]) == ({"moderate": 1, "unknown": 1}, 2, True)
    rest = await filled.ok("GET", f"/advisories?repository=main/py&limit=1&cursor={found['next']}")
    assert ([each["package"] for each in rest["items"]], rest["next"]) == (["py"], None)
    assert (await filled.api("GET", "/advisories?repository=main/none")).status == 404
    assert (await filled.api("GET", "/advisories?package=requests")).status == 422
    assert (await filled.api("GET", "/advisories?severity=dreadful")).status == 422


async def test_what_is_not_known_is_said(filled: Stack) -> None:
    await load(filled)
    found = await filled.ok("GET", "/advisories?repository=main/npm")
    assert (found["items"], found["checked"]) == ([], False)
    assert found["problems"] == {"npm": "the advisories of this server have no record of npm"}
    page = await filled.call("GET", "/ui/repositories/main/npm/vulnerabilities")
    assert b"Nothing was checked: the advisories of this server have no record of npm." in page.body
    version = await filled.ok("GET", "/package/main%2Fnpm/minimist/versions/1.2.0/advisories")
    assert (version["items"], version["checked"]) == ([], False)
    listed = await filled.ok("GET", "/repository/main%2Fnpm/packages")
    assert listed["items"][0]["vulnerabilities"] is None
    hits = await filled.ok("GET", "/search/packages?q=minimist&facets=true")
    assert (hits["facets"]["vulnerable"], hits["facets"]["unchecked"]) == (0, ["npm"])
    only = await filled.api("GET", "/search/packages?q=is:vulnerable&repository=main/npm")
    assert (only.status, b"nothing is known" in only.body) == (503, True)
    audit = await filled.call(
        "POST", "/repositories/main/npm/-/npm/v1/security/advisories/bulk", {"minimist": ["1.2.0"]}
    )
    assert (audit.status, b"nothing was checked" in audit.body) == (503, True)


async def test_lists_and_searches_have_numbers_and_the_worst_severity(filled: Stack) -> None:
    await load(filled)
    listed = await filled.ok("GET", "/repository/main%2Fpy/packages")
    assert {each["name"]: (each["vulnerabilities"], each["severity"]) for each in listed["items"]} == {
        "fine": (0, None),
        "py": (1, "unknown"),
        "requests": (1, "moderate"),
    }
    versions = await filled.ok("GET", "/package/main%2Fpy/requests/versions")
    assert [(each["version"], each["vulnerabilities"]) for each in versions["items"]] == [("2.31.0", 0), ("2.28.1", 1)]
    found = await filled.ok("GET", "/search/packages?q=is:vulnerable&facets=true&format=python")
    assert [each["name"] for each in found["items"]] == ["requests", "py"]
    assert (found["facets"]["hits"], found["facets"]["vulnerable"], found["facets"]["unchecked"]) == (2, 2, [])
    worst = await filled.ok("GET", "/search/packages?severity=moderate&q=req")
    assert [each["name"] for each in worst["items"]] == ["requests"]
    assert (await filled.ok("GET", "/search/packages?vulnerable=true&q=fine"))["items"] == []
    page = await filled.call("GET", "/ui/search?q=is:vulnerable")
    assert b"requests" in page.body
    assert b"1 vulnerability, moderate" in page.body


async def test_a_version_page_names_them_and_the_fixed_versions(filled: Stack) -> None:
    await load(filled)
    page = (await filled.call("GET", "/ui/repositories/main/py/packages/requests/versions/2.28.1")).body.decode()
    for text in (
        "Unintended leak of Proxy-Authorization",
        "GHSA-j8r2-6x86-q33q, CVE-2023-32681",
        "<code>2.31.0</code>",
    ):
        assert text in page
    clean = (await filled.call("GET", "/ui/repositories/main/py/packages/requests/versions/2.31.0")).body.decode()
    assert "None of the advisories that this server has is about this version" in clean
    tab = (await filled.call("GET", "/ui/repositories/main/py/vulnerabilities?severity=moderate")).body.decode()
    assert "2 packages with known vulnerabilities" in tab
    assert "The py library" not in tab


async def test_python_json_has_the_vulnerabilities_of_the_version(filled: Stack) -> None:
    path = "/repositories/main/py/pypi/requests/2.28.1/json"
    await load(filled)
    (found,) = (await filled.call("GET", path, who=None)).json["vulnerabilities"]
    assert (found["id"], found["fixed_in"]) == ("GHSA-j8r2-6x86-q33q", ["2.31.0"])
    assert "PYSEC-2023-74" in found["aliases"]
    newest = (await filled.call("GET", "/repositories/main/py/pypi/requests/json", who=None)).json
    assert newest["vulnerabilities"] == []


async def test_python_json_without_data_does_not_say_that_there_are_none(make_stack: Any) -> None:
    stack = await make_stack()
    await stack.add_repository("py")
    await stack.publish("main/py", "requests", "2.28.1")
    assert "vulnerabilities" not in (await stack.call("GET", "/repositories/main/py/pypi/requests/json")).json
    data = await stack.ok("GET", "/advisories/data")
    assert (data["loaded_at"], "was given no advisories" in data["problem"]) == (None, True)
    assert (await stack.api("POST", "/advisories/refresh")).status == 422


async def test_old_data_find_and_never_find_nothing(filled: Stack, tmp_path: Path) -> None:
    write_folder(tmp_path / "osv", [MINIMIST])
    for each in (tmp_path / "osv").rglob("*.json"):
        os.utime(each, (0, 0))
    await load(filled)
    bulk = "/repositories/main/npm/-/npm/v1/security/advisories/bulk"
    hit = await filled.call("POST", bulk, {"minimist": ["1.2.0"]})
    assert (hit.status, list(hit.json)) == (200, ["minimist"])
    assert "days old" in hit.headers["npm-notice"]
    assert (await filled.call("POST", bulk, {"minimist": ["1.2.3"]})).status == 503
    version = await filled.ok("GET", "/package/main%2Fpy/requests/versions/2.31.0/advisories")
    assert (version["total"], version["checked"], "days old" in version["problem"]) == (0, False, True)
    listed = await filled.ok("GET", "/package/main%2Fpy/requests/versions")
    assert [each["vulnerabilities"] for each in listed["items"]] == [None, 1]
    checks = (await filled.call("GET", "/readyz")).json
    assert (checks["status"], "days old" in checks["checks"]["advisories"]) == ("ok", True)
    assert b"pkgrepo_advisories_complete 0.0" in (await filled.call("GET", "/metrics")).body
    project = (await filled.call("GET", "/repositories/main/py/pypi/requests/json", who=None)).json
    assert "vulnerabilities" not in project


async def test_hidden_repositories_are_not_told_of(filled: Stack) -> None:
    await load(filled)
    await filled.add_repository("secret", visibility="private")
    await filled.publish("main/secret", "requests", "2.28.1")
    assert await findings(filled) == [REQUESTS_FOUND, PY_FOUND]
    assert (await filled.api("GET", "/advisories?repository=main/secret", who=None)).status == 404
    assert len((await filled.ok("GET", "/advisories"))["items"]) == 3
    assert (await filled.ok("GET", "/advisories/data", who=None))["source"] == ""
    assert (await filled.api("POST", "/advisories/refresh", who=None)).status == 401


def question(name: str, version: str, ecosystem: str = "PyPI") -> dict[str, Any]:
    return {"package": {"name": name, "ecosystem": ecosystem}, "version": version}


async def test_questions_of_the_osv_api_are_answered(filled: Stack) -> None:
    await load(filled)
    (found,) = (await filled.ok("POST", "/osv/v1/query", question("Requests", "2.28.1"), who=None))["vulns"]
    assert (found["id"], found["aliases"]) == ("GHSA-j8r2-6x86-q33q", ["CVE-2023-32681", "PYSEC-2023-74"])
    assert found["affected"][0]["ranges"][0]["events"] == [{"introduced": "2.3.0"}, {"fixed": "2.31.0"}]
    assert found["severity"] == [{"type": "CVSS_V3", "score": "CVSS:3.1/AV:N/AC:H/PR:N/UI:R/S:C/C:H/I:N/A:N"}]
    assert (await filled.ok("POST", "/osv/v1/query", question("requests", "2.31.0")))["vulns"] == []
    purl = {"package": {"purl": "pkg:pypi/py@1.11.0"}}
    batch = await filled.ok("POST", "/osv/v1/querybatch", {"queries": [question("fine", "1.0"), purl]})
    assert [[each["id"] for each in one["vulns"]] for one in batch["results"]] == [[], ["PYSEC-2022-42969"]]


async def test_an_answer_to_many_questions_is_bounded(make_stack: Any, tmp_path: Path) -> None:
    records = [record(f"X-{number}", affected("PyPI", "demo", *since("0"))) for number in range(6)]
    stack: Stack = await make_stack(advisories__source=str(write_zip(tmp_path / "many.zip", records)))
    await load(stack)
    few = await stack.ok("POST", "/osv/v1/querybatch", {"queries": [question("demo", "1.0")] * 800})
    assert {len(each["vulns"]) for each in few["results"]} == {6}
    many = await stack.api("POST", "/osv/v1/querybatch", {"queries": [question("demo", "1.0")] * 1000})
    assert (many.status, b"ask in parts" in many.body) == (422, True)


async def test_questions_of_the_osv_api_without_data_are_refused(filled: Stack) -> None:
    assert (await filled.api("POST", "/osv/v1/query", question("minimist", "1.0.0", "npm"))).status == 503
    await load(filled)
    unknown = await filled.api("POST", "/osv/v1/query", question("minimist", "1.0.0", "npm"))
    assert (unknown.status, b"have no record of npm" in unknown.body) == (503, True)
    for wrong in (
        question("serde", "1.0.0", "Go"),
        question("requests", ""),
        question("requests", "not one"),
        {"commit": "6879efc2c1596d11a6a6ad296f80063b558d5e0f"},
        {"package": {"purl": "pkg:hex/plug@1.0"}},
        {"package": {"purl": "requests"}},
    ):
        assert (await filled.api("POST", "/osv/v1/query", wrong)).status == 422, wrong


@pytest.mark.parametrize(
    ("purl", "read"),
    [
        ("pkg:npm/%40angular/core@16.0.0", ("npm", "@angular/core", "16.0.0")),
        ("pkg:npm/left-pad", ("npm", "left-pad", "9")),
        ("pkg:maven/org.acme/core@1.0?type=jar#a", ("Maven", "org.acme:core", "1.0")),
        ("pkg:gem/rack@2.2.3", ("RubyGems", "rack", "2.2.3")),
        ("pkg:PyPI/Foo_Bar@1.0%2Bcpu", ("PyPI", "Foo_Bar", "1.0+cpu")),
    ],
)
def test_package_urls_are_read(purl: str, read: tuple[str, str, str]) -> None:
    found = read_purl(purl, make_formats(Config()).values(), "")
    assert found.format.ecosystem is not None
    assert (found.format.ecosystem.name, found.name, found.version or "9") == read


BOM: dict[str, Any] = {
    "bomFormat": "CycloneDX",
    "specVersion": "1.6",
    "components": [
        {"name": "requests", "version": "2.28.1", "purl": "pkg:pypi/requests@2.28.1"},
        {"name": "requests", "version": "2.31.0", "purl": "pkg:pypi/Requests@2.31.0"},
        {"name": "py", "version": "1.11.0", "purl": "pkg:pypi/py@1.11.0"},
        {"name": "minimist", "version": "1.2.0", "purl": "pkg:npm/minimist@1.2.0"},
        {"name": "musl", "version": "1.2.5", "purl": "pkg:apk/alpine/musl@1.2.5"},
        {"name": "unnamed", "version": "1"},
    ],
}


async def test_components_of_images_are_checked_by_their_package_urls(filled: Stack) -> None:
    await load(filled)
    await filled.add_repository("images", format="docker")
    document = json.dumps(BOM).encode()
    image = make_image("one", layers=[describe(document, "application/vnd.cyclonedx+json")])
    await Registry(filled).push(Image(image.manifest, (*image.blobs, document)), "v1")
    (found,) = await filled.ok("GET", "/package/main%2Fimages/app/versions/v1/statements")
    shown = [(each["vulnerabilities"], each["severity"], each["checked"]) for each in found["components"]]
    assert shown == [
        (["GHSA-j8r2-6x86-q33q"], "moderate", True),
        ([], None, True),
        (["PYSEC-2022-42969"], "unknown", True),
        ([], None, False),
        ([], None, False),
        ([], None, False),
    ]
    page = (await filled.call("GET", "/ui/repositories/main/images/packages/app/versions/v1/statements")).body.decode()
    assert "2 with known vulnerabilities" in page
    assert page.count("not checked") == 3


async def known(stack: Stack, package: str, version: str) -> tuple[list[tuple[str, list[str]]], bool, str]:
    found = await stack.ok("GET", f"/package/{package}/versions/{version}/advisories")
    assert found["total"] == len(found["items"])
    return [(each["id"], each["components"]) for each in found["items"]], found["checked"], found["problem"]


def bom(subject: Image, *components: dict[str, str]) -> Image:
    """A manifest with a bill of materials about an image."""
    document = json.dumps({"bomFormat": "CycloneDX", "specVersion": "1.6", "components": components}).encode()
    kind = "application/vnd.cyclonedx+json"
    made = make_image(subject.digest, layers=[describe(document, kind)], subject=subject.descriptor, artifactType=kind)
    return Image(made.manifest, (*made.blobs, document))


AFFECTED, CLEAN, ELSE = BOM["components"][0], BOM["components"][1], BOM["components"][4]


async def test_images_are_compared_by_their_bills_of_materials(filled: Stack) -> None:
    await load(filled)
    await filled.add_repository("images", format="docker")
    registry, app = Registry(filled), "main%2Fimages/app"
    image, other = make_image("one"), make_image("two", architecture="arm64")
    await registry.push(image, "v1")
    assert await known(filled, app, "v1") == (
        [],
        False,
        "there is no bill of materials (SBOM) about this image that names components",
    )
    await registry.push(bom(image, CLEAN), "sbom1")
    assert await known(filled, app, "v1") == ([], True, "")
    await registry.push(bom(image, AFFECTED, ELSE), "sbom2")
    items, checked, problem = await known(filled, app, "v1")
    assert (items, checked) == ([("GHSA-j8r2-6x86-q33q", ["pkg:pypi/requests@2.28.1"])], False)
    assert problem.startswith("1 of 3 components were not compared")
    page = (await filled.call("GET", "/ui/repositories/main/images/packages/app/versions/v1")).body.decode()
    assert "There may be others: 1 of 3 components" in page
    assert "pkg:pypi/requests@2.28.1<br>" in page

    await registry.push(other, "arm")
    await registry.push(make_index([image, other]), "both")
    _, checked, problem = await known(filled, app, "both")
    assert (checked, problem.partition(";")[0]) == (
        False,
        "1 of 2 platforms have no bill of materials (SBOM) that was read whole",
    )


async def test_package_urls_in_labels_of_images_are_compared(filled: Stack) -> None:
    await load(filled)
    await filled.add_repository("images", format="docker")
    labels = {"Labels": {"org.example.source": "pkg:pypi/requests@2.28.1", "name": "x"}}
    await Registry(filled).push(make_image("one", settings=labels), "v1")
    items, checked, problem = await known(filled, "main%2Fimages/app", "v1")
    assert (items, checked) == ([("GHSA-j8r2-6x86-q33q", ["pkg:pypi/requests@2.28.1"])], False)
    assert problem == "1 of 1 platforms have no bill of materials (SBOM) that was read whole"


@pytest.mark.parametrize(
    ("more", "items", "checked"),
    [
        ({}, [], False),
        ({"purls": ["pkg:pypi/requests"]}, [("GHSA-j8r2-6x86-q33q", ["pkg:pypi/requests"])], True),
        ({"purls": ["pkg:pypi/requests@2.31.0"]}, [], True),
        ({"documents": {"about.json": {"extra": {"purls": ["pkg:pypi/py@1.11.0"]}}}},
         [("PYSEC-2022-42969", ["pkg:pypi/py@1.11.0"])], True),
        ({"purls": ["pkg:pypi/fine@1", "pkg:deb/debian/x@1", 7]}, [], False),
    ],
    ids=["none", "unversioned", "clean", "recipe", "others"],
)  # fmt: skip
async def test_conda_packages_are_compared_by_the_package_urls_that_they_name(
    filled: Stack, more: Any, items: Any, checked: Any
) -> None:
    await load(filled)
    await filled.add_repository("channel", format="conda")
    name = "requests-2.28.1-py_0.conda"
    data = make_conda("requests", "2.28.1", **more)
    assert (await filled.call("PUT", f"/repositories/main/channel/noarch/{name}", raw=data)).status in (200, 201)
    found = await known(filled, "main%2Fchannel/requests", "2.28.1")
    assert found[:2] == (items, checked)
    assert bool(found[2]) is not checked
