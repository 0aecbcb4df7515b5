"""Plugins of Maven, which are run by the prefix that the metadata of their group has."""

from __future__ import annotations

import pytest

from tests.clients.maven.conftest import MakeBench
from tests.support.maven_clients import MAVENS, MavenRepository


def test_plugin_runs_by_its_prefix_in_its_newest_version(repository: MavenRepository, make_bench: MakeBench) -> None:
    bench = make_bench()
    for maven, version in zip(MAVENS, ("1.0", "1.1", "1.2"), strict=True):
        bench.deploy(maven, bench.project(version), "-pl", "tool", "--also-make")
        plugins = [
            [plugin.findtext(name) for name in ("prefix", "artifactId", "name")]
            for plugin in repository.metadata("com/example/team").iter("plugin")
        ]
        assert plugins == [["team", "team-maven-plugin", "Team plugin"]]
        assert repository.metadata("com/example/team/team-maven-plugin").findtext("versioning/release") == version
        for reader in MAVENS:
            assert f"hello from plugin {version}" in make_bench(auth=None).run(reader, "-Pplugins", "team:hello")


@pytest.mark.parametrize("maven", MAVENS)
def test_unknown_prefix_is_told_apart_from_a_failure(make_bench: MakeBench, maven: str) -> None:
    shown = make_bench().run(maven, "-Pplugins", "nonesuch:hello", status=1)
    assert "No plugin found for prefix 'nonesuch'" in shown
