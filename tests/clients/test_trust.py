"""
Versions that come with less trust than those before: clients that refuse them by themselves, and what clients get where
a rule holds them.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from pkgrepo.formats.rubygems.legacy import quick_gemspec
from pkgrepo.formats.rubygems.push.gem_metadata import inspect_gem
from tests.support.client_programs import client
from tests.support.configurations import hosted, proxy
from tests.support.container_clients import ADMIN
from tests.support.fulcio import extensions_of
from tests.support.http_client import HttpClient
from tests.support.issuer import Issuer, issuer_lines, listening
from tests.support.npm_clients import NodeBench, Registry
from tests.support.npm_packages import make_publish, make_tarball
from tests.support.python_index import PythonBench, PythonIndex
from tests.support.ruby_clients import NEWER, RubyBench
from tests.support.server_process import ServerProcess
from tests.support.sigstore import FakeSigstore, npm_statement
from tests.support.upstreams.messages import Answer
from tests.support.upstreams.npm import NpmUpstream
from tests.support.upstreams.python import PythonUpstream
from tests.support.upstreams.rubygems import RubyUpstream

pytestmark = [pytest.mark.clients, pytest.mark.timeout(600)]

FAKE = FakeSigstore()
DAYS = {"1.0.0": "2026-08-01T00:00:00.000Z", "1.1.0": "2026-08-02T00:00:00.000Z"}
CLAIM = {"attestations": {"url": "https://elsewhere.example/", "provenance": {"predicateType": "slsa"}}}
PUBLISHER = (
    'config = { type = "Hosted", publishers = [{ issuer = "forge", claims = { repository = "acme/*" }, '
    'packages = ["*"], actions = ["write"] }] }'
)
FELL = '{ rules = [{ name = "trust fell", match = { trust = "fell" }, missing = "block", reason = "ask the team" }] }'
ALL = [{"repository": "main/*", "actions": ["read", "write"]}]
REASON = "(1.0.0 before it had provenance, and it has no provenance)"


@pytest.fixture(scope="module")
def upstreams() -> Iterator[tuple[NpmUpstream, PythonUpstream]]:
    """Registries whose first version has provenance, and the second one has none."""
    with NpmUpstream() as npm, PythonUpstream() as python:
        for version, published in DAYS.items():
            proven = version == "1.0.0"
            tarball = npm.add("widget", version, published=published, dist=CLAIM if proven else None)
            name, wheel = python.add("widget", version, published=published)
            if proven:
                attested = json.dumps(FAKE.npm("widget", version, tarball)).encode()
                npm.serve(f"/-/npm/v1/attestations/widget@{version}", Answer(body=attested))
                python.projects["widget"][-1]["provenance"] = f"{python.url}/{name}.provenance"
                python.serve(f"/{name}.provenance", Answer(body=json.dumps(FAKE.python(name, wheel)).encode()))
        yield npm, python


@pytest.fixture(scope="module")
def gems() -> Iterator[RubyUpstream]:
    """A gem server whose first version has an attestation, and the second one has none."""
    with RubyUpstream() as ruby:
        for version, published in DAYS.items():
            gem = ruby.add("widget", version, created=published.replace(".000Z", "Z"))
            ruby.serve(f"/quick/Marshal.4.8/widget-{version}.gemspec.rz", quick_gemspec(inspect_gem(gem)))
            attested = FAKE.gem(gem) if version == "1.0.0" else b"[]"
            ruby.serve(f"/api/v1/attestations/widget-{version}.json", Answer(body=attested))
        yield ruby


@pytest.fixture(scope="module")
def issuer() -> Iterator[Issuer]:
    with listening() as found:
        yield found


@pytest.fixture(scope="module")
def configuration(
    upstreams: tuple[NpmUpstream, PythonUpstream],
    gems: RubyUpstream,
    issuer: Issuer,
    tmp_path_factory: pytest.TempPathFactory,
) -> str:
    npm, python = upstreams
    root = tmp_path_factory.mktemp("root") / "trusted_root.json"
    root.write_bytes(FAKE.root_text)
    sections = [
        f'auth.trusted_root = "{root}"\n{issuer_lines(issuer)}',
        hosted("npm", **{"npm-own": PUBLISHER}),
        proxy("npm", "npm-plain", npm.url),
        proxy("npm", "npm-held", npm.url, policy=FELL),
        proxy("python", "python-held", python.url, policy=FELL),
        proxy("ruby", "gems-held", gems.url, policy=FELL),
        hosted("ruby", "gems-own"),
    ]
    return "\n".join(['proxy.allow_private = ["127.0.0.1"]', *sections])


@pytest.fixture(scope="module")
def own(server: ServerProcess, issuer: Issuer) -> None:
    """Publish ``piped`` from a pipeline, ``proven`` with provenance, ``staged`` by an approval; then each with less."""
    admin = HttpClient(f"{server.url}/repositories/main/npm-own", ADMIN)
    api = HttpClient(f"{server.url}/api", ADMIN)

    def publish(sender: HttpClient, name: str, version: str, *, proven: bool = True) -> None:
        tarball = make_tarball(name, version)
        extensions = extensions_of(issuer.url, _13=None, _3=None, _15=None)
        bundle = (
            json.dumps(FAKE.bundle(npm_statement(name, version, tarball), extensions=extensions)) if proven else None
        )
        body = make_publish(name, version, tarball=tarball, bundle=bundle)
        sent = sender.ask("PUT", f"/{name}", body, {"Content-Type": "application/json"})
        assert sent.status == 201, sent.text

    exchanged = api.post_json("/auth/oidc", {"token": issuer.token(), "repository": "main/npm-own"})
    token = exchanged.json["token"]
    publish(HttpClient(f"{server.url}/repositories/main/npm-own", ("__token__", token)), "piped", "1.0.0")
    publish(admin, "piped", "1.1.0")
    publish(admin, "proven", "1.0.0")
    publish(admin, "proven", "1.1.0", proven=False)
    uid = api.ask("GET", "/repository/find-id/main/npm-own").json["repository_id"]
    stage = api.post_json(f"/repository/{uid}/stages", {}).json
    publish(HttpClient(stage["url"], ADMIN), "staged", "1.0.0", proven=False)
    assert api.post_json(f"/stages/{stage['id']}/approve", {}).status == 200
    publish(admin, "staged", "1.1.0")


def bench_of(tmp_path: Path, server: ServerProcess, name: str) -> NodeBench:
    return NodeBench(tmp_path, Registry(server.url, f"main/{name}"), None)


def add(bench: NodeBench, program: str, place: Path, wanted: str, status: int | None = 0) -> str:
    """Add a package with a client that refuses versions which came with less trust."""
    if program == "deno":
        with (bench.home / ".npmrc").open("a") as file:
            file.write("trust-policy=no-downgrade\n")
        return bench.run("deno", "add", f"npm:{wanted}", "--min-dep-age=0", cwd=place, status=status)
    options = ("--config.trustPolicy=no-downgrade", "--config.minimumReleaseAge=0")
    return bench.run(program, "add", wanted, *options, cwd=place, status=status)


WITH_LESS = (
    ("npm-own", "proven", "provenance"),
    ("npm-own", "piped", "trusted publisher"),
    ("npm-own", "staged", "publish"),
    ("npm-plain", "widget", "provenance"),
)


@pytest.mark.usefixtures("own")
@pytest.mark.parametrize(
    ("program", "repository", "name", "had"),
    [
        (program, *each)
        for program in ("pnpm", "pnpm-12", "deno")
        for each in WITH_LESS
        if (program, each[1]) != ("pnpm", "staged")  # pnpm 10 knows no staged publishes
    ],
)
def test_a_client_ranks_what_is_hosted_and_proxied(
    server: ServerProcess, tmp_path: Path, program: str, repository: str, name: str, had: str
) -> None:
    bench = bench_of(tmp_path, server, repository)
    printed = add(bench, program, bench.project("refused"), f"{name}@1.1.0", status=None)
    assert "downgrade" in printed, printed
    if program != "pnpm-12":  # which does not say what they had
        assert had in printed, printed
    place = bench.project("first")
    add(bench, program, place, f"{name}@1.0.0")
    assert bench.required(place, name) == f"{name}@1.0.0"


@pytest.mark.shows("trust")
@pytest.mark.parametrize("program", ["npm-12", "pnpm", "pnpm-12", "yarn-4", "bun", "deno"])
def test_where_a_rule_holds_a_version_clients_get_the_one_before(
    server: ServerProcess, tmp_path: Path, program: str
) -> None:
    bench = bench_of(tmp_path, server, "npm-held")
    place = bench.project("any")
    ask: Any = add if program in ("pnpm", "pnpm-12", "deno") else NodeBench.install
    ask(bench, program, place, "widget")
    assert bench.required(place, "widget") == "widget@1.0.0"


def test_npm_prints_why_a_version_is_held(server: ServerProcess, tmp_path: Path) -> None:
    bench = bench_of(tmp_path, server, "npm-held")
    url = f"{bench.registry.url}widget/-/widget-1.1.0.tgz"
    printed = bench.run("npm-11", "install", url, cwd=bench.project("exact"), status=None)
    assert REASON in printed, printed


@pytest.mark.shows("held")
@pytest.mark.parametrize("program", ["npm-8", "npm-9", "npm-10", "npm-11", "npm-12"])
@pytest.mark.parametrize("wanted", ["widget@1.1.0", "widget@>1.0.0"])
def test_npm_prints_why_the_version_that_it_asks_for_is_held(
    server: ServerProcess, tmp_path: Path, program: str, wanted: str
) -> None:
    bench = bench_of(tmp_path, server, "npm-held")
    for title in ("exact", "cached"):
        printed = bench.run(program, "install", wanted, cwd=bench.project(title), status=None)
        assert f"Could not download {wanted} due to policy violations:" in printed, printed
        assert f"widget 1.1.0 is blocked by the rule 'trust fell' of main/npm-held {REASON}: ask the team" in printed
    printed = bench.run(program, "install", "widget@9.9.9", cwd=bench.project("other"), status=None)
    assert "No matching version found for widget@9.9.9" in printed, printed


@pytest.mark.shows("trust", by=("pip", "uv"))
def test_pip_and_uv_get_the_version_before(server: ServerProcess, tmp_path: Path) -> None:
    bench, index = PythonBench(tmp_path), PythonIndex(server.url, "main/python-held")
    venv = bench.venv()
    bench.pip(venv, "install", "--no-deps", "-i", index.simple, "widget")
    assert "widget 1.0.0" in " ".join(bench.pip(venv, "list").split())
    wanted = tmp_path / "in.txt"
    wanted.write_text("widget\n")
    compiled = [client("uv"), "pip", "compile", "--index-url", index.simple, wanted]
    assert "widget==1.0.0" in bench.run(*compiled)
    wanted.write_text("widget==1.1.0\n")
    assert "is blocked by the rule 'trust fell'" in bench.run(*compiled, status=2)


def test_gem_pushes_attestations_which_are_verified_and_served(server: ServerProcess, tmp_path: Path) -> None:
    token = HttpClient(f"{server.url}/api", ADMIN).post_json("/user/token", {"name": "gems", "repositories": ALL})
    bench = RubyBench(tmp_path, NEWER, f"{server.url}/repositories/main/gems-own", token.json["token"])
    gem, bundle = bench.build("signed", "1.0.0"), tmp_path / "signed.sigstore.json"
    bundle.write_text(json.dumps(FAKE.message_bundle(b"another gem")))
    send = ("push", "--host", bench.url, gem, "--attestation", bundle)
    printed = bench.gem(*send, status=1)
    assert "Attestation verification failed:" in printed
    assert "is about a file with other bytes" in printed
    bundle.write_text(json.dumps(FAKE.message_bundle(gem.read_bytes())))
    assert "Successfully registered gem: signed (1.0.0)" in bench.gem(*send)
    served = HttpClient(bench.url, ADMIN).get("/api/v1/attestations/signed-1.0.0.json")
    assert served.json == [json.loads(bundle.read_text())]


@pytest.mark.shows("trust", by=("newer",))
def test_gem_gets_the_version_before_where_a_rule_holds_one_without_attestations(
    server: ServerProcess, tmp_path: Path
) -> None:
    bench = RubyBench(tmp_path, NEWER, f"{server.url}/repositories/main/gems-held", None)
    source = ("--clear-sources", "--source", f"{bench.url}/", "--no-document")
    assert "Successfully installed widget-1.0.0" in bench.gem("install", "widget", *source)
    assert "Could not find a valid gem 'widget' (= 1.1.0)" in bench.gem(
        "install", "widget", "-v", "1.1.0", *source, status=2
    )
