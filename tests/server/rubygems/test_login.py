"""``gem signin``: a name and a password for an access token of this repository."""

from __future__ import annotations

import pytest

from pkgrepo.auth.tokens.text import token_kind
from tests.support.gems import make_gem

pytestmark = pytest.mark.server

PATH = "/api/v1/api_key"


def test_a_key_has_the_rights_that_were_asked_for(rb):
    key = rb.post(PATH, "name=laptop&index_rubygems=true&push_rubygem=true").text
    assert token_kind(key)
    assert key.strip() == key
    with_key = {"Authorization": key}
    anonymous = rb.as_user()
    assert anonymous.ask("POST", "/api/v1/gems", make_gem("signed-in", "1"), with_key).status == 200
    assert anonymous.ask("DELETE", "/api/v1/gems/yank", "gem_name=signed-in&version=1", with_key).status == 403
    yanker = {"Authorization": rb.post(PATH, "name=x&yank_rubygem=true").text}
    assert anonymous.ask("POST", "/api/v1/gems", make_gem("signed-in", "2"), yanker).status == 403
    assert anonymous.ask("DELETE", "/api/v1/gems/yank", "gem_name=signed-in&version=1", yanker).status == 200


def test_a_key_for_the_index_reads(repository):
    private = repository("private")
    assert private.post("/api/v1/gems", make_gem("readable", "1")).status == 200
    key = {"Authorization": private.post(PATH, "name=x&index_rubygems=true&push_rubygem=false").text}
    assert private.as_user().ask("GET", "/gems/readable-1.gem", None, key).status == 200
    assert private.as_user().ask("POST", "/api/v1/gems", make_gem("readable", "2"), key).status == 403


@pytest.mark.parametrize("form", ["name=x", "name=x&push_rubygem=false&index_rubygems=", "name=x&everything=true"])
def test_no_key_is_made_when_no_right_is_chosen(rb, api, form):
    tokens = len(api.get("/user/token?limit=1000").json["items"])
    reply = rb.post(PATH, form)
    assert (reply.status, "push_rubygem" in reply.text) == (422, True)
    assert len(api.get("/user/token?limit=1000").json["items"]) == tokens


def test_a_key_reaches_its_own_repository_only(rb, repository):
    key = {"Authorization": rb.post(PATH, "name=x&push_rubygem=true").text}
    assert repository("fresh").as_user().ask("POST", "/api/v1/gems", make_gem("far", "1"), key).status == 403


def test_old_clients_get_a_key_by_get(rb):
    key = rb.get(PATH).text
    assert token_kind(key)
    assert token_kind(rb.get(f"{PATH}.json").json["rubygems_api_key"])
    assert rb.as_user().ask("POST", "/api/v1/gems", make_gem("old-client", "1"), {"Authorization": key}).status == 200


def test_neither_pages_of_other_sites_nor_heads_get_keys(rb, api):
    tokens = len(api.get("/user/token?limit=1000").json["items"])
    assert rb.get(PATH, Sec_Fetch_Site="cross-site").status == 403
    assert rb.head(PATH).status == 403
    assert len(api.get("/user/token?limit=1000").json["items"]) == tokens


def test_a_wrong_password_gives_no_key(rb):
    for where in (rb.as_user("admin", "wrong"), rb.as_user("nobody", "wrong"), rb.as_user()):
        reply = where.post(PATH, "name=x")
        assert reply.status == 401
        assert reply.text.startswith("Access Denied. ")


def test_a_token_makes_no_other_tokens(rb, token_texts):
    field = {"Authorization": token_texts["all"]}
    assert rb.as_user().ask("POST", PATH, "name=x", field).status == 401
    assert rb.as_user().ask("GET", PATH, None, field).status == 401


def test_a_token_as_the_password_becomes_the_key(rb, token_texts):
    everything = rb.as_user("admin", token_texts["all"])
    assert everything.post(PATH, "name=x&push_rubygem=true").text == token_texts["all"]
    assert everything.get(PATH).text == token_texts["all"]
    reader = rb.as_user("admin", rb.post(PATH, "name=x&index_rubygems=true").text)
    assert token_kind(reader.post(PATH, "name=x&index_rubygems=true").text)
    refused = reader.post(PATH, "name=x&push_rubygem=true")
    assert (refused.status, "does not allow write here" in refused.text) == (403, True)


def test_rights_are_not_added_later(rb):
    key = rb.post(PATH, "name=x&index_rubygems=true").text
    reply = rb.ask("PUT", PATH, f"api_key={key}&push_rubygem=true")
    assert (reply.status, reply.text[:35]) == (403, "A key gets no further rights later:")
