"""What configurations of proxy and virtual repositories may say, and the one form in which they are stored."""

import msgspec
import pytest

from pkgrepo.errors import Invalid
from pkgrepo.proxy.route_schema import MOST_ROUTES, default_name
from pkgrepo.proxy.schema import MOST_MEMBERS, ProxyConfig, VirtualConfig
from pkgrepo.repositories.configuration import Configurations, HostedConfig

ALL = Configurations("this format", HostedConfig | ProxyConfig | VirtualConfig)
URL = "https://registry.example/simple"


def proxy(*routes, **settings):
    return {"type": "Proxy", "proxy": {"routes": list(routes)}, **settings}


def virtual(*members, **settings):
    return {"type": "Virtual", "members": list(members), **settings}


def route(**changes):
    return {"url": URL, "name": default_name(URL), "priority": 0, **changes}


def test_the_proxy_configuration_of_the_specification_is_stored_as_it_is():
    given = proxy(
        {"url": "https://one.example/", "name": "main", "priority": 10}, {"url": URL, "name": "b", "priority": 0}
    )
    assert ALL.validate(given) == (given, {})


@pytest.mark.parametrize(
    "given",
    [
        proxy({"url": URL}),
        proxy(URL),
        {"type": "Proxy", "config": {"upstream_url": URL}},
        {"type": "Proxy", "config": {"routes": [URL]}},
    ],
)
def test_every_form_of_a_single_upstream_becomes_a_route(given):
    assert ALL.validate(given) == (proxy(route()), {})


def test_the_form_of_container_proxies_becomes_a_route_and_a_ttl():
    auth = {"username": "ci", "password": "secret"}
    config = {"upstream_url": URL, "upstream_auth": auth, "revalidation_ttl_seconds": 60}
    assert ALL.validate({"type": "Proxy", "config": config}) == (proxy(route(auth=auth)), {"cache_ttl": 60})


def test_routes_without_names_have_those_of_their_hosts():
    given = ("http://A.example/x", {"url": URL, "name": "a.example"}, "https://a.example:443", "https://[::1]:8443/y")
    fixed, _ = ALL.validate(proxy(*given, f"https://{'b' * 60}.{'c' * 60}.example"))
    names = [each["name"] for each in fixed["proxy"]["routes"]]
    assert names == ["a.example-2", "a.example", "a.example-3", "::1", f"{'b' * 60}.{'c' * 60}.example"]
    assert ALL.validate(fixed)[0] == fixed


def test_settings_stay_as_they_are_written():
    settings = {
        "cache_ttl": "5m",
        "cache": {"negative_ttl": 30, "stale_if_gone": "7d", "max_bytes": 10**12, "unused_days": 90},
        "policy": {"minimum_release_age": {"days": 7, "exempt": ["@acme/*"]}, "reserved_names": ["acme-*"]},
        "auth": {"enabled": True},
        "page": "# Mirror",
        "x_team": 1,
    }
    fixed, kept = ALL.validate(proxy(route(), **settings))
    assert (fixed, kept) == (proxy(route()), settings)
    assert ALL.validate({**fixed, **kept}) == (fixed, kept)


def test_a_release_age_may_be_a_number_of_days():
    _, settings = ALL.validate(proxy(URL, policy={"minimum_release_age": 7}))
    assert settings == {"policy": {"minimum_release_age": {"days": 7, "exempt": []}}}


def test_a_virtual_repository_joins_members_in_order():
    given = virtual("main/b", "main/a")
    assert ALL.validate(given) == ({**given, "publish_to": None, "resolution": "first"}, {})
    full = virtual("main/a", publish_to="main/a", resolution="merge")
    assert ALL.validate({**full, "policy": {"reserved_names": ["x*"]}}) == (
        full,
        {"policy": {"reserved_names": ["x*"]}},
    )


@pytest.mark.parametrize("text", ["Default", 0, 300, "300", "300s", "5m", "1h", "2d"])
def test_the_cache_ttl_is_default_or_a_duration(text):
    assert ALL.validate(proxy(URL, cache_ttl=text))[1] == {"cache_ttl": text}


