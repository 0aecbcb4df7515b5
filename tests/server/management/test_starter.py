"""The starter set: repositories with everyday names, made by one request, by the settings and by a button."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.support.memory_server import Stack, running_stacks
from tests.support.python_packages import make_wheel

pytestmark = pytest.mark.server

UPSTREAM = "http://up.example/"
NPM = [("main/npm-hosted", "Hosted"), ("main/npm-proxy", "Proxy"), ("main/npm", "Virtual")]
FILES = [("main/files-hosted", "Hosted"), ("main/files", "Virtual")]


def shown(found: Any, *, made: bool | None = None) -> list[tuple[str, str]]:
    return [(each["repository"], each["type"]) for each in found["items"] if made is None or each["made"] is made]


async def test_each_format_gets_the_address_of_a_team_once(stack: Stack) -> None:
    body = {"formats": ["npm", "raw"], "upstreams": {"npm": UPSTREAM}}
    made = await stack.ok("POST", "/system/starter", body)
    assert shown(made, made=True) == NPM + FILES
    assert made["open_to"].startswith("everybody who reaches the server may read them")
    assert made["hints"] == ["no upstream is known for raw: give its address, and its proxy is made"]
    virtual = await stack.ok("GET", "/repository/main%2Fnpm/config")
    assert (virtual["members"], virtual["publish_to"]) == (["main/npm-hosted", "main/npm-proxy"], "main/npm-hosted")
    proxy = await stack.ok("GET", "/repository/main%2Fnpm-proxy/config")
    assert [each["url"] for each in proxy["proxy"]["routes"]] == [UPSTREAM]
    assert shown(await stack.ok("POST", "/system/starter", body), made=True) == []

    later = await stack.ok("POST", "/system/starter", {"formats": ["raw"], "upstreams": {"raw": UPSTREAM}})
    assert shown(later, made=True) == [("main/files-proxy", "Proxy")]
    assert later["hints"] == ["main/files was there: make main/files-proxy a member of it"]
    assert (await stack.ok("POST", "/system/starter", {"formats": ["npm", "raw"]}))["hints"] == []


async def test_what_is_published_to_a_team_is_installed_from_there(stack: Stack) -> None:
    await stack.ok("POST", "/system/starter", {"formats": ["python"], "visibility": "private"})
    filename, data = make_wheel("demo", "1.0")
    put = await stack.call("PUT", f"/repositories/main/pypi/demo/1.0/{filename}", raw=data)
    assert put.status == 201, put.body
    page = await stack.call("GET", "/repositories/main/pypi/simple/demo/")
    assert (page.status, filename.encode() in page.body) == (200, True)
    assert (await stack.call("GET", "/repositories/main/pypi/simple/demo/", who=None)).status == 401


async def test_all_formats_are_made_without_names(stack: Stack) -> None:
    made = await stack.ok("POST", "/system/starter", {})
    formats = (await stack.ok("GET", "/info"))["formats"]
    virtual = [each["repository"] for each in made["items"] if each["type"] == "Virtual"]
    assert virtual == [f"main/{each['starter']}" for each in formats if each["starter"]]
    assert len(virtual) > 9


@pytest.mark.parametrize(
    ("body", "pointer"),
    [
        ({"formats": ["nmp"]}, "/formats"),
        ({"formats": ["npm"], "upstreams": {"raw": UPSTREAM}}, "/upstreams"),
        ({"formats": ["npm"], "upstreams": {"npm": "ftp://up.example/"}}, "/upstreams/npm"),
        ({"formats": ["npm"], "visibility": "hidden"}, "/visibility"),
        ({"formats": ["npm"], "storage": "fast"}, "/storage"),
    ],
)
async def test_nothing_is_made_of_what_cannot_be(stack: Stack, body: Any, pointer: str) -> None:
    reply = await stack.api("POST", "/system/starter", body)
    assert (reply.status, reply.json["errors"][0]["pointer"]) == (422, pointer), reply.body
    assert (await stack.ok("GET", "/repository"))["items"] == []


async def test_system_managers_alone_make_it(stack: Stack) -> None:
    await stack.add_user("ann")
    assert (await stack.api("POST", "/system/starter", {}, who="ann")).status == 403


async def test_an_address_of_the_request_comes_before_that_of_the_settings(tmp_path: Path) -> None:
    async with running_stacks(tmp_path) as make:
        stack = await make(bootstrap__upstreams={"pypi": "http://old.example/"})  # another name of the format
        await stack.ok("POST", "/system/starter", {"formats": ["python"], "upstreams": {"python": UPSTREAM}})
        proxy = await stack.ok("GET", "/repository/main%2Fpypi-proxy/config")
        assert [each["url"] for each in proxy["proxy"]["routes"]] == [UPSTREAM]


async def test_the_settings_make_it_at_the_first_start(tmp_path: Path) -> None:
    async with running_stacks(tmp_path) as make:
        stack = await make(bootstrap__starter=["npm", "raw"], bootstrap__upstreams={"npm": UPSTREAM})
        registry = stack.assembly.core.registry
        assert sorted(each.path for each in registry.listed()) == sorted(path for path, _ in NPM + FILES)
        body = {"formats": ["npm", "raw"]}
        assert shown(await stack.ok("POST", "/system/starter", body), made=False) == NPM + FILES
