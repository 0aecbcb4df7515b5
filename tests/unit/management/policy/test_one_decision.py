"""Documents, files by their path, explanations and rehearsals decide alike, over generated rules."""

from __future__ import annotations

import random
from collections.abc import Mapping
from typing import Any
from urllib.parse import quote

import pytest

from tests.support.images import Registry, make_image
from tests.support.memory_server import Stack
from tests.support.npm_packages import make_publish

SEEDS = range(6)
ROUNDS = 6  # sets of rules for each seed
ACTIONS = ("block", "block", "quarantine", "warn")
MISSING = ({}, {"missing": "allow"}, {"missing": "block"})

CONDITIONS: Mapping[str, list[dict[str, Any]]] = {
    "python": [
        {"versions": "1.5"},
        {"versions": "~=1.4"},
        {"versions": "1.5.* || >=2"},
        {"versions": "!=1.5"},
        {"packages": ["DE*"]},
        {"packages": ["other"]},
        {"licences": ["GPL*"]},
        {"licences": ["MIT"]},
        {"advisories": "any"},
        {"install_scripts": True},
        {"install_scripts": False},
        {"age_days": 7},
        {"source": "hosted"},
        {"source": "cached"},
    ],
    "npm": [
        {"versions": "^1.2"},
        {"versions": "1.x"},
        {"versions": "1.0.0 || 2"},
        {"licences": ["GPL*"]},
        {"licences": ["*"]},
        {"advisories": "critical"},
        {"install_scripts": True},
        {"install_scripts": False},
        {"age_days": 7},
    ],
    "docker": [
        {"versions": "v1"},
        {"versions": ">=2"},
        {"versions": "*"},
        {"labels": {"stage": "dev"}},
        {"labels": {"stage": "*"}},
        {"age_days": 7},
        {"source": "hosted"},
    ],
}


def make_rules(draw: random.Random, format: str) -> list[dict[str, Any]]:
    rules = []
    for number in range(draw.randint(1, 3)):
        match: dict[str, Any] = {}
        for each in draw.sample(CONDITIONS[format], draw.randint(1, 2)):
            match |= each
        rule = {"name": f"rule {number}", "match": match, "action": draw.choice(ACTIONS), **draw.choice(MISSING)}
        if draw.random() < 0.2:
            rule["exempt"] = [draw.choice(["demo@1.5", "demo@2.0.0", "demo@1.*", "app@v1"])]
        if format != "npm" or "@1.5" not in str(rule.get("exempt")):
            rules.append(rule)
    return rules or [{"name": "all"}]


async def rehearsed(stack: Stack, repository: str, rules: list[dict[str, Any]]) -> tuple[set[Any], set[Any]]:
    """The versions, with the file if others are served, that are stored and would be refused, and that were fetched."""
    found = await stack.ok(
        "POST", "/policy/rehearse?wait=true", {"rules": rules, "repository": f"main/{repository}", "days": 2}
    )
    assert not found["truncated"]
    return tuple({(each["version"], each["file"]) for each in found[what]} for what in ("stored", "refused"))  # type: ignore[return-value]


async def set_rules(stack: Stack, repository: str, rules: list[dict[str, Any]]) -> None:
    await stack.ok("PATCH", f"/repository/main%2F{repository}/config/policy", {"rules": rules})


async def explained(stack: Stack, repository: str, package: str, **what: str) -> str:
    query = "&".join(f"{name}={quote(value)}" for name, value in what.items())
    found = await stack.ok("GET", f"/explain?repository=main/{repository}&package={package}&{query}")
    return str(found["outcome"])


