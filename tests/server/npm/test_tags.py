"""Tags: set, listed, removed, and refused ones."""

import json

import pytest

pytestmark = pytest.mark.server


def test_tags_are_set_listed_and_removed(npm, publish):
    for version in ("1.0.0", "1.1.0"):
        publish("@tags/x", version)
    tags = "/-/package/@tags%2fx/dist-tags"
    for method in ("PUT", "POST"):
        reply = npm.ask(method, f"{tags}/stable", '"1.0.0"')
        assert (reply.status, reply.json["dist-tags"]) == (201, {"latest": "1.1.0", "stable": "1.0.0"})
    assert npm.get(tags).json == {"latest": "1.1.0", "stable": "1.0.0"}
    assert npm.get("/@tags%2fx").json["dist-tags"] == {"latest": "1.1.0", "stable": "1.0.0"}
    assert npm.get("/@tags%2fx/stable").json["version"] == "1.0.0"
    assert npm.ask("PUT", f"{tags}/latest", '"1.0.0"').status == 201
    assert npm.get("/@tags%2fx/latest").json["version"] == "1.0.0"
    assert npm.ask("DELETE", f"{tags}/stable").json["dist-tags"] == {"latest": "1.0.0"}
    assert npm.get("/@tags%2fx/stable").status == 404


@pytest.mark.parametrize(
    ("method", "tag", "body", "status"),
    [
        ("PUT", "stable", '"9.9.9"', 404),
        ("PUT", "stable", "1.0.0", 400),
        ("PUT", "stable", "{}", 400),
        ("PUT", "1.x", '"1.0.0"', 400),
        ("PUT", "^1", '"1.0.0"', 400),
        ("PUT", "v1.0.0", '"1.0.0"', 400),
        ("PUT", "__proto__", '"1.0.0"', 400),
        ("PUT", "a%2fb", '"1.0.0"', 400),
        ("DELETE", "latest", None, 400),
        ("DELETE", "nothing", None, 404),
    ],
)
def test_an_invalid_tag_is_refused(npm, publish, method, tag, body, status):
    if npm.get("/untaggable").status == 404:
        publish("untaggable")
    assert npm.ask(method, f"/-/package/untaggable/dist-tags/{tag}", body).status == status
    assert npm.get("/-/package/untaggable/dist-tags").json == {"latest": "1.0.0"}


def test_a_body_that_would_take_long_to_parse_is_refused(npm, publish):
    publish("patient", "1.0.0")
    for path in ("/-/package/patient/dist-tags/stable", "/-/user/org.couchdb.user:bob"):
        assert npm.ask("PUT", path, json.dumps([{}] * 30_000)).status == 413