@pytest.mark.parametrize(
    ("config", "pointer", "setting"),
    [
        (proxy("https://ci:hidden@a.example"), "/proxy/routes/0/url", "auth"),
        (proxy({"url": "https://hidden@a.example/x"}), "/proxy/routes/0/url", "auth"),
        ({"type": "Proxy", "config": {"upstream_url": "http://a:hidden@b"}}, "/config/upstream_url", "upstream_auth"),
    ],
    ids=["text", "route", "upstream_url"],
)
def test_credentials_in_an_address_are_refused_with_the_setting_they_belong_to(config, pointer, setting):
    with pytest.raises(Invalid) as raised:
        ALL.validate(config)
    assert raised.value.pointer == pointer
    assert raised.value.message.endswith(f"it has a user name or a password; give them as {setting}")


@pytest.mark.parametrize(
    ("given", "pointer"),
    [
        (proxy({"url": URL, "hosts": {"cdn.example": "http://a:b@c.example"}}), "/proxy/routes/0/hosts"),
        (proxy({"url": URL, "hosts": {"cdn.example": "http://c.example/?token=hidden"}}), "/proxy/routes/0/hosts"),
        ({"type": "Proxy"}, "/proxy"),
        ({**proxy(URL), "config": {"upstream_url": URL}}, "/proxy"),
        (proxy(), "/proxy/routes"),
        (proxy(*[URL] * (MOST_ROUTES + 1)), "/proxy/routes"),
        (proxy({"name": "main"}), "/proxy/routes/0/url"),
        (proxy(URL, {"url": 1}), "/proxy/routes/1/url"),
        (proxy({"url": URL, "name": "a"}, {"url": URL, "name": "a"}), "/proxy/routes/1/name"),
        (proxy({"url": URL, "name": "a\nb"}), "/proxy/routes/0/name"),
        (proxy({"url": URL, "priority": "high"}), "/proxy/routes/0/priority"),
        (proxy({"url": URL, "weight": 1}), "/proxy/routes/0/weight"),
        (proxy({"url": URL, "ca_file": "ca.pem"}), "/proxy/routes/0/ca_file"),
        (proxy({"url": URL, "token_hosts": ["a.example", "b.example/x"]}), "/proxy/routes/0/token_hosts/1"),
        (proxy({"url": URL, "token_hosts": ["u:p@a.example"]}), "/proxy/routes/0/token_hosts/0"),
        (proxy({"url": URL, "token_hosts": ["a b"]}), "/proxy/routes/0/token_hosts/0"),
        (proxy({"url": URL, "connect_timeout": 0}), "/proxy/routes/0/connect_timeout"),
        (proxy({"url": URL, "connect_timeout": "0s"}), "/proxy/routes/0/connect_timeout"),
        (proxy({"url": URL, "idle_timeout": "2h"}), "/proxy/routes/0/idle_timeout"),
        (proxy({"url": URL, "idle_timeout": "soon"}), "/proxy/routes/0/idle_timeout"),
        (proxy({"url": URL, "auth": {}}), "/proxy/routes/0/auth"),
        (proxy({"url": URL, "auth": {"username": "a"}}), "/proxy/routes/0/auth"),
        (proxy({"url": URL, "auth": {"password": "a"}}), "/proxy/routes/0/auth"),
        (proxy({"url": URL, "auth": {"username": "a", "password": "b", "token": "c"}}), "/proxy/routes/0/auth"),
        (proxy({"url": URL, "auth": {"username": "a:b", "password": "c"}}), "/proxy/routes/0/auth/username"),
        (proxy({"url": URL, "auth": {"token": "a\r\nb"}}), "/proxy/routes/0/auth/token"),
        (proxy({"url": URL, "auth": {"token": "a\n"}}), "/proxy/routes/0/auth/token"),
        (proxy({"url": URL, "auth": {"token": "a b"}}), "/proxy/routes/0/auth/token"),
        (proxy({"url": URL, "auth": {"username": "a", "password": "b\n"}}), "/proxy/routes/0/auth/password"),
        (proxy(URL, cache_ttl="soon"), "/cache_ttl"),
        (proxy(URL, cache_ttl="5m\n"), "/cache_ttl"),
        (proxy(URL, cache_ttl=-1), "/cache_ttl"),
        (proxy(URL, cache_ttl="400d"), "/cache_ttl"),
        (proxy(URL, cache={"negative_ttl": "Default"}), "/cache/negative_ttl"),
        (proxy(URL, cache={"stale_if_gone": "999d"}), "/cache/stale_if_gone"),
        (proxy(URL, cache={"max_bytes": 0}), "/cache/max_bytes"),
        (proxy(URL, policy={"minimum_release_age": {"days": 0}}), "/policy/minimum_release_age/days"),
        (proxy(URL, policy={"reserved_names": [""]}), "/policy/reserved_names/0"),
        (proxy(URL, policy={"allow_overwrite": True}), "/policy/allow_overwrite"),
        ({"type": "Proxy", "config": {}}, "/config"),
        ({"type": "Proxy", "config": {"upstream_url": URL, "routes": [URL]}}, "/config"),
        ({"type": "Proxy", "config": {"upstream_url": "up"}}, "/config/upstream_url"),
        (
            {"type": "Proxy", "config": {"upstream_url": URL, "revalidation_ttl_seconds": 1}, "cache_ttl": 2},
            "/config/revalidation_ttl_seconds",
        ),
        ({"type": "Proxy", "config": {"upstream_url": URL, "upstream_auth": {}}}, "/config/upstream_auth"),
        (
            {"type": "Proxy", "config": {"routes": [URL], "upstream_auth": {"token": "t"}}},
            "/config/upstream_auth",
        ),
        ({"type": "Virtual"}, "/members"),
        (virtual(), "/members"),
        (virtual(*["a/b"] * (MOST_MEMBERS + 1)), "/members"),
        (virtual("a/b", resolution="last"), "/resolution"),
        (virtual("a/b", proxy={}), "/proxy"),
        ({"type": "Hosted", "cache_ttl": 5}, "/cache_ttl"),
    ],
)
def test_what_is_wrong_is_refused_with_its_place(given, pointer):
    with pytest.raises(Invalid) as raised:
        ALL.validate(given)
    assert raised.value.pointer == pointer