@pytest.mark.parametrize("seed", SEEDS)
async def test_each_file_of_python_projects(stack: Stack, seed: int) -> None:
    await stack.add_repository("py")
    await stack.add_repository("all", config={"type": "Virtual", "members": ["main/py"]})
    files: dict[str, str] = {}
    for version, sdist, fields in (
        ("1.4", False, [("License", "MIT")]),
        ("1.4", True, [("License", "MIT")]),
        ("1.5", False, [("License", "GPL-3.0-only")]),
        ("1.5+local", False, []),
        ("1.5.1", True, [("License", "MIT")]),
        ("2.0", False, []),
    ):
        files[await stack.publish("main/py", "demo", version, sdist=sdist, fields=fields)] = version
    paths = {each: f"demo/{version}/{quote(each)}" for each, version in files.items()}
    for path in paths.values():
        assert (await stack.call("GET", f"/repositories/main/py/{path}", who=None)).status == 200
    of_version = {text: [each for each in files if files[each] == text] for text in files.values()}
    draw = random.Random(seed)
    for _ in range(ROUNDS):
        rules = make_rules(draw, "python")
        stored, fetched = await rehearsed(stack, "py", rules)
        await set_rules(stack, "py", rules)
        pages = [
            (await stack.call("GET", f"/repositories/main/{name}/simple/demo/", who=None)).body.decode()
            for name in ("py", "all")
        ]
        refused: set[str] = set()
        for each, path in paths.items():
            statuses = {
                (await stack.call("GET", f"/repositories/main/{name}/{path}", who=None)).status
                for name in ("py", "all")
            }
            hidden = statuses == {403}
            assert statuses <= ({403} if hidden else {200}), (rules, each, statuses)
            assert {f">{each}<" in page for page in pages} == {not hidden}, (rules, each)
            outcome = await explained(stack, "py", "demo", file=f"packages/demo/{files[each]}/{each}")
            assert outcome == ("blocked" if hidden else "served"), (rules, each, outcome)
            refused |= {each} if hidden else set()
        whole = {text for text, some in of_version.items() if refused.issuperset(some)}
        for text in of_version:
            outcome = await explained(stack, "py", "demo", version=text)
            assert outcome == ("blocked" if text in whole else "served"), (rules, text, outcome)
        some = {(files[each], each) for each in refused if files[each] not in whole}
        assert stored == {(text, "") for text in whole} | some, rules
        told = {(files[each], "" if len(of_version[files[each]]) == 1 else each) for each in refused}
        assert fetched == told, rules
        await set_rules(stack, "py", [])


@pytest.mark.parametrize("seed", SEEDS)
async def test_each_version_of_npm_packages(stack: Stack, seed: int) -> None:
    await stack.add_repository("npm", format="npm")
    versions = ("1.0.0", "1.2.0", "1.9.0", "2.0.0")
    for version, fields in zip(
        versions,
        (
            {"license": "MIT"},
            {"license": "GPL-3.0-only", "scripts": {"postinstall": "x"}},
            {},
            {"license": "MIT", "scripts": {"install": "x"}},
        ),
        strict=True,
    ):
        body = make_publish("demo", version, **fields)
        headers = {"Content-Type": "application/json"}
        assert (await stack.call("PUT", "/repositories/main/npm/demo", raw=body, headers=headers)).status == 201
    paths = {each: f"/repositories/main/npm/demo/-/demo-{each}.tgz" for each in versions}
    for path in paths.values():
        assert (await stack.call("GET", path, who=None)).status == 200
    draw = random.Random(seed)
    for _ in range(ROUNDS):
        rules = make_rules(draw, "npm")
        stored, fetched = await rehearsed(stack, "npm", rules)
        await set_rules(stack, "npm", rules)
        document = await stack.call("GET", "/repositories/main/npm/demo", who=None)
        shown = set(document.json["versions"]) if document.status == 200 else set()
        refused = {each for each in versions if (await stack.call("GET", paths[each], who=None)).status == 403}
        assert shown == {*versions} - refused, rules
        for each in versions:
            outcome = await explained(stack, "npm", "demo", version=each)
            assert outcome == ("blocked" if each in refused else "served"), (rules, each)
        assert stored == fetched == {(each, "") for each in refused}, rules
        await set_rules(stack, "npm", [])


@pytest.mark.parametrize("seed", SEEDS)
async def test_each_manifest_of_images(stack: Stack, seed: int) -> None:
    await stack.add_repository("images", format="docker")
    registry = Registry(stack)
    images = {
        "v1": make_image("one", settings={"Labels": {"stage": "dev"}}),
        "2.0": make_image("two", settings={"Labels": {"stage": "production"}}),
        "3.0": make_image("three"),
    }
    for tag, image in images.items():
        await registry.push(image, tag)
    draw = random.Random(seed)
    labels = {"name": "labels", "match": {"labels": {"no": "such"}}, "action": "warn"}
    await set_rules(stack, "images", [labels])
    for tag in images:  # labels are read when a rule first asks for them
        assert (await stack.call("GET", f"/v2/main/images/app/manifests/{tag}")).status == 200
    for _ in range(ROUNDS):
        rules = make_rules(draw, "docker")
        stored, fetched = await rehearsed(stack, "images", rules)
        await set_rules(stack, "images", rules)
        refused = set()
        for tag, image in images.items():
            roads = [f"/v2/main/images/app/manifests/{each}" for each in (tag, image.digest)]
            statuses = [(await stack.call("GET", road)).status for road in roads]
            assert statuses in ([200, 200], [403, 403]), (rules, tag, statuses)
            refused |= {(tag, "")} if statuses == [403, 403] else set()
            outcome = await explained(stack, "images", "app", version=tag)
            assert outcome == ("blocked" if statuses == [403, 403] else "served"), (rules, tag)
        tags = {image.digest: tag for tag, image in images.items()}  # by which some of them were fetched
        assert stored == {(tags.get(name, name), file) for name, file in fetched} == refused, rules
        await set_rules(stack, "images", [labels])
