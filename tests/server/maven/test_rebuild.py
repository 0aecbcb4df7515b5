"""The management call that makes metadata anew from the stored files."""

from __future__ import annotations

import pytest

from tests.support.http_client import HttpClient
from tests.support.python_index import PASSWORD, USER

pytestmark = pytest.mark.server


def test_metadata_are_rebuilt_from_the_files(format_server, mvn, as_token) -> None:
    api = HttpClient(f"{format_server.url}/api/repository/main%2Fmvn", (USER, PASSWORD))
    assert mvn.put("/com/rebuilt/app/1.0/app-1.0.jar", b"x").status == 201
    path = "/com/rebuilt/app/maven-metadata.xml"
    before = mvn.get(path)
    done = api.post_json("/rebuild?package=com.rebuilt:app", {})
    assert (done.status, done.json["packages"], done.json["changed"]) == (200, 1, 0)
    everything = api.post_json("/rebuild", {}).json
    assert everything["packages"] >= 1
    assert everything["changed"] == 0
    assert (mvn.get(path).body, mvn.get(path).headers["etag"]) == (before.body, before.headers["etag"])
    for package, status in (("com.rebuilt:none", 404), ("no-artifact", 422)):
        assert api.post_json(f"/rebuild?package={package}", {}).status == status
    assert api.as_user().post_json("/rebuild", {}).status == 401
    token = as_token("all")
    stranger = HttpClient(api.url, token._auth)
    assert stranger.post_json("/rebuild", {}).status == 403
