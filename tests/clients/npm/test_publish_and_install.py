"""Each client installs what each client published: npm 9 to 11, pnpm 10 and 12, yarn 1 and 4, bun."""

from __future__ import annotations

import hashlib
import json
import re
import shutil
from collections.abc import Callable

import pytest

from tests.support.npm_clients import CLIENTS, ENDS, NPMS, PNPMS, NodeBench, Registry

pytestmark = [pytest.mark.clients, pytest.mark.timeout(600)]


def plain(publisher: str) -> str:
    return f"by-{publisher}-64"


def scoped(publisher: str) -> str:
    return f"@by-{publisher}/thing"


@pytest.fixture(scope="module")
def published(module_bench: Callable[..., NodeBench]) -> Registry:
    """A registry to which every client has published an unscoped package, and a scoped one with a tag."""
    bench = module_bench()
    for publisher in CLIENTS:
        bench.publish(publisher, bench.package(plain(publisher), keywords=["x"]))
        place = bench.package(scoped(publisher), "1.0.0-beta.1", dependencies={plain(publisher): "^1.0.0"})
        bench.publish(publisher, place, "--access", "public", "--tag", "beta")
    return bench.registry


@pytest.mark.shows("install")
@pytest.mark.parametrize("installer", CLIENTS)
def test_every_client_installs_what_every_client_published(
    published: Registry, bench: NodeBench, installer: str
) -> None:
    project = bench.project(installer)
    wanted = [f"{scoped(publisher)}@beta" for publisher in CLIENTS]
    bench.install(installer, project, *wanted, *map(plain, CLIENTS))
    assert bench.required(project, *map(plain, CLIENTS)).split() == [f"{plain(each)}@1.0.0" for each in CLIENTS]
    assert bench.required(project, *map(scoped, CLIENTS)).split() == [
        f"{scoped(each)}@1.0.0-beta.1" for each in CLIENTS
    ]


@pytest.mark.shows("publish")
@pytest.mark.parametrize("publisher", CLIENTS)
def test_published_metadata_is_served_unchanged(published: Registry, publisher: str) -> None:
    document = published.document(plain(publisher))
    version = document["versions"]["1.0.0"]
    served = published.ask("GET", f"{plain(publisher)}/-/{plain(publisher)}-1.0.0.tgz").content
    assert version["dist"]["shasum"] == hashlib.sha1(served).hexdigest()
    assert version["keywords"] == ["x"]
    assert document["readme"].strip() == f"# {plain(publisher)}"
    assert not {key for key in version if key.startswith("_")} - {
        "_id",
        "_npmUser",
        "_nodeVersion",
        "_npmVersion",
        "_hasShrinkwrap",
    }
    if publisher not in ("yarn-4", "bun"):  # these clients send none
        assert document["readme"].startswith(f"# {plain(publisher)}")
    assert published.document(scoped(publisher))["dist-tags"]["beta"] == "1.0.0-beta.1"


@pytest.mark.shows("refusal")
@pytest.mark.parametrize("publisher", CLIENTS)
def test_a_second_publish_of_a_version_is_refused_with_a_sentence(bench: NodeBench, publisher: str) -> None:
    place = bench.package(f"twice-{publisher}")
    bench.publish(publisher, place)
    (place / "index.js").write_text("other\n")
    printed = bench.publish(publisher, place, status=1)
    assert "cannot publish over" in printed.lower(), printed


@pytest.mark.parametrize("publisher", ["yarn-4", "bun"])
def test_a_second_publish_can_be_tolerated(bench: NodeBench, publisher: str) -> None:
    place = bench.package(f"tolerated-{publisher}")
    bench.publish(publisher, place)
    bench.publish(publisher, place, "--tolerate-republish")


@pytest.mark.parametrize("npm", ENDS)
def test_npm_views_what_was_published(bench: NodeBench, npm: str) -> None:
    name = f"@viewed/by-{npm}"
    bench.publish(npm, bench.package(name, "1.0.0", license="MIT"))
    bench.publish(npm, bench.package(name, "1.1.0-rc.1"), "--tag", "next")
    told = json.loads(bench.run(npm, "view", name, "--json"))
    if npm == "npm-12":  # it shows a list of what it finds
        (told,) = told
    assert (told["version"], told["license"]) == ("1.0.0", "MIT")
    assert told["dist-tags"] == {"latest": "1.0.0", "next": "1.1.0-rc.1"}
    assert told["versions"] == ["1.0.0", "1.1.0-rc.1"]
    assert "1.1.0-rc.1" in bench.run(npm, "view", f"{name}@next", "version")


