"""A proxy that has followed a repository becomes a hosted one, when the other server does not come back."""

from __future__ import annotations

import pytest

from tests.server.replication.conftest import Sites, wait_for
from tests.server.replication.test_following import DOCUMENTS, image, paths, publish_first
from tests.support.npm_packages import make_tarball
from tests.support.python_packages import make_wheel

pytestmark = pytest.mark.server

FORMATS = ("python", "npm", "ruby", "docker")


@pytest.fixture(scope="module")
def away(sites: Sites) -> Sites:
    """Two servers of which the one has what the other published, which is away."""
    for each in FORMATS:
        publish_first(sites, each)
    sites.there.api("POST", "/package/main%2Fpython/demo/versions/1.0.0/yank", {"reason": "it loses data"})
    sites.pair("part", "npm")
    for version in ("1.0.0", "1.1.0"):
        sites.there.upload("part", f"demo-{version}.tgz", make_tarball("demo", version))
    wait_for(lambda: sites.here.get("/repositories/main/part/demo/-/demo-1.0.0.tgz"))
    wait_for(lambda: b"1.1.0" in sites.here.get("/repositories/main/part/demo"))
    for name in (*FORMATS, "part"):
        sites.settled(name)
    wait_for(lambda: b"it loses data" in sites.here.get("/repositories/main/python/simple/demo/"))
    sites.settled("python")
    sites.there.process.stop()
    return sites


def promote(sites: Sites, name: str, query: str) -> tuple[int, object]:
    reply = sites.here.client.post_json(f"/api/repository/main%2F{name}/replication/promote?wait=60&{query}", {})
    return reply.status, reply.json


@pytest.mark.parametrize("format", FORMATS)
def test_it_serves_what_it_has_and_takes_uploads(away: Sites, format: str) -> None:
    here, (path, fields, key, _) = away.here, DOCUMENTS[format]
    files = paths(away, format, key)
    assert promote(away, format, "")[0] == 422
    assert promote(away, format, "dry_run=true")[1] == {
        "repository": f"main/{format}",
        "missing": 0,
        "first": [],
        "dry_run": True,
    }
    assert here.api("GET", f"/repository/main%2F{format}")["type"] == "Proxy"
    assert promote(away, format, f"confirm={format}")[0] == 200
    assert here.api("GET", f"/repository/main%2F{format}")["type"] == "Hosted"
    assert here.client.get(f"/api/repository/main%2F{format}/replication").status == 404
    match format:
        case "python":
            here.upload(format, *make_wheel("demo", "2.0.0"))
        case "npm":
            here.upload(format, "demo-2.0.0.tgz", make_tarball("demo", "2.0.0"))
        case "docker":
            here.upload(format, "demo.tar", image("2.0.0"), image="demo", tag="2.0.0")
    document = here.client.get(path, **fields).body
    assert b"1.0.0" in document
    assert format == "ruby" or b"2.0.0" in document
    if format == "python":
        assert b"it loses data" in document
    for each in files:
        assert here.client.get(f"/repositories/main/{format}/{each}").status == 200, each
    entries = here.api("GET", f"/audit?action=replication.promote&object=main/{format}")["items"]
    (before,) = (each["detail"]["before"] for each in entries if "before" in each["detail"])
    route = before["proxy"]["routes"][0]
    assert (route["name"], route["auth"]["password"]) == ("there", "***")


def test_what_is_missing_is_named(away: Sites) -> None:
    status, found = promote(away, "part", "dry_run=true")
    assert (status, found) == (
        200,
        {"repository": "main/part", "missing": 1, "first": ["demo/-/demo-1.1.0.tgz"], "dry_run": True},
    )
