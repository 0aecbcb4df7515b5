"""Credentials of routes: sealed before they are stored, masked in answers, kept while the address stays."""

import base64

import pytest
from attrs import evolve

from pkgrepo.errors import Invalid, UpstreamFailed
from pkgrepo.model.repositories import make_placeholder
from pkgrepo.proxy.configuration import proxy_config_of
from pkgrepo.proxy.definitions import authorization_of, mask_credentials, seal_credentials
from pkgrepo.storage.secret_box import SecretBox

BOX = SecretBox(b"k" * 32)
BASIC = {"username": "ci", "password": "hidden-word"}
TOKEN = {"token": "hidden-word"}
MASKED = {"username": "ci", "password": "***"}


def config(*routes):
    return {"type": "Proxy", "proxy": {"routes": [{"name": f"r{n}", "priority": 0, **r} for n, r in enumerate(routes)]}}


def route(url="http://a.example/x", auth=BASIC):
    return {"url": url, "auth": auth}


def authorizations(stored):
    repository = evolve(make_placeholder(1, "main", "mirror"), config=stored)
    return [authorization_of(each, BOX) for each in proxy_config_of(repository).routes]


def basic(text):
    return "Basic " + base64.b64encode(text.encode()).decode()


def test_sealed_credentials_are_opened_for_the_authorization_field():
    given = config(route(), route(auth=TOKEN), {"url": "http://b.example"})
    stored = seal_credentials(given, BOX)
    assert "hidden-word" not in str(stored)
    assert authorizations(stored) == [basic("ci:hidden-word"), "Bearer hidden-word", None]
    assert given["proxy"]["routes"][0]["auth"] == BASIC, "the argument is not changed"


def test_answers_show_the_user_and_no_secret():
    stored = seal_credentials(config(route(), route(auth=TOKEN)), BOX)
    shown = mask_credentials(stored)
    assert [each["auth"] for each in shown["proxy"]["routes"]] == [MASKED, {"token": "***"}]
    assert mask_credentials({"type": "Hosted"}) == {"type": "Hosted"}


def test_a_masked_secret_means_the_stored_one():
    stored = seal_credentials(config(route(), route("http://b.example", TOKEN)), BOX)
    assert seal_credentials(mask_credentials(stored), BOX, stored) == stored


@pytest.mark.parametrize("url", ["http://a.example/x", "http://a.example:80/other/path", "http://A.example"])
def test_a_secret_stays_for_every_path_of_its_origin(url):
    stored = seal_credentials(config(route()), BOX)
    assert authorizations(seal_credentials(config(route(url, MASKED)), BOX, stored)) == [basic("ci:hidden-word")]


def test_of_two_secrets_for_one_origin_each_route_keeps_its_own():
    one, two = ("http://a.example/1", "http://a.example/2")
    first = seal_credentials(
        config(route(one, {**BASIC, "password": "1"}), route(two, {**BASIC, "password": "2"})), BOX
    )
    swapped = seal_credentials(config(route(two, MASKED), route(one, MASKED)), BOX, first)
    assert authorizations(swapped) == [basic("ci:2"), basic("ci:1")]


@pytest.mark.parametrize(
    ("masked", "key"),
    [
        (route("http://b.example/x", MASKED), "password"),
        (route("https://a.example/x", MASKED), "password"),
        (route("http://a.example:8080/x", MASKED), "password"),
        (route(auth={**MASKED, "username": "another"}), "password"),
        (route(auth={"token": "***"}), "token"),
    ],
)
def test_a_masked_secret_is_refused_for_another_address_or_user(masked, key):
    stored = seal_credentials(config(route()), BOX)
    for before in (stored, None):
        with pytest.raises(Invalid) as raised:
            seal_credentials(config(masked), BOX, before)
        assert raised.value.pointer == f"/proxy/routes/0/auth/{key}"


def test_a_masked_secret_is_refused_for_other_hosts():
    hosts = {"auth.example": "http://10.0.0.1"}
    stored = seal_credentials(config(route() | {"hosts": hosts}), BOX)
    assert authorizations(stored) == [basic("ci:hidden-word")]
    assert seal_credentials(config(route(auth=MASKED) | {"hosts": hosts}), BOX, stored) == stored
    for others in ({}, {"auth.example": "http://10.0.0.2"}):
        with pytest.raises(Invalid):
            seal_credentials(config(route(auth=MASKED) | {"hosts": others}), BOX, stored)


def test_a_masked_secret_is_refused_for_other_token_hosts():
    named = {"token_hosts": ["auth.example", "Other.example"]}
    stored = seal_credentials(config(route() | named), BOX)
    assert authorizations(stored) == [basic("ci:hidden-word")]
    for same in (named, {"token_hosts": ["other.example", "auth.example"]}):
        assert authorizations(seal_credentials(config(route(auth=MASKED) | same), BOX, stored)) == authorizations(
            stored
        )
    for others in ({}, {"token_hosts": ["evil.example"]}):
        with pytest.raises(Invalid):
            seal_credentials(config(route(auth=MASKED) | others), BOX, stored)


def test_a_sealed_secret_that_is_sent_as_a_password_is_only_a_text():
    stored = seal_credentials(config(route()), BOX)
    sealed = stored["proxy"]["routes"][0]["auth"]["password"]
    again = seal_credentials(config(route("http://evil.example", {**BASIC, "password": sealed})), BOX, stored)
    assert authorizations(again) == [basic(f"ci:{sealed}")]


def test_a_stored_secret_that_was_moved_to_another_address_does_not_open():
    stored = seal_credentials(config(route()), BOX)
    stored["proxy"]["routes"][0]["url"] = "http://evil.example"
    with pytest.raises(UpstreamFailed, match="upstream 'r0' cannot be used: its credentials"):
        authorizations(stored)
