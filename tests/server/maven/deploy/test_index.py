"""What a bundle changes in metadata, and who owns what it has published."""

import hashlib
import threading

import pytest
from defusedxml.ElementTree import fromstring

from tests.support.maven_bundles import (
    WAIT,
    artifact,
    deploy,
    make_jar,
    served,
)

pytestmark = pytest.mark.server


def plugin_of(name, prefix=None, group="com.plugins", version="1.0"):
    """A plugin with a descriptor, or without one."""
    descriptor = f"<plugin><name>The {name}</name><goalPrefix>{prefix}</goalPrefix></plugin>".encode()
    jar = make_jar({"META-INF/maven/plugin.xml": descriptor} if prefix else None)
    return artifact(group, name, version, jar=jar, packaging="maven-plugin")


def prefixes(where, directory):
    """The prefixes and artifacts in the metadata of a group."""
    root = fromstring(where.get(f"/{directory}/maven-metadata.xml").body)
    return {each.findtext("prefix"): each.findtext("artifactId") for each in root.iter("plugin")}


def test_plugins_are_added_to_the_metadata_of_their_group(mvn):
    members = plugin_of("foo-maven-plugin", "foo") | plugin_of("bar-maven-plugin") | artifact("com.plugins", "lib", "1")
    assert deploy(mvn, members).status == 201
    assert prefixes(mvn, "com/plugins") == {"foo": "foo-maven-plugin", "bar": "bar-maven-plugin"}
    assert deploy(mvn, plugin_of("baz-maven-plugin", "special")).status == 201
    expected = {"foo": "foo-maven-plugin", "bar": "bar-maven-plugin", "special": "baz-maven-plugin"}
    assert prefixes(mvn, "com/plugins") == expected
    body = mvn.get("/com/plugins/maven-metadata.xml").body
    assert mvn.get("/com/plugins/maven-metadata.xml.sha1").text == hashlib.sha1(body).hexdigest()
    assert deploy(mvn, plugin_of("baz-maven-plugin", "special")).status == 201
    assert prefixes(mvn, "com/plugins") == expected


def test_plugins_are_added_to_what_clients_uploaded(mvn):
    plugin = b"<plugin><name>n</name><prefix>old</prefix><artifactId>o</artifactId></plugin>"
    said = b"<metadata><plugins>%s</plugins></metadata>" % plugin
    assert mvn.put("/com/olds/maven-metadata.xml", said).status == 201
    assert deploy(mvn, plugin_of("new-maven-plugin", "new", "com.olds")).status == 201
    assert prefixes(mvn, "com/olds") == {"old": "o", "new": "new-maven-plugin"}


def test_a_group_that_is_an_artifact_too_keeps_its_versions(mvn):
    members = artifact("com", "both", "1.0") | plugin_of("both-maven-plugin", "both", "com.both")
    assert deploy(mvn, members).status == 201
    assert prefixes(mvn, "com/both") == {"both": "both-maven-plugin"}
    assert b"<version>1.0</version>" in mvn.get("/com/both/maven-metadata.xml").body


def test_parallel_bundles_lose_no_plugin(mvn):
    bundles = [plugin_of(f"p{number}-maven-plugin", f"p{number}", "com.together") for number in range(6)]
    replies = []
    threads = [threading.Thread(target=lambda each=each: replies.append(deploy(mvn, each))) for each in bundles]
    for each in threads:
        each.start()
    for each in threads:
        each.join()
    assert [reply.status for reply in replies] == [201] * 6
    assert sorted(prefixes(mvn, "com/together")) == [f"p{number}" for number in range(6)]


def test_a_bundle_that_fails_adds_no_plugin(mvn):
    members = plugin_of("never-maven-plugin", "never", "com.never")
    members[f"{next(iter(members))}.md5"] = b"0" * 32
    assert deploy(mvn, members).status == 400
    assert mvn.get("/com/never/maven-metadata.xml").status == 404


def test_metadata_of_artifacts_are_made_of_what_is_deployed(mvn):
    for version in ("1.0", "2.0-SNAPSHOT"):
        assert deploy(mvn, artifact("com.bundled", "app", version)).status == 201
    text = mvn.get("/com/bundled/app/maven-metadata.xml").text
    assert "<release>1.0</release>" in text
    assert "<version>2.0-SNAPSHOT</version>" in text
    assert mvn.get("/com/bundled/app/2.0-SNAPSHOT/maven-metadata.xml").status == 200


def test_the_first_pusher_of_a_group_owns_all_of_its_artifacts(repository, new_user):
    where = repository("claims")
    ann, eve = (where.as_user(*new_user(f"d-{name}", claims=["read", "write", "overwrite"])) for name in ("ann", "eve"))
    group = {**artifact("com.owned", "one", "1.0"), **artifact("com.owned", "two", "1.0")}
    assert deploy(ann, group).status == 201
    other = artifact("com.free", "three", "1.0")
    reply = deploy(eve, {**other, **artifact("com.owned", "two", "2.0")})
    assert (reply.status, list(reply.json["errors"])) == (403, ["com/owned/two/2.0"])
    assert served(where, other) == {404}
    assert deploy(eve, other).status == 201


def test_a_deployment_is_shown_to_its_user_and_to_maintainers_only(repository, new_user):
    where = repository("claims")
    ann, eve = (where.as_user(*new_user(f"s-{name}", claims=["read", "write", "overwrite"])) for name in ("ann", "eve"))
    members = artifact("com.shown", "app", "1.0")
    uid = deploy(ann, members, f"{WAIT}&publishing_type=USER_MANAGED").json["deployment_id"]
    jar = next(iter(members))
    for each, expected in ((ann, 200), (eve, 404), (where, 200)):
        assert each.get(f"/deploy/{uid}").status == expected
        assert each.get(f"/deploy/{uid}/files/{jar}").status == expected
    assert eve.post(f"/deploy/{uid}/publish").status == 404
    assert eve.delete(f"/deploy/{uid}").status == 404
    assert ann.post(f"/deploy/{uid}/publish").status == 200
