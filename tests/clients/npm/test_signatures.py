"""npm verifies the registry's signatures and provenance bundles."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.support.npm_clients import ENDS, NodeBench, Registry
from tests.support.npm_packages import make_bundle

pytestmark = [pytest.mark.clients, pytest.mark.timeout(600)]

# npm first contacts a public root of trust, which is not reachable without the internet.
TRUSTING = f"--require={Path(__file__).with_name('no_root_of_trust.cjs')}"


def test_signatures_are_verified_without_the_internet(bench: NodeBench) -> None:
    # npm 8 is the last one that verifies without a root of trust from the internet.
    bench.publish("npm-11", bench.package("@signed/x"))
    project = bench.project("signed")
    bench.install("npm-8", project, "@signed/x")
    printed = bench.run("npm-8", "audit", "signatures", cwd=project)
    assert "1 package has a verified registry signature" in printed


@pytest.mark.shows("provenance")
@pytest.mark.parametrize("npm", ENDS)
def test_provenance_is_published_and_shown(bench: NodeBench, registry: Registry, npm: str) -> None:
    name = f"@proven/by-{npm}"
    publish_proven(bench, npm, name)
    told = registry.document(name)["versions"]["1.0.0"]["dist"]["attestations"]
    assert told["provenance"] == {"predicateType": "https://slsa.dev/provenance/v1"}
    assert registry.ask("GET", f"-/npm/v1/attestations/{name}@1.0.0").json()["attestations"]


def test_signatures_and_provenance_are_verified(bench: NodeBench) -> None:
    # npm 9 and 10 reject provenance without a second statement, which the operator of the public registry signs.
    publish_proven(bench, "npm-11", "@proven/x")
    bench.publish("npm-11", bench.package("unproven"))
    project = bench.project("proven")
    bench.install("npm-11", project, "@proven/x", "unproven")
    printed = bench.run("npm-11", "audit", "signatures", cwd=project, NODE_OPTIONS=TRUSTING)
    assert "2 packages have verified registry signatures" in printed
    assert "1 package has a verified attestation" in printed


@pytest.mark.parametrize("npm", ENDS)
def test_signatures_are_verified(bench: NodeBench, npm: str) -> None:
    bench.publish(npm, bench.package(f"@signed/by-{npm}"))
    project = bench.project(f"signed-{npm}")
    bench.install(npm, project, f"@signed/by-{npm}")
    printed = bench.run(npm, "audit", "signatures", cwd=project, NODE_OPTIONS=TRUSTING)
    assert "1 package has a verified registry signature" in printed


def publish_proven(bench: NodeBench, npm: str, name: str) -> None:
    """Publish a package with a provenance file for its tarball."""
    place = bench.package(name)
    told = json.loads(bench.run(npm, "pack", "--json", cwd=place))
    (packed,) = told.values() if isinstance(told, dict) else told  # npm 12: by name
    tarball = place / packed["filename"]
    bundle = bench.folder / "bundle.json"
    bundle.write_text(make_bundle(name, "1.0.0", tarball.read_bytes()))
    tarball.unlink()
    bench.run(npm, "publish", "--access=public", f"--provenance-file={bundle}", cwd=place, NODE_OPTIONS=TRUSTING)
