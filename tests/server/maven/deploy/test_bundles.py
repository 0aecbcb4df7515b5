"""Bundles publish all of their artifacts at once, or nothing and say why."""

import hashlib
import json
import threading

import pytest
from defusedxml.ElementTree import fromstring

from tests.support.http_client import BOUNDARY, basic, form_body, read_reply
from tests.support.maven_bundles import (
    SIGNATURE,
    artifact,
    make_jar,
    make_pom,
    make_tar,
    make_tar_gz,
    make_zip,
    with_checksums,
)

pytestmark = pytest.mark.server

WAIT = "/deploy?wait=true"
ZIP = {"Content-Type": "application/zip"}
JSON = {**ZIP, "Accept": "application/json"}
UID = r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}"


def two(name, version="1.0"):
    """Two components of one build, by path."""
    return {**artifact("com.example", f"{name}-one", version), **artifact("com.example.sub", f"{name}-two", version)}


def deploy(where, members, path=WAIT, make=make_zip, **headers):
    return where.ask("POST", path, make(members), {**JSON, **{k.replace("_", "-"): v for k, v in headers.items()}})


def served(where, members):
    """The statuses of the files of a bundle."""
    return {where.get(f"/{path}").status for path in members}


@pytest.mark.parametrize(
    ("make", "kind"),
    [
        (make_zip, "application/zip"),
        (make_tar, "application/x-tar"),
        (make_tar_gz, "application/gzip"),
        (make_tar_gz, "application/octet-stream"),
    ],
)
def test_two_components_are_published_at_once(repository, make, kind):
    where = repository("bundles")
    members = with_checksums(two(f"at-once-{make.__name__.replace('_', '-')}-{kind.rpartition('/')[2]}"))
    reply = where.ask("POST", WAIT, make(members), {"Content-Type": kind, "Accept": "application/json"})
    assert (reply.status, reply.json["state"], reply.json["errors"]) == (201, "PUBLISHED", {})
    assert reply.json["component_count"] == 2
    assert reply.json["file_count"] == 4
    for path, content in members.items():
        assert where.get(f"/{path}").body == content
    sha512 = hashlib.sha512(next(iter(members.values()))).hexdigest()
    assert where.get(f"/{next(iter(members))}.sha512").text == sha512


def test_a_plain_put_is_refused_where_only_bundles_are_taken(repository):
    where = repository("bundles")
    path, content = next(iter(two("plain-put").items()))
    reply = where.put(f"/{path}", content)
    expected = "This repository accepts bundle deploys only: POST /repositories/main/bundles/deploy"
    assert (reply.status, reply.reason) == (403, expected)
    assert where.get(f"/{path}").status == 404


def test_one_wrong_checksum_publishes_nothing(mvn):
    members = with_checksums(two("wrong-sum"))
    wrong = next(path for path in members if path.endswith("wrong-sum-two-1.0.jar.sha1"))
    members[wrong] = b"0" * 40
    reply = deploy(mvn, members)
    jar = wrong.removesuffix(".sha1")
    assert (reply.status, reply.json["state"]) == (400, "FAILED")
    assert list(reply.json["errors"]) == [jar]
    assert reply.json["errors"][jar][0].startswith("sha1 mismatch: the deployment says 000")
    assert reply.reason.startswith(f"{jar}: sha1 mismatch")
    assert served(mvn, members) == {404}


def test_the_id_of_a_deployment_is_answered_as_text_or_json_and_its_end_can_be_asked(mvn):
    members = two("asked")
    reply = mvn.ask("POST", "/deploy?name=build+7", make_zip(members), ZIP)
    assert (reply.status, reply.headers["content-type"].partition(";")[0]) == (201, "text/plain")
    status = wait_for_end(mvn, reply.text)
    assert (status["state"], status["name"], status["user"]) == ("PUBLISHED", "build 7", "admin")
    assert status["components"] == [
        {"group_id": "com.example", "artifact_id": "asked-one", "version": "1.0"},
        {"group_id": "com.example.sub", "artifact_id": "asked-two", "version": "1.0"},
    ]
    other = deploy(mvn, two("asked-too"), "/deploy")
    assert other.status == 201
    assert sorted(other.json) == ["deployment_id", "state"]


def wait_for_end(where, uid, end="PUBLISHED"):
    """The status of a deployment once it has this state or has failed; each request gives the server time to go on."""
    while (status := where.get(f"/deploy/{uid}").json)["state"] not in (end, "FAILED"):
        pass
    return status


