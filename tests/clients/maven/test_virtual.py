"""The usual group: releases, snapshots and a proxy behind one address, at which clients deploy and resolve."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.configurations import config, hosted, proxy, virtual
from tests.support.maven_clients import MAVENS, MavenBench, MavenRepository
from tests.support.server_process import ServerProcess, running

GROUP = "com.example.group"
ALL = "main/releases", "main/snapshots", "main/mirror"


@pytest.fixture(scope="module")
def group(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServerProcess]:
    """A server with the repositories of the group; its proxy is of another server, which has one artifact."""
    with running(tmp_path_factory.mktemp("origin"), hosted("maven", "theirs")) as origin:
        bench = MavenBench(tmp_path_factory.mktemp("bench"), f"{origin.url}/repositories/main/theirs")
        bench.deploy_file("maven-3.9", f"{GROUP}:theirs:1.0", bench.jar("theirs"))
        text = 'proxy.allow_private = ["127.0.0.1"]\n' + "".join(
            (
                hosted(
                    "maven",
                    releases=config(push_rules='push_policy = "RELEASES"'),
                    snapshots=config(push_rules='push_policy = "SNAPSHOTS"'),
                ),
                proxy("maven", "mirror", f"{origin.url}/repositories/main/theirs"),
                virtual("maven", "all", *ALL, publish_to="main/releases", publish_snapshots_to='"main/snapshots"'),
            )
        )
        with running(tmp_path_factory.mktemp("server"), text) as server:
            yield server


@pytest.mark.shows("virtual")
@pytest.mark.parametrize("through", ["members", "group"])
@pytest.mark.parametrize("maven", MAVENS)
def test_releases_and_snapshots_of_an_artifact_are_resolved_through_a_group(
    group: ServerProcess, tmp_path: Path, maven: str, through: str
) -> None:
    artifact = f"tool-{maven.replace('.', '')}-{through}"
    places = {"1.0": "releases", "1.1-SNAPSHOT": "snapshots", "1.1": "releases", "1.2-SNAPSHOT": "snapshots"}
    for number, (version, name) in enumerate(places.items()):
        url = f"{group.url}/repositories/main/{'all' if through == 'group' else name}"
        bench = MavenBench(tmp_path / f"deploys-{number}", url)
        bench.deploy_file(maven, f"{GROUP}:{artifact}:{version}", bench.jar(f"{artifact} {version}"))
    directory = f"{GROUP.replace('.', '/')}/{artifact}"
    for name, versions in {
        "releases": ["1.0", "1.1"],
        "snapshots": ["1.1-SNAPSHOT", "1.2-SNAPSHOT"],
        "all": ["1.0", "1.1-SNAPSHOT", "1.1", "1.2-SNAPSHOT"],
    }.items():
        assert MavenRepository(group.url, f"main/{name}").versions(directory) == versions
    user = MavenBench(tmp_path / "user", f"{group.url}/repositories/main/all", auth=None)
    for version in ("1.0", "1.2-SNAPSHOT"):
        jars = user.dependencies(maven, f"{GROUP}:{artifact}:{version}", f"{GROUP}:theirs:1.0")
        assert jars[f"{artifact}-{version}.jar"] == user.jar(f"{artifact} {version}").read_bytes()
        assert jars["theirs-1.0.jar"] == user.jar("theirs").read_bytes()
