"""Archives of folders have what clients get who ask for each file, also by what rules read only then."""

from __future__ import annotations

import io
import tarfile
from typing import Any

import pytest

from tests.support.format_repositories import World
from tests.support.http_client import HttpClient, Reply
from tests.support.maven_files import make_pom
from tests.support.timeouts import polled

pytestmark = pytest.mark.server

LICENCES = "<licenses><license><name>{}</name></license></licenses>"
RULE = {"name": "no gpl", "match": {"licences": ["GPL-*"]}, "action": "block"}


def archived(reply: Reply) -> set[str]:
    """The jars of an archive; a POM is kept when rules ask for it."""
    assert reply.status == 200, reply.text
    with tarfile.open(fileobj=io.BytesIO(reply.body)) as archive:
        return {each.name for each in archive if each.name.endswith(".jar")}


@pytest.fixture
def proxied(format_repositories_world: World, request: pytest.FixtureRequest) -> tuple[World, str]:
    """A proxy, by its name, that keeps jars of two licences, of which no rule has asked yet."""
    world, name = format_repositories_world, f"archived{abs(hash(request.node.name))}"
    world.add("maven", name, {"type": "Proxy", "proxy": {"routes": [world.route("maven")]}})
    world.add("maven", f"{name}-all", {"type": "Virtual", "members": [f"main/{name}"]})
    own, proxy = world.at("maven-own"), world.at(name)
    for artifact, licence in ((f"{name}-gpl", "GPL-3.0-only"), (f"{name}-mit", "MIT")):
        stem = f"/com/example/{artifact}/1.0/{artifact}-1.0"
        pom = make_pom("com.example", artifact, "1.0", LICENCES.format(licence))
        for path, body in ((f"{stem}.pom", pom), (f"{stem}.jar", b"PK jar")):
            own.ask("PUT", path, body, {"Content-Type": "application/octet-stream"})
        polled(lambda path=f"{stem}.jar": "last-modified" in proxy.get(path).headers)  # it is recorded
    return world, name


@pytest.mark.parametrize("missing", ["block", "allow"])
def test_what_only_files_tell_decides_also_about_an_archive(proxied: tuple[World, str], missing: str) -> None:
    world, name = proxied
    rule: dict[str, Any] = {**RULE, "missing": missing}
    world.set_rules(name, rule)
    for place in (name, f"{name}-all"):
        anybody = HttpClient(f"{world.url}/repositories/main/{place}")
        assert archived(anybody.get("/com/?archive=tar.gz")) == {f"example/{name}-mit/1.0/{name}-mit-1.0.jar"}
        assert anybody.get(f"/com/example/{name}-gpl/1.0/{name}-gpl-1.0.jar").status == 403


def test_an_archive_fails_if_it_is_not_known_what_may_be_in_it(proxied: tuple[World, str]) -> None:
    world, name = proxied
    world.set_rules(name, {**RULE, "missing": "block"})
    world.ok("PUT", f"/repository/main%2F{name}/config/proxy", {"routes": [{"url": "http://127.0.0.1:9/"}]})
    anybody = HttpClient(f"{world.url}/repositories/main/{name}")
    assert anybody.get(f"/com/example/{name}-gpl/1.0/{name}-gpl-1.0.jar").status == 503
    assert anybody.get("/com/?archive=tar.gz").status == 503