def test_a_bundle_that_a_user_publishes_is_not_visible_before(mvn):
    members = two("managed")
    reply = deploy(mvn, members, f"{WAIT}&publishing_type=user_managed")
    assert (reply.status, reply.json["state"], reply.json["publishing_type"]) == (201, "VALIDATED", "USER_MANAGED")
    uid = reply.json["deployment_id"]
    assert served(mvn, members) == {404}
    for path, content in members.items():
        assert mvn.get(f"/deploy/{uid}/files/{path}").body == content
        assert mvn.get(f"/deploy/{uid}/files/{path}.sha1").text == hashlib.sha1(content).hexdigest()
    part = mvn.get(f"/deploy/{uid}/files/{next(iter(members))}", Range="bytes=1-3")
    assert (part.status, part.body) == (206, next(iter(members.values()))[1:4])
    assert mvn.get(f"/deploy/{uid}/files/com/example/other/1.0/other-1.0.jar").status == 404
    published = mvn.post(f"/deploy/{uid}/publish", Accept="application/json")
    assert (published.status, published.json["state"]) == (200, "PUBLISHED")
    assert served(mvn, members) == {200}
    assert mvn.get(f"/deploy/{uid}/files/{next(iter(members))}").status == 404
    again = mvn.post(f"/deploy/{uid}")
    assert (again.status, "is PUBLISHED" in again.reason) == (409, True)
    assert mvn.delete(f"/deploy/{uid}").status == 409


def test_a_validated_deployment_can_be_dropped(mvn):
    members = two("dropped")
    uid = deploy(mvn, members, f"{WAIT}&publishingType=USER_MANAGED").json["deployment_id"]
    assert mvn.delete(f"/deploy/{uid}").status == 204
    assert mvn.get(f"/deploy/{uid}").status == 404
    assert mvn.post(f"/deploy/{uid}").status == 404
    assert served(mvn, members) == {404}


def test_the_same_bundle_again_changes_nothing(repository):
    where = repository("fixed")
    members = two("again")
    first = deploy(where, members)
    stamp = where.get(f"/{next(iter(members))}").headers["last-modified"]
    second = deploy(where, members)
    assert [first.json["state"], second.json["state"]] == ["PUBLISHED", "PUBLISHED"]
    assert where.get(f"/{next(iter(members))}").headers["last-modified"] == stamp


def test_a_bundle_that_overlaps_publishes_nothing_where_files_are_fixed(repository):
    where = repository("fixed")
    first, second = artifact("com.example", "overlap-one", "1.0"), artifact("com.example", "overlap-two", "1.0")
    assert deploy(where, second).status == 201
    jar = next(iter(second))
    reply = deploy(where, {**first, **second, jar: b"other"})
    assert (reply.status, reply.json["state"]) == (409, "FAILED")
    assert list(reply.json["errors"]) == [jar]
    assert "already exists" in reply.json["errors"][jar][0]
    assert served(where, first) == {404}
    assert where.get(f"/{jar}").body == second[jar]


def test_a_bundle_replaces_files_where_that_is_allowed(mvn):
    members = artifact("com.example", "replaced", "1.0")
    assert deploy(mvn, members).status == 201
    jar = next(iter(members))
    assert deploy(mvn, {**members, jar: b"other"}).status == 201
    assert mvn.get(f"/{jar}").body == b"other"


def test_a_snapshot_without_timestamp_is_replaced_even_where_files_are_fixed(repository):
    where = repository("fixed")
    members = artifact("com.example", "moving", "1.0-SNAPSHOT")
    jar = next(iter(members))
    for content in (b"one", b"two"):
        assert deploy(where, {**members, jar: content}).status == 201
        assert where.get(f"/{jar}").body == content


@pytest.mark.parametrize(("name", "wrong"), [("releases", "2.0-SNAPSHOT"), ("snapshots", "2.0")])
def test_the_push_policy_counts_for_every_version(repository, name, wrong):
    where = repository(name)
    right = "1.0" if name == "releases" else "1.0-SNAPSHOT"
    members = {**artifact("com.policy", "one", right), **artifact("com.policy", "two", wrong)}
    reply = deploy(where, members)
    assert reply.status == 409
    assert reply.json["errors"] == {
        f"com/policy/two/{wrong}": [f"Repository accepts only {name.upper()}; {wrong} refused"]
    }
    assert served(where, members) == {404}


