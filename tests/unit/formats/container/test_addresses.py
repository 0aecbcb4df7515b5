"""Names of container repositories that clients can address, and that hide no images of the default repository."""

from __future__ import annotations

from typing import Any

import pytest

from pkgrepo.errors import Conflict, Invalid
from pkgrepo.storage.catalog.server import repositories
from tests.support.images import Registry, make_image
from tests.support.memory_server import Stack

IMAGE = make_image()


async def make(stack: Stack, **body: Any) -> Any:
    return await stack.api("POST", "/repository", {"storage": "main", "format": "docker", **body})


@pytest.mark.parametrize("name", ["Tools", "my_", "a..b", "a._b", "x-"])
async def test_names_that_no_client_takes_are_refused(registry: Registry, name: str) -> None:
    stack = registry.stack
    refused = await make(stack, name=name)
    assert (refused.status, refused.pointer) == (422, "/name")
    assert f"'{name}' cannot be part of the names of images" in refused.json["detail"]
    assert (await make(stack, name=name, format="python")).status == 201  # others take it


@pytest.mark.parametrize("storage", ["Upper", "token"])
async def test_storages_with_such_names_take_other_formats_only(registry: Registry, storage: str) -> None:
    stack = registry.stack
    await stack.ok("POST", "/storage", {"name": storage})
    refused = await make(stack, name="app", storage=storage)
    assert (refused.status, refused.pointer) == (422, "/storage")
    assert (await make(stack, name="app", storage=storage, format="npm")).status == 201
    renamed = await stack.api("PATCH", "/storage/main", {"name": "Main"})
    assert (renamed.status, renamed.pointer) == (422, "/name")
    assert "'images'" in renamed.json["detail"]
    assert (await stack.ok("PATCH", "/storage/main", {"name": "second", "active": True}))["name"] == "second"


async def test_an_older_repository_in_upper_case_is_listed_as_clients_can_pull_it(registry: Registry) -> None:
    stack = registry.stack
    made = await stack.add_repository("older", format="docker")
    core = stack.assembly.core
    found = core.registry.find_uid(made["id"])
    assert found is not None
    await core.catalog.write(repositories.update_repository, found.id, name="Older", now_ms=1)
    await registry.push(IMAGE, "v1", name="main/older/app")
    assert (await registry.call("GET", "/_catalog")).json["repositories"] == ["main/older/app"]
    assert (await registry.below("GET", "manifests/v1", name="main/older/app")).status == 200


async def test_images_of_the_default_repository_are_not_hidden(make_registry: Any) -> None:
    registry = await make_registry(container__default_repository="main/images")
    stack = registry.stack
    await stack.ok("POST", "/storage", {"name": "team"})
    await registry.push(IMAGE, "v1", name="team/tools/app")
    await registry.push(IMAGE, "v1", name="team/tool")
    await registry.push(IMAGE, "v1", name="other/tools/app")
    refused = await make(stack, name="tools", storage="team")
    assert refused.status == 409
    assert "main/images has the image team/tools/app" in refused.json["detail"]
    assert (await make(stack, name="tools", storage="team", format="python")).status == 201
    assert (await make(stack, name="tool", storage="team")).status == 201  # an image of that very name stays in sight
    assert (await registry.below("GET", "manifests/v1", name="team/tool")).status == 200
    await stack.ok("POST", "/storage", {"name": "third"})
    assert (await make(stack, name="tools", storage="third")).status == 201
    renamed = await stack.api("PATCH", "/storage/third", {"name": "other"})
    assert (renamed.status, "other/tools/app" in renamed.json["detail"]) == (409, True)


@pytest.mark.parametrize(
    ("declared", "sentence"),
    [
        ({"name": "Images", "format": "docker"}, "main/Images: 'Images' cannot be part"),
        ({"name": "app", "format": "docer"}, "main/app: there is no format 'docer'"),
        ({"name": "app", "format": "docker", "config": {"type": "Hosted", "x": 1}}, "main/app: "),
    ],
)
async def test_declared_repositories_are_checked_like_created_ones(tmp_path: Any, declared: Any, sentence: str) -> None:
    stack = Stack(tmp_path, bootstrap__repositories=[declared])
    with pytest.raises(Invalid, match=f"bootstrap.repositories: {sentence}"):
        await stack.start()
    await stack.stop()


async def test_declared_repositories_hide_no_images(make_registry: Any, tmp_path: Any) -> None:
    options = {"container__default_repository": "main/images"}
    registry = await make_registry(**options)
    await registry.push(IMAGE, "v1", name="main/tools/app")
    await registry.stack.stop()
    stack = Stack(tmp_path, bootstrap__repositories=[{"name": "tools", "format": "docker"}], **options)
    with pytest.raises(Conflict, match="has the image main/tools/app"):
        await stack.start()
    await stack.stop()


async def test_the_only_repository_takes_names_alone_and_lists_them_as_clients_call_them(registry: Registry) -> None:
    await registry.push(IMAGE, "v1", name="proj/app")
    await registry.push(IMAGE, "v1", name="main/images/full")
    await registry.push(IMAGE, "v1", name="zoo")
    for name in ("proj/app", "main/images/proj/app"):
        assert (await registry.below("GET", "tags/list", name=name)).json == {"name": name, "tags": ["v1"]}
    catalog = (await registry.call("GET", "/_catalog")).json["repositories"]
    assert catalog == ["main/images/full", "proj/app", "zoo"]
    pages, path = [], "/_catalog?n=1"
    while path:
        page = await registry.call("GET", path)
        pages += page.json["repositories"]
        path = page.headers["link"].partition(">")[0].removeprefix("</v2") if "link" in page.headers else ""
    assert pages == catalog
    await registry.push(IMAGE, "v1", name="main/images/proj/app")
    assert "main/images/proj/app" in (await registry.call("GET", "/_catalog")).json["repositories"]


async def test_among_several_repositories_the_marked_one_is_the_default(registry: Registry) -> None:
    stack = registry.stack
    await registry.push(IMAGE, "v1", name="proj/app")
    made = (await make(stack, name="second")).json
    refused = await registry.below("GET", "manifests/v1", name="proj/app")
    assert (refused.status, "marked as the default" in refused.body.decode()) == (404, True)
    assert (await registry.call("GET", "/_catalog")).json["repositories"] == ["main/images/proj/app"]
    await stack.ok("PUT", f"/repository/{made['id']}/config/default", True)
    await registry.push(IMAGE, "v1", name="other/app")
    assert (await registry.call("GET", "/_catalog")).json["repositories"] == ["main/images/proj/app", "other/app"]
    assert (await registry.below("GET", "manifests/v1", name="main/second/other/app")).status == 200
    await stack.ok("POST", "/storage", {"name": "other"})
    assert (await make(stack, name="app", storage="other")).status == 201
    assert (await registry.below("GET", "manifests/v1", name="other/app")).status == 404


@pytest.mark.parametrize("name", ["main/imagse/app", "main/images", "main/py/app"])
async def test_a_name_with_a_storage_is_not_taken_for_another_image_of_the_only_repository(
    registry: Registry, name: str
) -> None:
    await registry.stack.add_repository("py")
    refused = await registry.start(name=name)
    assert (refused.status, refused.json["errors"][0]["code"]) == (404, "NAME_UNKNOWN")


async def test_without_a_default_names_alone_mean_nothing(make_registry: Any) -> None:
    registry = await make_registry(container__default_repository="")
    assert (await registry.start(name="proj/app")).status == 404
