"""Private repositories and signing in, with the tools that people have."""

from __future__ import annotations

import pytest

from tests.support.container_clients import ADMIN
from tests.support.ruby_clients import TOOLS

pytestmark = pytest.mark.clients
NEWEST = pytest.mark.parametrize("tools", TOOLS[-1:])  # what the server does with the credentials is one and the same


@pytest.fixture
def bench(make_bench):
    """A bench for a new private repository with one gem."""
    bench = make_bench(visibility="private")
    bench.publish("inside", "1.0.0")
    return bench


def with_userinfo(url, userinfo):
    scheme, _, rest = url.partition("://")
    return f"{scheme}://{userinfo}@{rest}/"


@pytest.mark.shows("private")
def test_installs_without_credentials_say_so(bench):
    bench.write_gemfile("inside")
    assert "Authentication is required for" in bench.bundle("install", status=17)
    refused = bench.gem("install", "inside", "--clear-sources", "--source", bench.url + "/", status=2)
    assert "401" in refused


@NEWEST
@pytest.mark.parametrize("form", ["token", "token:{}", "admin:{}", "admin:password"])
def test_gem_installs_with_credentials_in_the_address(bench, token, form):
    userinfo = {"token": token, "admin:password": "admin:" + ADMIN[1].replace(" ", "%20")}.get(form, form.format(token))
    source = with_userinfo(bench.url, userinfo)
    installed = bench.gem("install", "inside", "--clear-sources", "--source", source, "--no-document")
    assert "Successfully installed inside-1.0.0" in installed


@NEWEST
@pytest.mark.parametrize("form", ["{}", "token:{}"])
def test_bundler_installs_with_configured_credentials(bench, token, form):
    bench.write_gemfile("inside")
    bench.bundle("config", "set", "--local", bench.url + "/", form.format(token))
    bench.bundle("install")
    assert "inside (1.0.0)" in bench.locked()
    bench.bundle("config", "set", "--local", bench.url + "/", "token:wrong")
    bench.gem("uninstall", "--all", "--executables", "inside")
    (bench.project / "Gemfile.lock").unlink()
    assert "Bad username or password for" in bench.bundle("install", status=17)


@pytest.mark.shows("login")
def test_signin_saves_a_key_that_pushes(bench):
    del bench.environ["GEM_HOST_API_KEY"]
    answers = {"mail:": ADMIN[0], "Password:": ADMIN[1], "API Key name": ""}
    terminal = bench.converse(answers, "signin", environ={"RUBYGEMS_HOST": bench.url})
    assert "Signed in with API key:" in terminal
    pushed = bench.gem("push", "--host", bench.url, bench.build("inside", "1.1.0"))
    assert "Successfully registered gem: inside (1.1.0)" in pushed


def test_signin_with_a_token_as_the_password_saves_it(bench):
    token = bench.environ.pop("GEM_HOST_API_KEY")
    answers = {"mail:": "anybody", "Password:": token, "API Key name": ""}
    assert "Signed in with API key:" in bench.converse(answers, "signin", environ={"RUBYGEMS_HOST": bench.url})
    pushed = bench.gem("push", "--host", bench.url, bench.build("inside", "1.2.0"))
    assert "Successfully registered gem: inside (1.2.0)" in pushed


def test_signin_with_a_wrong_password_is_denied(make_bench):
    bench = make_bench("rb")
    del bench.environ["GEM_HOST_API_KEY"]
    answers = {"mail:": ADMIN[0], "Password:": "wrong", "API Key name": ""}
    assert "Access Denied." in bench.converse(answers, "signin", environ={"RUBYGEMS_HOST": bench.url})