def test_the_permission_counts_for_every_package(as_token):
    where = as_token("writer")
    mine, others = artifact("com.team", "mine", "1.0"), artifact("com.others", "theirs", "1.0")
    reply = deploy(where, {**mine, **others})
    assert reply.status == 403
    assert list(reply.json["errors"]) == ["com/others/theirs/1.0"]
    assert served(where, mine) == {404}
    assert deploy(where, mine).status == 201


def test_a_token_is_needed_where_the_repository_wants_one(repository, as_token):
    members = two("with-token")
    reply = deploy(repository("tokens"), members)
    assert (reply.status, reply.reason) == (403, "Use an auth token instead of a password for this repository")
    assert deploy(as_token("all", "tokens"), members).status == 201


def test_strangers_and_readers_may_not_deploy(mvn, as_token):
    anonymous = deploy(mvn.as_user(), two("stranger"))
    assert (anonymous.status, anonymous.headers["www-authenticate"]) == (401, 'Basic realm="pkgrepo"')
    assert deploy(as_token("reader"), two("stranger")).status == 403
    assert deploy(mvn.as_user("admin", "wrong"), two("stranger")).status == 401


def test_deployments_of_others_are_not_shown(mvn, as_token, repository):
    uid = deploy(mvn, two("hidden"), f"{WAIT}&publishing_type=USER_MANAGED").json["deployment_id"]
    assert mvn.as_user().get(f"/deploy/{uid}").status == 401
    assert as_token("reader").get(f"/deploy/{uid}").status == 403
    assert mvn.as_user().post(f"/deploy/{uid}").status == 401
    assert mvn.as_user().delete(f"/deploy/{uid}").status == 401
    assert as_token("writer").get(f"/deploy/{uid}").status == 200  # of the same user
    assert as_token("writer").post(f"/deploy/{uid}").status == 403  # but for other packages
    assert mvn.get(f"/deploy/{uid}").json["state"] == "VALIDATED"
    assert repository("private").get(f"/deploy/{uid}").status == 404


def test_requirements_of_the_repository_are_checked(repository):
    where = repository("signed")
    members = artifact("com.example", "signed", "1.0")
    reply = deploy(where, members)
    assert reply.status == 400
    assert sorted(reply.json["errors"]) == sorted(members)
    jar = next(path for path in members if path.endswith(".jar"))
    whole = {**members, jar.replace(".jar", "-sources.jar"): b"sources"}
    whole |= {f"{path}.asc": SIGNATURE for path in whole}
    assert deploy(where, whole).status == 201
    assert where.get(f"/{jar}.asc").body == SIGNATURE


def test_a_form_with_the_field_bundle_is_taken(mvn):
    members = two("form")
    reply = mvn.post_form(WAIT, [("ignored", "x"), ("bundle", "b.zip", make_zip(members)), ("more", "y")])
    assert reply.status == 201, reply
    assert served(mvn, members) == {200}
    for fields in ([("other", "b.zip", b"x")], [("bundle", "b", b"x"), ("bundle", "b", b"x")], []):
        assert mvn.post_form(WAIT, fields).status == 400


def test_the_portal_of_the_public_registry_is_spoken(mvn):
    members = two("portal")
    api = "/api/v1/publisher"
    user, secret = "admin", "correct horse battery"
    bearer = {"Authorization": basic((user, secret))["Authorization"].replace("Basic", "Bearer")}
    form = [("bundle", "central-bundle.zip", make_zip(members))]
    body = mvn.as_user()
    kind = f"multipart/form-data; boundary={BOUNDARY}"
    reply = body.ask(
        "POST",
        f"{api}/upload?name=n&publishingType=USER_MANAGED",
        form_body(form),
        {**bearer, "Content-Type": kind},
    )
    assert reply.status == 201, reply
    uid = reply.text

    def status():
        return body.ask("POST", f"{api}/status?id={uid}", b"", bearer).json

    while status()["deploymentState"] in ("PENDING", "VALIDATING"):
        pass
    assert (status()["deploymentState"], status()["deploymentName"]) == ("VALIDATED", "n")
    assert body.ask("POST", f"{api}/deployment/{uid}", b"", bearer).status == 204
    assert status()["purls"] == [
        "pkg:maven/com.example/portal-one@1.0",
        "pkg:maven/com.example.sub/portal-two@1.0",
    ]
    assert served(mvn, members) == {200}
    second = mvn.post_form(f"{api}/upload?publishingType=USER_MANAGED", form).text
    wait_for_end(mvn, second, "VALIDATED")
    assert mvn.delete(f"{api}/deployment/{second}").status == 204
    assert mvn.delete(f"{api}/deployment/{second}").status == 404
    assert mvn.post(f"{api}/status?id=").status == 404
    assert mvn.post(f"{api}/status").status == 404


