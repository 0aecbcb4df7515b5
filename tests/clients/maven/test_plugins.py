"""Plugins of Maven, which are run by the prefix that the metadata of their group has."""

from __future__ import annotations

import pytest

from tests.clients.maven.conftest import MakeBench
from tests.support.maven_clients import MAVENS, MavenRepository


def test_plugin_runs_by_its_prefix_in_its_newest_version(repository: MavenRepository, make_bench: MakeBench) -> None:
    """Maven 3.8 with a current deploy plugin writes no metadata of the group, so the others deploy."""
    bench = make_bench()
    for maven, version in (("maven-3.9", "1.0"), ("maven-4", "1.1")):
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
