"""
Deploys of one artifact at the same time: each client reads metadata, changes them and writes them back.

``PKGREPO_DEPLOY_ROUNDS`` sets how often each test deploys; a race may need many rounds to show.
"""

from __future__ import annotations

import hashlib
import os
import re
from functools import partial

import pytest

from tests.support.maven_deploys import at_once, deploy, deploy_snapshot, versions_in

pytestmark = pytest.mark.server

ROUNDS = int(os.environ.get("PKGREPO_DEPLOY_ROUNDS", "2"))
DEPLOYS = 32


def checked(mvn, directory):
    """The metadata of a directory, whose checksums fit."""
    reply = mvn.get(f"{directory}/maven-metadata.xml")
    assert reply.status == 200
    assert mvn.get(f"{directory}/maven-metadata.xml.sha1").text == hashlib.sha1(reply.body).hexdigest()
    assert reply.headers["x-checksum-md5"] == hashlib.md5(reply.body).hexdigest()
    return reply.body


@pytest.mark.parametrize("number", range(ROUNDS))
def test_deploys_of_many_versions_at_once_are_all_listed(mvn, number):
    artifact = f"parallel{number}"
    versions = [f"1.{each}" for each in range(DEPLOYS)]
    at_once(partial(deploy, mvn, artifact, version) for version in versions)
    assert versions_in(checked(mvn, f"/com/example/{artifact}")) == versions
    assert b"<release>1.31</release>" in mvn.get(f"/com/example/{artifact}/maven-metadata.xml").body


@pytest.mark.parametrize("number", range(ROUNDS))
def test_deploys_and_deletions_at_once_leave_what_is_stored(mvn, number):
    artifact = f"deleted{number}"
    first = [f"1.{each}" for each in range(8)]
    for version in first:
        deploy(mvn, artifact, version)

    def delete(version):
        assert mvn.ask("DELETE", f"/com/example/{artifact}/{version}").status == 204

    second = [f"2.{each}" for each in range(8)]
    at_once(
        [*(partial(deploy, mvn, artifact, version) for version in second), *(partial(delete, each) for each in first)]
    )
    assert versions_in(checked(mvn, f"/com/example/{artifact}")) == second


@pytest.mark.parametrize("number", range(ROUNDS))
def test_snapshots_deployed_at_once_have_metadata_of_files_that_exist(mvn, number):
    artifact = f"snapshots{number}"
    directory = f"/com/example/{artifact}/1.0-SNAPSHOT"
    for minute in (0, 1):
        times = [f"20240102.0304{minute}{each}" for each in range(2)]
        made = at_once(partial(deploy_snapshot, mvn, artifact, "1.0", time) for time in times)
        text = checked(mvn, directory).decode()
        newest = max(made)
        timestamp, build = str(newest).split("-")[1:]
        assert f"<timestamp>{timestamp}</timestamp>" in text
        assert f"<buildNumber>{build}</buildNumber>" in text
        values = re.findall("<extension>(.*?)</extension>\\s*<value>(.*?)</value>", text)
        assert values == [("jar", newest), ("pom", newest)]
        for extension, value in values:
            assert mvn.get(f"{directory}/{artifact}-{value}.{extension}").status == 200
    assert versions_in(checked(mvn, f"/com/example/{artifact}")) == ["1.0-SNAPSHOT"]
