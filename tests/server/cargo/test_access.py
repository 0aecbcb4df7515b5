"""Who may read and publish, and what cargo learns of it."""

from __future__ import annotations

from base64 import b64encode

import pytest

from tests.support.crates import make_publish
from tests.support.python_index import PASSWORD, USER

pytestmark = pytest.mark.server

NEW = "/api/v1/crates/new"


def forms(token: str) -> dict[str, str]:
    return {
        "cargo": token,
        "bearer": f"Bearer {token}",
        "password": "Basic " + b64encode(f"{USER}:{PASSWORD}".encode()).decode(),
    }


def test_the_configuration_has_the_addresses_of_the_repository(main, format_server):
    base = f"{format_server.url}/repositories/main/crates"
    for path in ("/config.json", "/index/config.json"):
        reply = main.as_user().get(path)
        assert reply.json == {"dl": f"{base}/api/v1/crates", "api": base}
        assert reply.headers["cache-control"] == "no-cache"


def test_a_private_repository_wants_credentials_for_reads(repository, token_texts):
    anonymous = repository("private").as_user()
    reply = anonymous.get("/index/config.json")
    assert (reply.status, "www-authenticate" in reply.headers) == (401, True)
    for form in forms(token_texts["reader"]).values():
        assert anonymous.get("/index/config.json", Authorization=form).json["auth-required"] is True
    assert anonymous.get("/index/config.json", Authorization="wrong").status == 401


@pytest.mark.parametrize("form", list(forms("")))
def test_every_form_of_credentials_publishes(main, token_texts, form):
    credentials = forms(token_texts["all"])[form]
    reply = main.as_user().put(NEW, make_publish(f"by-{form}", "1.0.0"), Authorization=credentials)
    assert reply.status == 200, reply.text


def test_who_may_not_publish_is_told_why(main, as_token):
    anonymous = main.as_user().put(NEW, make_publish("none", "1.0.0"))
    assert anonymous.status == 401
    assert anonymous.headers["www-authenticate"].startswith('Cargo login_url="http')
    assert "/repositories/main/crates/me" in anonymous.headers["www-authenticate"]
    reader = as_token("reader").put(NEW, make_publish("none", "1.0.0"))
    assert (reader.status, bool(reader.json["errors"][0]["detail"])) == (403, True)
    assert main.get("/index/no/ne/none").status == 404


def test_a_token_for_some_crates_publishes_these_only(main, as_token):
    team = as_token("team")
    assert team.get("/config.json").status == 200
    assert team.put(NEW, make_publish("team-a", "1.0.0")).status == 200
    assert team.put(NEW, make_publish("other-a", "1.0.0")).status == 403
    assert team.delete("/api/v1/crates/team-a/1.0.0/yank").status == 403
    assert team.put("/api/v1/crates/team-a/1.0.0/unyank", b"").status == 200
    assert main.get("/index/ot/he/other-a").status == 404


def test_anybody_is_told_how_to_get_a_token(repository):
    for name in ("crates", "private", "no-such"):
        reply = repository(name).as_user().get("/me")
        assert (reply.status in (200, 401, 404)) is True
    assert "cargo login" in repository("private").as_user().get("/me").text


def test_searches_show_what_the_caller_may_read(repository, as_token):
    private = repository("private")
    for name in ("team-seen", "unseen-team"):
        private.put(NEW, make_publish(name, "1.0.0"))
    found = as_token("team", "private").get("/api/v1/crates?q=team").json
    assert ([each["name"] for each in found["crates"]], found["meta"]) == (["team-seen"], {"total": 1})


def test_a_publish_through_a_virtual_repository_goes_to_its_target(repository, as_token):
    through = as_token("all", "through")
    assert through.put(NEW, make_publish("through", "1.0.0")).status == 200
    assert repository("lax").get("/index/th/ro/through").status == 200
