"""Configurations: as a whole, in parts, and the description of their keys."""

from __future__ import annotations

from typing import Any

import pytest

from pkgrepo.storage.catalog.server import repositories
from tests.support.memory_server import Stack

HOSTED: list[dict[str, Any]] = [
    {"type": "Hosted"},
    {"type": "Hosted", "auth": {"enabled": True}},
    {"type": "Hosted", "page": "# Title"},
    {"type": "Hosted", "x_team": {"name": "core", "pager": [1, 2]}},
]


@pytest.mark.parametrize("config", HOSTED)
async def test_what_is_written_is_read_byte_for_byte_and_can_be_written_back(
    stack: Stack, config: dict[str, Any]
) -> None:
    made = await stack.add_repository()
    path = f"/repository/{made['id']}/config"
    written = await stack.api("PUT", path, config)
    assert written.status == 200
    assert written.json == config
    read = await stack.api("GET", path)
    assert read.body == written.body
    again = await stack.api("PUT", path, raw=read.body, headers={"If-Match": read.headers["etag"]})
    assert again.body == read.body
    assert len(await stack.audited(action="repository.configure")) == (config != HOSTED[0])


async def test_parts_are_set_and_reset_one_by_one(stack: Stack) -> None:
    made = await stack.add_repository()
    path = f"/repository/{made['id']}/config"
    assert (await stack.ok("PUT", f"{path}/auth", {"enabled": True})) == {"enabled": True}
    assert (await stack.ok("PUT", f"{path}/x_note", "free")) == "free"
    assert await stack.ok("GET", path) == {"type": "Hosted", "auth": {"enabled": True}, "x_note": "free"}
    assert await stack.ok("GET", f"{path}/python") == {"type": "Hosted"}
    assert await stack.ok("GET", f"{path}/pypi") == {"type": "Hosted"}
    assert await stack.ok("PUT", f"{path}/python", {"type": "Hosted"}) == {"type": "Hosted"}
    taken = await stack.api("PUT", f"{path}/auth", raw=b"null")
    assert (taken.status, taken.body) == (200, b"null")
    assert await stack.ok("GET", path) == {"type": "Hosted", "x_note": "free"}


async def test_setting_auth_closes_a_public_repository(stack: Stack) -> None:
    made = await stack.add_repository()
    index = "/repositories/main/py/simple/"
    assert (await stack.call("GET", index, who=None)).status == 200
    await stack.ok("PUT", f"/repository/{made['id']}/config/auth", {"enabled": True})
    assert (await stack.call("GET", index, who=None)).status == 401


@pytest.mark.parametrize(
    ("key", "value", "status", "pointer"),
    [
        ("auth", {"enabled": 1}, 422, "/enabled"),
        ("auth", {"open": True}, 422, "/open"),
        ("auth", 7, 422, ""),
        ("python", [], 422, ""),
        ("python", {"type": "Hosted", "pushes": {}}, 422, "/pushes"),
        ("colour", "red", 404, None),
    ],
)
async def test_a_wrong_part_is_refused_with_a_pointer_into_it(
    stack: Stack, key: str, value: object, status: int, pointer: str | None
) -> None:
    made = await stack.add_repository()
    reply = await stack.api("PUT", f"/repository/{made['id']}/config/{key}", value)
    assert reply.status == status, reply.body
    if pointer is not None:
        assert reply.pointer == pointer
    assert await stack.ok("GET", f"/repository/{made['id']}/config") == {"type": "Hosted"}


async def test_a_stale_part_is_not_overwritten(stack: Stack) -> None:
    made = await stack.add_repository()
    path = f"/repository/{made['id']}/config/auth"
    etag = (await stack.api("GET", path)).headers["etag"]
    assert (await stack.api("PUT", path, {"enabled": True}, headers={"If-Match": etag})).status == 200
    assert (await stack.api("PUT", path, {"enabled": False}, headers={"If-Match": etag})).status == 412


async def test_the_audit_log_has_the_changed_parts(stack: Stack) -> None:
    made = await stack.add_repository()
    await stack.ok(
        "PUT", f"/repository/{made['id']}/config", {"type": "Hosted", "auth": {"enabled": True}, "page": "x"}
    )
    (line,) = await stack.audited(action="repository.configure")
    assert line["detail"] == {
        "changed": ["auth", "page"],
        "before": {"auth": None},
        "after": {"auth": {"enabled": True}},
    }


async def test_everybody_may_read_the_description_of_keys(stack: Stack) -> None:
    types = await stack.ok("GET", "/repository/types", who=None)
    (python,) = [each for each in types if each["name"] == "python"]
    assert "pypi" in python["aliases"]
    assert python["defaults"] == {"type": "Hosted"}
    for key in python["config_keys"]:
        schema = await stack.ok("GET", f"/repository/config/{key}/schema", who=None)
        assert schema["$schema"] == "https://json-schema.org/draft/2020-12/schema"
        described = await stack.ok("GET", f"/repository/config/{key}/description", who=None)
        assert described["description"].endswith(".")
    assert await stack.ok("GET", "/repository/config/python/default", who=None) == {"type": "Hosted"}
    assert (await stack.api("GET", "/repository/config/colour/schema", who=None)).status == 404
    assert (await stack.api("GET", "/repository/config/auth/schema?format=cobol", who=None)).status == 422


