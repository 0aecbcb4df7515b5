"""Yanks, restored versions and owners."""

from __future__ import annotations

import hashlib
import json

import pytest

from tests.support.gems import make_gem
from tests.support.http_client import form_body
from tests.support.proxied import answered

pytestmark = pytest.mark.server

YANK = "/api/v1/gems/yank"
UNYANK = "/api/v1/gems/unyank"


def statuses(where, full_name):
    paths = (f"/gems/{full_name}.gem", f"/quick/Marshal.4.8/{full_name}.gemspec.rz")
    return [where.get(path).status for path in paths]


def test_a_yanked_version_is_not_served_and_can_be_restored(push, rb):
    assert push("gone", "1.0").status == push("gone", "1.0", platform="java").status == 200
    assert statuses(rb, "gone-1.0") == [200, 200]
    reply = rb.ask("DELETE", YANK, "gem_name=gone&version=1.0")
    assert (reply.status, reply.text) == (200, "Successfully deleted gem: gone (1.0)")
    assert statuses(rb, "gone-1.0") == [404, 404]
    assert statuses(rb, "gone-1.0-java") == [200, 200]
    again = rb.ask("DELETE", YANK, "gem_name=gone&version=1.0")
    assert (again.status, again.text) == (422, "The version 1.0 has already been deleted.")
    repushed = push("gone", "1.0")
    assert repushed.status == 409
    assert repushed.text.startswith("A yanked version already exists (gone-1.0).\nRepushing of gem versions is not")
    restored = rb.ask("PUT", UNYANK, "gem_name=gone&version=1.0")
    assert (restored.status, restored.text) == (200, "Successfully unyanked gem: gone (1.0)")
    assert rb.get("/gems/gone-1.0.gem").body == make_gem("gone", "1.0")
    assert rb.ask("PUT", UNYANK, "gem_name=gone&version=1.0").text == "The version 1.0 is not yanked."


def test_a_platform_is_named_to_yank_its_build(push, rb):
    assert push("built", "1.0", platform="x86_64-linux").status == 200
    missing = rb.ask("DELETE", YANK, "gem_name=built&version=1.0")
    assert (missing.status, missing.text) == (404, "The version 1.0 does not exist.")
    other = rb.ask("DELETE", YANK, "gem_name=built&version=1.0&platform=java")
    assert (other.status, other.text) == (404, "The version 1.0 (java) does not exist.")
    reply = rb.ask("DELETE", YANK, "gem_name=built&version=1.0&platform=x86_64-linux")
    assert reply.text == "Successfully deleted gem: built (1.0-x86_64-linux)"


def test_the_form_may_be_in_the_query_or_multipart(push, rb):
    for number in ("1", "2"):
        assert push("formats", number).status == 200
    assert rb.ask("DELETE", f"{YANK}?gem_name=formats&version=1").status == 200
    body = form_body([("gem_name", "formats"), ("version", "2")])
    content_type = {"Content-Type": "multipart/form-data; boundary=0d9f3c5e7a"}
    assert rb.ask("DELETE", YANK, body, content_type).text == "Successfully deleted gem: formats (2)"


@pytest.mark.parametrize(
    ("form", "status", "text"),
    [
        ("gem_name=nothing&version=1", 404, "This gem could not be found"),
        ("", 404, "This gem could not be found"),
        ("gem_name=..%2f&version=1", 404, "This gem could not be found"),
        ("gem_name=nothing&version=x", 404, "version 'x' must be"),
        ("gem_name=nothing&version=1&platform=a%0ab", 404, "platform 'a\\nb' must"),
        ("a=b&" * 40, 400, "a form must be URL-encoded"),
        ("x" * 70_000, 413, ""),
    ],
)
def test_wrong_forms_are_refused_in_text(rb, form, status, text):
    reply = rb.ask("DELETE", YANK, form)
    assert reply.status == status
    assert reply.text.startswith(text)


def test_a_yank_needs_permission(push, rb, token_texts):
    assert push("kept", "1.0").status == 200
    form = "gem_name=kept&version=1.0"
    assert rb.as_user().ask("DELETE", YANK, form).status == 401
    for name in ("reader", "team"):
        assert rb.as_user().ask("DELETE", YANK, form, {"Authorization": token_texts[name]}).status == 403
    assert statuses(rb, "kept-1.0") == [200, 200]


def test_a_token_for_some_gems_yanks_and_restores_these_only(push, rb, token_texts):
    for name in ("team-own", "teamless"):
        assert push(name, "1.0").status == 200
    team = {"Authorization": token_texts["team yanks"]}
    form = "gem_name={}&version=1.0"
    refused = rb.as_user().ask("DELETE", YANK, form.format("teamless"), team)
    assert (refused.status, "teamless" in refused.text) == (403, True)
    assert statuses(rb, "teamless-1.0") == [200, 200]
    assert rb.as_user().ask("DELETE", YANK, form.format("team-own"), team).status == 200
    assert statuses(rb, "team-own-1.0") == [404, 404]
    assert rb.ask("DELETE", YANK, form.format("teamless")).status == 200
    assert rb.as_user().ask("PUT", UNYANK, form.format("teamless"), team).status == 403
    assert statuses(rb, "teamless-1.0") == [404, 404]
    assert rb.as_user().ask("PUT", UNYANK, form.format("team-own"), team).status == 200
    assert statuses(rb, "team-own-1.0") == [200, 200]