@pytest.mark.parametrize(
    ("path", "headers", "status"),
    [
        ("/deploy", {"Content-Type": "text/plain"}, 415),
        ("/deploy", {"Content-Type": "application/zip", "Content-Encoding": "gzip"}, 415),
        ("/deploy?publishing_type=SOON", ZIP, 400),
        ("/deploy?name=" + "n" * 201, ZIP, 400),
        ("/deploy?name=a%0Ab", ZIP, 400),
        ("/deploy", {**ZIP, "Content-Length": str(3 * 1024 * 1024)}, 413),
    ],
)
def test_a_request_that_cannot_be_a_bundle_is_refused_before_its_body(mvn, path, headers, status):
    with mvn.connect() as connection:
        fields = {"Content-Length": "10", **headers, "Expect": "100-continue"}
        connection.sendall(mvn.head_lines("POST", path, **fields))
        reply = read_reply(connection)
    assert reply.status == status


@pytest.mark.parametrize("body", [b"", b"x" * 100, b"PK\x03\x04" + bytes(1000), b"\x1f\x8b" + b"x" * 100])
def test_a_body_that_is_no_archive_fails_with_a_sentence(mvn, body):
    reply = mvn.ask("POST", WAIT, body, JSON)
    assert (reply.status, reply.json["state"]) == (400, "FAILED")
    assert list(reply.json["errors"]) == [""]
    assert "the" in reply.reason


def test_a_failed_bundle_is_told_in_text_too(mvn):
    reply = mvn.ask("POST", WAIT, make_zip({"README": b"x"}), ZIP)
    assert (reply.status, reply.headers["content-type"].partition(";")[0]) == (400, "text/plain")
    assert reply.text.startswith("README: this is no path of an artifact's file")


def test_a_body_in_chunks_is_taken_and_one_that_ends_early_leaves_nothing(mvn):
    members = two("chunks")
    data = make_zip(members)
    pieces = [data[at : at + 100] for at in range(0, len(data), 100)]
    assert mvn.ask("POST", WAIT, iter(pieces), JSON).status == 201
    with mvn.connect() as connection:
        connection.sendall(mvn.head_lines("POST", WAIT, Content_Length="1000", Content_Type="application/zip") + b"PK")
    lost = two("lost")
    with mvn.connect() as connection:
        whole = make_zip(lost)
        head = mvn.head_lines("POST", WAIT, Content_Length=str(len(whole)), Content_Type="application/zip")
        connection.sendall(head + whole[:-1])
    assert deploy(mvn, two("after-lost")).status == 201
    assert served(mvn, lost) == {404}


def test_a_bundle_that_has_arrived_is_published_although_its_client_leaves(mvn):
    members = two("left-alone")
    data = make_zip(members)
    with mvn.connect() as connection:
        fields = {"Content_Length": str(len(data)), "Content_Type": "application/zip", "Expect": "100-continue"}
        connection.sendall(mvn.head_lines("POST", WAIT, **fields))
        assert read_reply(connection).status == 100  # the caller is known by now, and the body awaited
        connection.sendall(data)
    for _ in range(1000):
        if served(mvn, members) == {200}:
            break
    else:
        pytest.fail("it was not published")


def test_of_parallel_bundles_of_one_version_one_is_published_whole(repository):
    where = repository("fixed")
    names = [f"com/example/race-{part}/1.0/race-{part}-1.0" for part in ("one", "two", "three")]
    poms = {f"{name}.pom": make_pom("com.example", name.split("/")[2], "1.0") for name in names}
    bundles = [{**poms, **{f"{name}.jar": b"of %d" % number for name in names}} for number in range(6)]
    replies = []

    def run(members):
        replies.append(deploy(where, members))

    threads = [threading.Thread(target=run, args=(members,)) for members in bundles]
    for each in threads:
        each.start()
    for each in threads:
        each.join()
    assert sorted(reply.status for reply in replies) == [201, 409, 409, 409, 409, 409]
    assert len({where.get(f"/{name}.jar").body for name in names}) == 1


def test_parallel_bundles_of_other_versions_are_all_published(mvn):
    bundles = [artifact("com.example", "parallel", f"1.{number}") for number in range(8)]
    replies = []
    threads = [threading.Thread(target=lambda each=each: replies.append(deploy(mvn, each))) for each in bundles]
    for each in threads:
        each.start()
    for each in threads:
        each.join()
    assert [reply.status for reply in replies] == [201] * 8
    assert {status for each in bundles for status in served(mvn, each)} == {200}