async def test_a_configuration_can_be_checked_without_keeping_it(stack: Stack) -> None:
    fine = await stack.ok("POST", "/repository/config/python/validate", {"type": "Hosted"})
    assert fine == {"valid": True, "config": {"type": "Hosted"}, "errors": []}
    wrong = await stack.ok("POST", "/repository/config/auth/validate", {"enabled": "yes"})
    assert wrong["valid"] is False
    assert wrong["errors"][0]["pointer"] == "/enabled"
    assert await stack.audited(action="repository.validate") == []


async def test_the_parts_of_a_repository_are_listed_for_its_editors(stack: Stack) -> None:
    made = await stack.add_repository()
    keys = [each["key"] for each in await stack.ok("GET", f"/repository/{made['id']}/configs")]
    assert keys[0] == "python"
    assert {"auth", "page", "policy"} <= set(keys)
    assert (await stack.api("GET", f"/repository/{made['id']}/configs", who=None)).status == 401


async def test_a_patch_of_a_part_leaves_its_other_fields(stack: Stack) -> None:
    made = await stack.add_repository("images", format="docker")
    path = f"/repository/{made['id']}/config"
    before = await stack.ok("GET", f"{path}/push_rules")
    changed = {"must_use_auth_token_for_push": not before["must_use_auth_token_for_push"]}
    for key in ("push_rules", "docker_push_rules"):
        assert await stack.ok("PATCH", f"{path}/{key}", changed) == {**before, **changed}
    assert await stack.ok("GET", f"{path}/push_rules") == {**before, **changed}
    assert await stack.ok("PATCH", f"{path}/auth", {"enabled": True}) == {"enabled": True}  # it was not set
    policy = await stack.ok("PUT", f"{path}/policy", {"allow_delete": False})
    assert await stack.ok("PATCH", f"{path}/policy", {"allow_delete": None}) == {**policy, "allow_delete": True}
    page = await stack.ok("PUT", f"{path}/page", "a text")
    for key, body, status, pointer in (
        ("push_rules", {"colour": 1}, 422, "/colour"),
        ("push_rules", {"must_be_project_member": "x"}, 422, "/must_be_project_member"),
        ("push_rules", {}, 422, None),
        ("push_rules", [], 422, None),
        ("page", {"text": "x"}, 422, None),
        ("colour", {"red": True}, 404, None),
    ):
        reply = await stack.api("PATCH", f"{path}/{key}", body)
        assert reply.status == status, (key, body, reply.body)
        assert pointer is None or reply.pointer == pointer
    assert await stack.ok("GET", f"{path}/push_rules") == {**before, **changed}
    assert await stack.ok("GET", f"{path}/page") == page
    assert (await stack.api("PATCH", f"{path}/push_rules", changed, headers={"If-Match": '"old"'})).status == 412
    assert (await stack.api("PATCH", f"{path}/push_rules", changed, who=None)).status == 401


async def test_a_patch_of_routes_keeps_their_credentials(stack: Stack) -> None:
    route = {"url": "https://registry.example/", "name": "up", "auth": {"username": "ci", "password": "hidden-word"}}
    config = {"type": "Proxy", "proxy": {"routes": [route]}, "policy": {"minimum_release_age": 2}}
    made = await stack.add_repository("mirror", config=config)
    path = f"/repository/{made['id']}/config"
    sealed = await _sealed(stack, made["id"])
    await stack.ok("PATCH", f"{path}/policy", {"reserved_names": ["acme-*"]})
    policy = await stack.ok("GET", f"{path}/policy")
    assert (policy["minimum_release_age"]["days"], policy["reserved_names"]) == (2, ["acme-*"])
    shown = await stack.ok("GET", f"{path}/proxy")
    assert await stack.ok("PATCH", f"{path}/proxy", {"routes": shown["routes"]}) is not None
    assert await _sealed(stack, made["id"]) == sealed


async def _sealed(stack: Stack, uid: str) -> Any:
    """The routes as they are stored, with sealed credentials."""
    repository = await stack.assembly.core.catalog.look(repositories.find_repository, uid)
    return repository.config["proxy"]


async def test_an_alias_of_push_rules_is_known_only_to_its_format(stack: Stack) -> None:
    made = await stack.add_repository("images", format="docker")
    path = f"/repository/{made['id']}/config"
    rules = await stack.ok("GET", f"{path}/push_rules")
    assert await stack.ok("GET", f"{path}/docker_push_rules") == rules
    assert await stack.ok("PUT", f"{path}/docker_push_rules", rules) == rules
    assert (await stack.api("GET", f"{path}/maven_push_rules")).status == 404
    assert (await stack.api("PUT", f"{path}/maven_push_rules", rules)).status == 404
    for key, status in (("docker_push_rules", 200), ("maven_push_rules", 200), ("npm_push_rules", 404)):
        for part in ("schema", "default", "description"):
            assert (await stack.api("GET", f"/repository/config/{key}/{part}")).status == status, (key, part)
    for key, status in (("docker_push_rules", 201), ("maven_push_rules", 422)):
        body = {"name": key, "storage": "main", "configs": {"docker": {"type": "Hosted"}, key: rules}}
        assert (await stack.api("POST", "/repository/new/docker", body)).status == status
