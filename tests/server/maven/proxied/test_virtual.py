"""Virtual repositories, rules about names and ages, and explanations of what is served."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable
from email.utils import formatdate

import pytest

from tests.server.maven.proxied.conftest import record
from tests.support.http_client import HttpClient
from tests.support.maven_bundles import artifact, make_zip
from tests.support.odd_files import zip_of
from tests.support.upstreams.maven import MavenUpstream

pytestmark = pytest.mark.server

At = Callable[[str], HttpClient]


def versions(text: str) -> list[str]:
    return re.findall(r"<version>([^<]*)</version>", text.partition("<versions>")[2])


def test_members_are_joined_and_files_are_those_of_the_first(
    at: At, first: MavenUpstream, second: MavenUpstream
) -> None:
    one = first.deploy("com.example", "union", "1.0")
    two = second.deploy("com.example", "union", "2.0")
    every = at("all")
    assert versions(every.get("/com/example/union/maven-metadata.xml").text) == ["1.0", "2.0"]
    assert (every.get(one).body, every.get(two).body) == (b"union 1.0", b"union 2.0")
    assert every.get("/com/example/union/3.0/union-3.0.jar").status == 404


def test_what_is_hosted_is_never_asked_of_an_upstream(
    at: At, first: MavenUpstream, second: MavenUpstream, api: HttpClient
) -> None:
    name = "/com/example/owned/1.0/owned-1.0.jar"
    stranger = first.deploy("com.example", "owned", "9.0")
    assert at("all").put(name, b"ours").status == 201
    asked = first.count(), second.count()  # the first publish asks whether an upstream has the name
    assert at("own").get(name).body == b"ours"
    assert at("all").get(name).body == b"ours"
    for path in (stranger, f"{stranger}.sha1", "/com/example/owned/1.0/owned-1.0.pom"):
        assert at("all").get(path).status == 404
    assert versions(at("all").get("/com/example/owned/maven-metadata.xml").text) == ["1.0"]
    assert at("all").put(name.replace("1.0", "1.1"), b"ours").status == 201
    assert (first.count(), second.count()) == asked


def test_plugins_of_hosted_groups_are_joined_with_those_of_upstreams(at: At, first: MavenUpstream) -> None:
    path = "/com/example/grouped/maven-metadata.xml"
    first.plugin("com.example.grouped", "theirs", "their-plugin")
    assert re.findall("<prefix>(.*?)</prefix>", at("all").get(path).text) == ["theirs"]
    plugin = b"<plugin><prefix>ours</prefix><artifactId>our-plugin</artifactId></plugin>"
    assert at("all").put(path, b"<metadata><plugins>" + plugin + b"</plugins></metadata>").status == 201
    found = at("all").get(path)
    assert re.findall("<prefix>(.*?)</prefix>", found.text) == ["ours", "theirs"]
    assert at("all").get(f"{path}.sha1").text == hashlib.sha1(found.body).hexdigest()


def test_virtual_repository_without_target_takes_nothing(at: At) -> None:
    refused = at("readable").put("/com/example/x/1.0/x-1.0.jar", b"x")
    assert (refused.status, "publish_to" in refused.reason) == (405, True)


def test_reserved_groups_are_not_asked_for(at: At, first: MavenUpstream, second: MavenUpstream) -> None:
    jar = first.deploy("com.acme.app", "secret", "1.0")
    first.build("com.acme", "snap", "1.0-SNAPSHOT", "20240101.000000", 1, b"x")
    for path in (jar, "/com/acme/app/secret/maven-metadata.xml", "/com/acme/snap/1.0-SNAPSHOT/maven-metadata.xml"):
        assert at("reserving").get(path).status == 404
        assert at("reserving").head(path).status == 404
    assert (first.count(), second.count()) == (0, 0)
    assert at("both").get(jar).status == 200


def test_young_releases_are_refused_until_they_are_old_enough(at: At, first: MavenUpstream) -> None:
    old = first.deploy("com.example", "aged", "1.0")
    young = "com/example/aged/2.0/aged-2.0.jar"
    first.add(young, zip_of(b"young"), **{"Last-Modified": formatdate(usegmt=True)})
    undated = "com/example/aged/3.0/aged-3.0.jar"
    first.serve(f"/{undated}", zip_of(b"undated"))
    assert at("aged").get(old).status == 200
    for path in (f"/{young}", f"/{undated}"):
        assert at("aged").head(path).status == 403
        refused = at("aged").get(path)
        assert (refused.status, "minimum_release_age" in refused.text) == (403, True)
    # Metadata have no dates: a version is shown when it was first seen so long ago.
    assert versions(at("aged").get("/com/example/aged/maven-metadata.xml").text) == []


def test_files_and_artifacts_are_explained(at: At, api: HttpClient, first: MavenUpstream) -> None:
    jar = first.deploy("com.example", "explained", "1.0")
    query = "/explain?repository=main/all&package=com.example:explained"
    found = api.get(f"{query}&version=1.0").json
    assert (found["outcome"], found["latest"]["version"]) == ("served", "1.0")
    cold = api.get(f"{query}&file={jar[1:]}").json
    assert cold["outcome"] == "served", cold
    assert [each["step"] for each in cold["steps"]][-2:] == ["file_listed", "unneeded"]
    assert [each.method for each in first.requests(jar)] == ["HEAD"]
    record(at("all"), jar)
    warm = api.get(f"{query}&file={jar[1:]}").json
    assert [each["step"] for each in warm["steps"]][-1] == "file_kept"
    missing = api.get(f"{query}&file={jar[1:].replace('1.0.jar', '1.0-x.jar')}").json
    assert missing["outcome"] == "not_found"


def test_upstreams_are_checked(api: HttpClient, first: MavenUpstream, second: MavenUpstream) -> None:
    first.plugin("org.apache.maven.plugins", "x", "x-plugin")
    checked = api.post("/repository/main%2Fboth/upstream/check").json["routes"]
    assert [each["ok"] for each in checked] == [True, True], checked


def test_a_release_in_one_member_and_a_snapshot_in_another(at: At, api: HttpClient) -> None:
    for name, config in (
        ("snaps", {"type": "Hosted"}),
        ("group", {"type": "Virtual", "members": ["main/own", "main/snaps", "main/mirror"], "publish_to": "main/own"}),
    ):
        body = {"name": name, "storage": "main", "format": "maven", "visibility": "public", "config": config}
        assert api.post_json("/repository", body).status == 201
    directory = "/com/example/halves"
    assert at("own").put(f"{directory}/1.0/halves-1.0.jar", b"release").status == 201
    build = "1.1-20240102.030405-1"
    assert at("snaps").put(f"{directory}/1.1-SNAPSHOT/halves-{build}.jar", b"snapshot").status == 201
    every = at("group")
    assert versions(every.get(f"{directory}/maven-metadata.xml").text) == ["1.0", "1.1-SNAPSHOT"]
    assert f"<value>{build}</value>" in every.get(f"{directory}/1.1-SNAPSHOT/maven-metadata.xml").text
    assert every.get(f"{directory}/1.1-SNAPSHOT/halves-{build}.jar").body == b"snapshot"
    assert every.get(f"{directory}/1.2-SNAPSHOT/maven-metadata.xml").status == 404


def test_snapshots_are_published_to_a_member_of_their_own(at: At, api: HttpClient) -> None:
    both = {"publish_to": "main/released", "publish_snapshots_to": "main/building"}
    for name, config in (
        ("released", {"type": "Hosted", "push_rules": {"push_policy": "RELEASES"}}),
        ("building", {"type": "Hosted", "push_rules": {"push_policy": "SNAPSHOTS"}}),
        ("two", {"type": "Virtual", "members": ["main/released", "main/building"], **both}),
        ("only", {"type": "Virtual", "members": ["main/building"], "publish_snapshots_to": "main/building"}),
    ):
        body = {"name": name, "storage": "main", "format": "maven", "visibility": "public", "config": config}
        assert api.post_json("/repository", body).status == 201
    shown = api.get("/repository/main%2Ftwo/config").json
    assert both.items() <= shown.items(), shown
    directory, build = "/com/example/parted", "1.1-20240102.030405-1"
    two, released, building = at("two"), at("released"), at("building")
    metadata = b"<metadata><groupId>com.example</groupId><artifactId>parted</artifactId></metadata>"
    snapshot = f"{directory}/1.1-SNAPSHOT/parted-{build}.jar"
    assert two.put(snapshot, b"snapshot").status == 201
    assert two.put(f"{directory}/1.1-SNAPSHOT/maven-metadata.xml", metadata).status in (200, 201)
    assert two.put(f"{directory}/maven-metadata.xml", metadata).status in (200, 201)
    assert released.get(f"{directory}/maven-metadata.xml").status == 404, "metadata are where the artifact is"
    assert two.put(f"{directory}/1.0/parted-1.0.jar", b"release").status == 201
    assert two.put(f"{directory}/1.0/parted-1.0.jar.sha1", hashlib.sha1(b"release").hexdigest().encode()).status < 300
    assert two.put(f"{directory}/maven-metadata.xml", metadata).status in (200, 201)
    assert versions(released.get(f"{directory}/maven-metadata.xml").text) == ["1.0"]
    assert versions(building.get(f"{directory}/maven-metadata.xml").text) == ["1.1-SNAPSHOT"]
    assert versions(two.get(f"{directory}/maven-metadata.xml").text) == ["1.0", "1.1-SNAPSHOT"]
    refused = at("only").put(f"{directory}/1.0/parted-1.0.jar", b"release")
    assert (refused.status, "snapshots only" in refused.reason) == (405, True)
    assert two.delete(f"{directory}/1.1-SNAPSHOT").status == 204
    assert (two.get(snapshot).status, two.get(f"{directory}/1.0/parted-1.0.jar").status) == (404, 200)
    assert two.put(snapshot.replace("030405", "030406"), b"snapshot").status == 201
    assert two.delete(directory).status == 204
    assert [each.get(f"{directory}/maven-metadata.xml").status for each in (two, released, building)] == [404] * 3
    assert two.delete(directory).status == 404


ZIP = {"Content-Type": "application/zip", "Accept": "application/json"}


def test_a_bundle_for_a_virtual_repository_is_published_in_its_target(at):
    members = artifact("com.virtual", "app", "1.0")
    begun = at("all").ask("POST", "/deploy?wait=true&publishing_type=USER_MANAGED", make_zip(members), ZIP)
    assert begun.json["state"] == "VALIDATED"
    uid = begun.json["deployment_id"]
    assert at("all").get(f"/deploy/{uid}").json == at("own").get(f"/deploy/{uid}").json
    assert at("all").post(f"/deploy/{uid}/publish").status == 200
    for path, content in members.items():
        assert at("own").get(f"/{path}").body == content
        assert at("all").get(f"/{path}").body == content


@pytest.mark.parametrize("name", ["mirror", "readable"])
def test_a_repository_without_target_takes_no_bundle(at, name):
    reply = at(name).ask("POST", "/deploy", make_zip(artifact("com.virtual", "none", "1.0")), ZIP)
    assert reply.status == 405
    assert at(name).get("/deploy/00000000-0000-0000-0000-000000000000").status == 404
