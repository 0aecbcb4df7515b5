"""
What every format does each day, over a catalog that is not asked in the reactor's thread.

``pytest tests/server --catalog-delay 0.2`` has the whole suite run so; this part of it always does.
"""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.support import server_process
from tests.support.container_clients import ADMIN, BOB, add_bob, ok, push_image
from tests.support.http_client import HttpClient
from tests.support.images import make_image
from tests.support.npm_packages import make_publish, make_tarball
from tests.support.python_packages import make_wheel
from tests.support.server_process import running

pytestmark = pytest.mark.server

DELAY_S = "0.01"
CONFIG = "\n".join(
    f'[[bootstrap.repositories]]\nname = "{name}"\nformat = "{kind}"\nvisibility = "{visibility}"'
    for name, kind, visibility in (
        ("py", "python", "public"),
        ("js", "npm", "private"),
        ("images", "docker", "private"),
    )
)


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[HttpClient]:
    """A client of a server with a delayed catalog, with the admin's credentials."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(server_process, "PATCHES", ["delay", DELAY_S])
        with running(tmp_path_factory.mktemp("delayed"), CONFIG) as process:
            yield HttpClient(process.url, ADMIN)


def test_python_projects_are_published_read_yanked_and_deleted(server: HttpClient) -> None:
    py, nobody = server.below("repositories/main/py"), HttpClient(server.url).below("repositories/main/py")
    names = {}
    for version in ("1.0", "2.0"):
        names[version], data = make_wheel("demo", version)
        ok(py.put(f"/demo/{version}/{names[version]}", data))
        for _ in range(2):
            assert names[version] in nobody.get("/simple/demo/").text
            assert nobody.get(f"/packages/{names[version]}").body == data
    assert nobody.put(f"/demo/2.0/{names['2.0']}", b"").status == 401
    ok(py.post("/pypi/demo/1.0/yank", "reason=old", Content_Type="application/x-www-form-urlencoded"))
    assert "data-yanked" in nobody.get("/simple/demo/").text
    ok(py.delete(f"/packages/demo/1.0/{names['1.0']}"))
    assert names["1.0"] not in nobody.get("/simple/demo/").text
    assert nobody.get(f"/packages/{names['1.0']}").status == 404


def test_npm_packages_are_published_tagged_searched_and_kept_from_strangers(server: HttpClient) -> None:
    js = server.below("repositories/main/js")
    for version in ("1.0.0", "2.0.0"):
        tarball = make_tarball("demo", version)
        ok(js.put("/demo", make_publish("demo", version, tarball=tarball), Content_Type="application/json"))
        assert js.get(f"/demo/-/demo-{version}.tgz").body == tarball
    assert list(js.get("/demo").json["versions"]) == ["1.0.0", "2.0.0"]
    ok(js.put("/-/package/demo/dist-tags/old", b'"1.0.0"', Content_Type="application/json"))
    assert js.get("/demo/old").json["version"] == "1.0.0"
    assert [each["package"]["name"] for each in js.get("/-/v1/search?text=demo").json["objects"]] == ["demo"]
    assert js.get("/-/whoami").json == {"username": ADMIN[0]}
    assert HttpClient(server.url).get("/repositories/main/js/demo").status == 401


def test_images_are_pushed_pulled_and_listed_by_those_who_may(server: HttpClient) -> None:
    image = make_image()
    push_image(server, "main/images/app", image, "latest")
    assert server.get("/v2/main/images/app/manifests/latest").body == image.manifest
    assert server.get("/v2/_catalog").json == {"repositories": ["main/images/app"]}
    assert HttpClient(server.url).get("/v2/main/images/app/manifests/latest").status == 401
    add_bob(server, "main/images")
    bob = HttpClient(server.url, BOB)
    assert bob.get("/v2/main/images/app/tags/list").json["tags"] == ["latest"]
    assert bob.delete("/v2/main/images/app/manifests/latest").status == 403
    ok(server.put("/api/users/bob/permissions", b'{"repositories": []}', Content_Type="application/json"))
    assert bob.get("/v2/main/images/app/tags/list").status == 404
    ok(server.delete("/v2/main/images/app/manifests/latest"))
    assert server.get("/v2/main/images/app/manifests/latest").status == 404


def test_new_repositories_and_tokens_take_effect_at_once(server: HttpClient) -> None:
    made = ok(server.post_json("/api/repository", {"name": "new", "storage": "main", "format": "python"})).json
    given = {"name": "ci", "repositories": [{"repository": "main/new", "actions": ["read"]}]}
    token = ok(server.post_json("/api/user/token", given)).json
    reader = HttpClient(server.url, ("__token__", token["token"]))
    assert reader.get("/repositories/main/new/simple/").status == 200
    assert reader.put("/repositories/main/new/demo/1.0/demo-1.0-py3-none-any.whl", b"x").status == 403
    assert "main/new" in [
        f"{each['storage_name']}/{each['name']}" for each in server.get("/api/repository").json["items"]
    ]
    ok(server.delete(f"/api/user/token/{token['id']}"))
    assert reader.get("/repositories/main/new/simple/").status == 401
    ok(server.delete(f"/api/repository/{made['id']}?confirm=new"))
    assert server.get("/repositories/main/new/simple/").status == 404