@pytest.mark.parametrize(
    "url",
    [
        "",
        "registry.example",
        "//registry.example/",
        "ftp://registry.example/",
        "file:///etc/passwd",
        "http://",
        "http://:80/",
        "http://host:0/",
        "http://host:99999/",
        "http://host:port/",
        "http://name:hidden-word@host/",
        "http://hidden-word@host/",
        "http://host/?q=hidden-word",
        "http://host/?",
        "http://host/#hidden-word",
        "http://host/#",
        "http://ho st/",
        "http://host/a\nb",
        "http://host\\@other/",
        "http://h\u00f6st/",
        "https://" + "a" * 300 + ".example/",
    ],
)
def test_only_plain_http_urls_are_upstreams_and_messages_do_not_repeat_them(url):
    for given, pointer in (
        (proxy({"url": url}), "/proxy/routes/0/url"),
        ({"type": "Proxy", "config": {"upstream_url": url}}, "/config/upstream_url"),
    ):
        with pytest.raises(Invalid) as raised:
            ALL.validate(given)
        assert raised.value.pointer == pointer
        assert "hidden-word" not in str(raised.value)


def test_a_type_that_the_format_does_not_serve_is_refused_with_its_name():
    hosted = Configurations("this format", HostedConfig)
    for given in (proxy(URL), virtual("a/b")):
        with pytest.raises(Invalid, match=f"{given['type']} repositories of this format are not available"):
            hosted.validate(given)


def test_the_schema_has_all_types():
    text = msgspec.json.encode(ALL.schema()).decode()
    for key in ("routes", "cache_ttl", "negative_ttl", "reserved_names", "members", "publish_to", "upstream_url"):
        assert f'"{key}"' in text