@pytest.mark.shows("lock")
@pytest.mark.parametrize("npm", ENDS)
def test_npm_installs_from_a_lockfile(bench: NodeBench, npm: str) -> None:
    name = f"locked-{npm}"
    bench.publish(npm, bench.package(name))
    project = bench.project(f"ci-{npm}")
    bench.install(npm, project, name)
    lock = project / "package-lock.json"
    document = json.loads(lock.read_text())
    entry = document["packages"][f"node_modules/{name}"]
    assert entry["resolved"] == f"{bench.registry.url}{name}/-/{name}-1.0.0.tgz"
    public = bench.run(npm, "config", "get", "registry", "--userconfig=/dev/null").strip().splitlines()[-1]
    # npm 9 replaces only the host of a public registry's URL, so its requests miss the repository's path.
    others = [None] if npm == "npm-9" else [None, f"{public}{name}/-/{name}-1.0.0.tgz"]
    for number, resolved in enumerate([entry["resolved"], *others]):
        entry["resolved"] = resolved
        if resolved is None:
            del entry["resolved"]
        lock.write_text(json.dumps(document))
        shutil.rmtree(project / "node_modules")
        bench.run(npm, "ci", "--cache", str(bench.folder / f"cache-{number}"), cwd=project)
        assert bench.required(project, name) == f"{name}@1.0.0", resolved


@pytest.mark.shows("lock")
@pytest.mark.parametrize("pnpm", PNPMS)
def test_pnpm_installs_from_its_lockfile(bench: NodeBench, pnpm: str) -> None:
    name = f"frozen-{pnpm}"
    bench.publish(pnpm, bench.package(name))
    project = bench.project(f"frozen-{pnpm}")
    bench.install(pnpm, project, name)
    bench.publish(pnpm, bench.package(name, "1.1.0"))
    for number, command in enumerate([("install", "--frozen-lockfile"), ("ci",)]):
        if command == ("ci",) and pnpm == "pnpm":
            continue  # this client has no such command
        shutil.rmtree(project / "node_modules")
        bench.run(pnpm, *command, f"--config.store-dir={bench.folder}/store-{number}", cwd=project)
        assert bench.required(project, name) == f"{name}@1.0.0"


@pytest.mark.parametrize("pnpm", PNPMS)
def test_pnpm_views_what_was_published(bench: NodeBench, pnpm: str) -> None:
    name = f"@viewed/by-{pnpm}"
    bench.publish(pnpm, bench.package(name, "1.0.0", license="MIT"))
    bench.publish(pnpm, bench.package(name, "1.1.0-rc.1"), "--tag", "next")
    told = json.loads(bench.run(pnpm, "view", name, "--json"))
    assert (told["version"], told["license"]) == ("1.0.0", "MIT")
    assert told["versions"] == ["1.0.0", "1.1.0-rc.1"]
    assert "1.1.0-rc.1" in bench.run(pnpm, "view", f"{name}@next", "version")
    assert "404" in bench.run(pnpm, "view", f"@viewed/not-{pnpm}", status=1)


def test_a_version_with_build_metadata_is_installed(bench: NodeBench, registry: Registry) -> None:
    clients = ("npm-11", *PNPMS, "yarn-1", "yarn-4", "bun")
    for publisher in clients:
        bench.publish(publisher, bench.package(f"built-{publisher}", "1.0.0-rc.1+build.5"), "--tag", "rc")
        assert list(registry.document(f"built-{publisher}")["versions"]) == ["1.0.0-rc.1"]
    for installer in clients:
        project = bench.project(f"built-{installer}")
        names = [f"built-{publisher}" for publisher in clients]
        bench.install(installer, project, *(f"{name}@1.0.0-rc.1" for name in names))
        assert bench.required(project, *names).split() == [f"{name}@1.0.0-rc.1+build.5" for name in names]


@pytest.mark.parametrize("pnpm", PNPMS)
def test_pnpm_reads_the_publish_times_of_versions(bench: NodeBench, pnpm: str) -> None:
    name = f"aged-{pnpm}"
    bench.publish("npm-11", bench.package(name))
    project = bench.project(name)
    printed = bench.run(pnpm, "add", name, "--config.minimumReleaseAge=10000", cwd=project, status=1)
    assert re.search("ERR_PNPM_NO_(MATURE_)?MATCHING_VERSION", printed), printed
    bench.run(pnpm, "add", name, "--config.minimumReleaseAge=0", cwd=project)


def test_scripts_and_programs_reach_the_client(bench: NodeBench) -> None:
    place = bench.package(
        "tooled",
        files={"cli.js": "#!/usr/bin/env node\nconsole.log('ran');\n"},
        bin={"tooled": "cli.js"},
        scripts={"postinstall": "node -e \"require('fs').writeFileSync('built', '')\""},
    )
    bench.publish("npm-11", place)
    for npm in NPMS:
        project = bench.project(f"tooled-{npm}", allowScripts={"tooled": True})  # npm 12 runs no others
        bench.install(npm, project, "tooled")
        assert (project / "node_modules" / ".bin" / "tooled").exists()
        assert (project / "node_modules" / "tooled" / "built").exists()
