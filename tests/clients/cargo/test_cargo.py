"""Crates are published, found, built, yanked and owned with the program that people have."""

from __future__ import annotations

import pytest

from tests.support.cargo_clients import NAME
from tests.support.http_client import HttpClient

pytestmark = pytest.mark.clients

USES = 'fn main() { println!("{}", used::answer()); }\n'


def dependency(name: str, version: str = "0.1.0", more: str = "") -> str:
    return f'\n[dependencies]\nused = {{ package = "{name}", version = "{version}", registry = "{NAME}"{more} }}\n'


@pytest.mark.shows("publish", "search", by=("cargo",))
def test_a_crate_is_published_once_and_found(bench):
    place = bench.package("first-A")
    assert f"Published first-A v0.1.0 at registry `{NAME}`" in bench.publish(place)
    assert "already exists" in bench.publish(place, status=101)
    assert 'first-A = "0.1.0"' in bench.run(place, "search", "--registry", NAME, "first")
    info = bench.run(bench.folder, "info", "--registry", NAME, "first-A")
    assert ("license: MIT" in info, "first-A of a test" in info) == (True, True)


@pytest.mark.shows("install", by=("cargo",))
@pytest.mark.parametrize("name", ["x", "xy", "xyz", "Xyz_w"])
def test_crates_are_built_with_dependencies_of_every_kind(bench, name):
    bench.publish(bench.package(name))
    more = dependency(name, more=", optional = true, default-features = false")
    more += '\n[features]\ndefault = ["extra"]\nextra = ["dep:used"]\n'
    more += "\n[target.'cfg(any(unix, target_os=\"windows\"))'.dev-dependencies]\n"
    more += f'{name} = {{ version = "*", registry = "{NAME}" }}\n'
    between = bench.package(f"on-{name.lower()}", more=more, files={"src/lib.rs": "pub use used::answer;\n"})
    bench.publish(between)
    program = bench.package(f"app-{name.lower()}", more=dependency(f"on-{name.lower()}"), files={"src/main.rs": USES})
    assert bench.run(program, "run", "-q").strip().splitlines()[-1] == "42"


@pytest.mark.shows("yank", "lock", by=("cargo",))
def test_a_yanked_version_is_for_those_who_have_it_locked(bench, make_bench):
    bench.publish(bench.package("pulled"))
    program = bench.package("has-it", more=dependency("pulled"), files={"src/main.rs": USES})
    bench.run(program, "generate-lockfile")
    assert "Yank pulled@0.1.0" in bench.run(program, "yank", "--registry", NAME, "pulled@0.1.0")
    other = make_bench(folder="other")
    fresh = other.package("new", more=dependency("pulled"), files={"src/main.rs": USES})
    assert "yanked" in other.run(fresh, "generate-lockfile", status=101)
    (fresh / "Cargo.lock").write_text((program / "Cargo.lock").read_text().replace('"has-it"', '"new"'))
    assert other.run(fresh, "run", "-q", "--locked").strip() == "42"
    bench.run(program, "yank", "--undo", "--registry", NAME, "pulled@0.1.0")
    (fresh / "Cargo.lock").unlink()
    other.run(fresh, "generate-lockfile")


def test_owners_are_listed_and_a_refusal_is_printed(bench):
    place = bench.package("owned")
    bench.publish(place)
    assert "admin" in bench.run(place, "owner", "--registry", NAME, "--list", "owned")
    assert "404 Not Found): owner 'nobody' does not exist" in bench.run(
        place, "owner", "--registry", NAME, "--add", "nobody", "owned", status=101
    )
    bench.run(place, "owner", "--registry", NAME, "--add", "admin", "owned")


@pytest.mark.shows("refusal", by=("cargo",))
def test_cargo_prints_why_a_crate_is_refused(bench):
    bench.publish(bench.package("two-words"))
    refused = bench.publish(bench.package("two_words"), status=101)
    assert "status 409 Conflict): crate two_words was previously named two-words" in refused


@pytest.mark.shows("private", "login", by=("cargo",))
@pytest.mark.parametrize("way", ["environment", "login", "program"])
def test_a_private_repository_is_read_with_a_token(make_bench, token, way):
    bench = make_bench("private")
    bench.publish(bench.package(f"secret-{way}"))
    reader = make_bench("private", "", "reader")
    program = reader.package("app", more=dependency(f"secret-{way}"), files={"src/main.rs": USES})
    assert f"no token found for `{NAME}`" in reader.run(program, "fetch", status=101)
    variable = f"CARGO_REGISTRIES_{NAME.upper()}_TOKEN"
    reader.environ[variable] = "wrong"
    assert "401" in reader.run(program, "fetch", status=101)
    del reader.environ[variable]
    config = reader.home / "config.toml"
    match way:
        case "environment":
            reader.environ[variable] = token
        case "login":
            (reader.home / "credentials.toml").write_text(f'[registries.{NAME}]\ntoken = "{token}"\n')
        case _:
            (reader.folder / "token").write_text(token)
            provider = f"cargo:token-from-stdout cat {reader.folder / 'token'}"
            config.write_text(config.read_text().replace('["cargo:token"]', f'["{provider}"]'))
    assert reader.run(program, "run", "-q").strip() == "42"


def test_an_update_asks_for_what_has_changed_only(bench):
    bench.publish(bench.package("grows"))
    program = bench.package("follows", more=dependency("grows"), files={"src/main.rs": USES})
    bench.run(program, "generate-lockfile")
    bench.publish(bench.package("grows", "0.1.1"))
    assert "-> v0.1.1" in bench.run(program, "update")
    reply = HttpClient(bench.url).get("/index/gr/ow/grows")
    assert HttpClient(bench.url).get("/index/gr/ow/grows", If_None_Match=reply.headers["etag"]).status == 304


def test_the_environment_alone_is_enough_for_a_private_registry(make_bench, token):
    make_bench("private").publish(make_bench("private", folder="first").package("by-environment"))
    bench = make_bench("private", "", "bare")
    (bench.home / "config.toml").unlink()
    program = bench.package("bare-app", more=dependency("by-environment"), files={"src/main.rs": USES})
    bench.environ["CARGO_REGISTRIES_TEAM_INDEX"] = f"sparse+{bench.url}/index/"
    bench.environ["CARGO_REGISTRIES_TEAM_TOKEN"] = token
    bench.environ["CARGO_REGISTRY_GLOBAL_CREDENTIAL_PROVIDERS"] = "cargo:token"
    assert bench.run(program, "run", "-q").strip() == "42"