def test_a_yank_by_the_api_hides_the_files_too(push, rb, api):
    assert push("managed-yank", "1.0").status == 200
    address = "/package/main%2Frb/managed-yank/versions/1.0"
    assert api.post_json(f"{address}/yank", {"reason": "broken"}).status == 200
    assert statuses(rb, "managed-yank-1.0") == [404, 404]
    assert api.post_json(f"{address}/unyank", {}).status == 200
    assert statuses(rb, "managed-yank-1.0") == [200, 200]


def test_the_list_has_the_digests_of_documents_also_after_a_change_of_these(push, api, repository):
    """Pulp refuses those that differ, and Bundler fetches them each time."""
    plain = repository("plain-lines")
    assert push("dated", "1.0", plain).status == 200
    for dated in (False, True, False):
        settings = {"type": "Hosted", "compact_index": {"created_at": dated}}
        assert api.post_json("/repository/main%2Fplain-lines/config", settings, "PUT").status == 200
        info = answered(plain, "/info/dated", lambda reply, dated=dated: (b"created_at" in reply.body) is dated)
        assert plain.get("/versions").body.endswith(f"\ndated 1.0 {hashlib.md5(info.body).hexdigest()}\n".encode())


def test_a_deleted_version_is_burned_also_when_it_was_yanked(push, rb, api, repository):
    for number in ("1", "2"):
        assert push("burned", number).status == 200
    assert rb.ask("DELETE", YANK, "gem_name=burned&version=2").status == 200
    for number in ("1", "2"):
        assert api.delete(f"/package/main%2Frb/burned/versions/{number}").status == 200
        assert push("burned", number).status == 409
    lax = repository("lax")
    assert push("burned", "1", lax).status == 200
    assert api.delete("/package/main%2Flax/burned/versions/1").status == 200
    assert push("burned", "1", lax).status == 200


def test_owners_are_listed_added_and_removed(push, rb, api):
    assert push("owned", "1.0").status == 200
    path = "/api/v1/gems/owned/owners"
    first = json.loads(rb.get(f"{path}.json").body)
    assert [each["handle"] for each in first] == ["admin"]
    assert api.post_json("/users", {"username": "second", "password": "correct horse battery"}).status == 201
    added = rb.ask("POST", path, "email=second")
    assert added.status == 200, added
    assert added.text.startswith("Owner second was added to owned.")
    listed = rb.get(f"{path}.yaml")
    assert listed.text.startswith("---\n- {")
    assert [each["handle"] for each in rb.get(f"{path}.json").json] == ["admin", "second"]
    removed = rb.ask("DELETE", path, "email=admin")
    assert removed.text.startswith("Owner admin was removed from owned.")
    assert rb.ask("DELETE", path, "email=second").status == 400
    for who in ("nobody", ""):
        unknown = rb.ask("POST", path, f"email={who}")
        assert (unknown.status, unknown.text) == (404, "Owner could not be found.")
    assert rb.get("/api/v1/gems/nothing/owners.yaml").status == 404
    assert rb.as_user().ask("POST", path, "email=second").status == 401


def test_a_token_for_some_gems_changes_the_owners_of_these_only(push, rb, token_texts):
    for name in ("team-owned", "foreign"):
        assert push(name, "1.0").status == 200
    team, anonymous = {"Authorization": token_texts["team"]}, rb.as_user()
    for name, status in (("team-owned", 200), ("foreign", 403)):
        path = f"/api/v1/gems/{name}/owners"
        for verb in ("POST", "DELETE"):
            reply = anonymous.ask(verb, path, "email=admin", team)
            assert (reply.status == 403) == (status == 403), reply
        assert [each["handle"] for each in rb.get(f"{path}.json").json] == ["admin"]


def test_the_email_of_an_owner_is_for_that_owner_and_those_who_manage_users(push, rb, api):
    assert push("contacts", "1.0").status == 200
    users = api.get("/users").json["items"]
    admin = next(each for each in users if each["username"] == "admin")
    assert api.ask("PATCH", f"/users/{admin['id']}", json.dumps({"email": "admin@x.example"})).status == 200
    path = "/api/v1/gems/contacts/owners.json"
    assert [each["email"] for each in rb.get(path).json] == ["admin@x.example"]
    pusher = {"username": "email-seeker", "password": "seeks emails all day"}
    uid = api.post_json("/users", pusher).json["id"]
    granted = {"repositories": [{"repository": "main/rb", "actions": ["read", "write"]}]}
    assert api.post_json(f"/users/{uid}/permissions", granted, "PUT").status == 200
    for where in (rb.as_user(), rb.as_user(*pusher.values())):
        assert [each["email"] for each in where.get(path).json] == [None]