def test_ordinary_paths_may_look_like_those_of_deployments(mvn):
    uid = "00000000-0000-0000-0000-000000000000"
    for path in ("/deploy", f"/deploy/{uid}/file", f"/deploy/{uid}/publish/x", f"/deploy/{uid}/files/a"):
        if path != "/deploy":
            assert mvn.put(path, b"x").status == 201
            assert mvn.get(path).body == b"x"
    members = artifact("deploy.example", "app", "1.0")
    for path, content in members.items():
        assert mvn.put(f"/{path}", content).status == 201
    assert mvn.get(f"/deploy/{uid}").status == 404
    assert mvn.delete(f"/deploy/{uid}/file").status == 204


def test_a_user_has_a_limited_number_of_open_deployments(as_token, mvn):
    uids = []
    where = mvn.as_user("admin", "correct horse battery")
    open_before = 0
    while True:
        reply = deploy(where, artifact("com.many", f"a{len(uids)}", "1.0"), f"{WAIT}&publishing_type=USER_MANAGED")
        if reply.status != 201:
            break
        uids.append(reply.json["deployment_id"])
        assert len(uids) <= 50 - open_before
    assert reply.status == 409
    assert "open deployments here; publish or drop some" in reply.text
    assert where.delete(f"/deploy/{uids[0]}").status == 204
    assert deploy(where, two("room-again")).status == 201
    for uid in uids[1:]:
        assert where.delete(f"/deploy/{uid}").status == 204


def test_the_sizes_of_open_deployments_are_limited_together(repository):
    where = repository("private")
    big = bytes(range(256)) * 4 * 1800  # 1.8 MB; four uploads of 2 MiB are allowed
    uids = []
    while True:
        name = f"big{len(uids)}"
        members = artifact("com.big", name, "1.0", jar=big + name.encode())
        data = make_zip(members, packed=False)
        reply = where.ask("POST", f"{WAIT}&publishing_type=USER_MANAGED", data, JSON)
        if reply.status != 201:
            break
        uids.append(reply.json["deployment_id"])
        assert len(uids) <= 4
    assert reply.status == 409
    assert "would take more than 8388608 bytes" in reply.text
    for uid in uids:
        assert where.delete(f"/deploy/{uid}").status == 204


def test_statuses_have_no_secrets_and_are_not_cached(mvn):
    reply = mvn.get(f"/deploy/{deploy(mvn, two('uncached')).json['deployment_id']}")
    assert reply.headers["cache-control"] == "no-store"
    assert json.dumps(reply.json).count("horse") == 0
    assert set(reply.json) == {
        "deployment_id", "name", "state", "publishing_type", "user", "size", "created_at", "updated_at", "errors",
        "components", "component_count", "file_count",
    }  # fmt: skip


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
    where = repository("members")
    ann, eve = (
        where.as_user(*new_user(f"d-{name}", members=["read", "write", "overwrite"])) for name in ("ann", "eve")
    )
    group = {**artifact("com.owned", "one", "1.0"), **artifact("com.owned", "two", "1.0")}
    assert deploy(ann, group).status == 201
    other = artifact("com.free", "three", "1.0")
    reply = deploy(eve, {**other, **artifact("com.owned", "two", "2.0")})
    assert (reply.status, list(reply.json["errors"])) == (403, ["com/owned/two/2.0"])
    assert served(where, other) == {404}
    assert deploy(eve, other).status == 201


def test_a_deployment_is_shown_to_its_user_and_to_maintainers_only(repository, new_user):
    where = repository("members")
    ann, eve = (
        where.as_user(*new_user(f"s-{name}", members=["read", "write", "overwrite"])) for name in ("ann", "eve")
    )
    members = artifact("com.shown", "app", "1.0")
    uid = deploy(ann, members, f"{WAIT}&publishing_type=USER_MANAGED").json["deployment_id"]
    jar = next(iter(members))
    for each, expected in ((ann, 200), (eve, 404), (where, 200)):
        assert each.get(f"/deploy/{uid}").status == expected
        assert each.get(f"/deploy/{uid}/files/{jar}").status == expected
    assert eve.post(f"/deploy/{uid}/publish").status == 404
    assert eve.delete(f"/deploy/{uid}").status == 404
    assert ann.post(f"/deploy/{uid}/publish").status == 200
