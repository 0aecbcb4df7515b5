"""Each push rule: status, reason phrase, and that a refused client sends no body."""

from __future__ import annotations

import threading

import pytest

from tests.support.maven_files import JAR, make_pom, put_all, sums

pytestmark = pytest.mark.server

APP = "/com/example/app/1.0/app-1.0.jar"
PLAIN = "/free/path.txt"


def ask_to_send(where, path, **fields):
    """Send the head of an upload that waits for 100. Returns status and reason of the first answer."""
    with where.connect() as connection:
        fields = {"Content_Length": str(len(JAR)), **fields}
        connection.sendall(where.head_lines("PUT", path, Expect="100-continue", **fields))
        _, status, reason = connection.recv(1000).split(b"\r\n")[0].decode().split(" ", 2)
        return int(status), reason


def test_a_push_that_is_allowed_gets_100(mvn):
    assert ask_to_send(mvn, APP) == (100, "Continue")


@pytest.mark.parametrize("path", [APP, f"{APP}.sha1", PLAIN, "/com/example/app/1.1-SNAPSHOT/app-1.1-SNAPSHOT.jar"])
@pytest.mark.parametrize("name", ["mvn", "private"])
def test_a_push_without_credentials_is_challenged_before_its_body(repository, name, path):
    where = repository(name).as_user()
    assert ask_to_send(where, path)[0] == 401
    reply = where.put(path, b"x")
    assert (reply.status, reply.headers["www-authenticate"]) == (401, 'Basic realm="pkgrepo"')


def test_wrong_credentials_are_refused(mvn):
    assert ask_to_send(mvn.as_user("admin", "wrong"), APP)[0] == 401
    assert ask_to_send(mvn.as_user("nobody", "wrong"), APP)[0] == 401


def test_pushes_with_a_token_only(repository, as_token):
    where = repository("tokens")
    refused = (403, "Use an auth token instead of a password for this repository")
    for path in (APP, f"{APP}.sha1", PLAIN):
        assert ask_to_send(where, path) == refused
    assert ask_to_send(where.as_user(), APP)[0] == 401
    assert as_token("all", "tokens").put(APP, JAR).status == 201
    assert where.get(APP).status == 200


def test_pushes_need_the_permission_to_write(as_token):
    assert ask_to_send(as_token("reader"), APP)[0] == 403
    assert ask_to_send(as_token("elsewhere"), APP)[0] == 403
    writer = as_token("writer")
    team = "/com/team/lib/1.0/lib-1.0.jar"
    assert ask_to_send(writer, team)[0] == 100
    for path in (APP, f"{APP}.sha1", "/com/teamwork/lib/1.0/lib-1.0.jar", PLAIN):
        assert (path, ask_to_send(writer, path)[0]) == (path, 403)


def test_replacing_needs_the_permission_to_overwrite(as_token):
    writer = as_token("writer")
    path = "/com/team/once/1.0/once-1.0.jar"
    assert writer.put(path, JAR).status == 201
    status, reason = ask_to_send(writer, path, Content_Length="5")
    assert (status, "overwrite" in reason) == (403, True)
    assert writer.put(path, JAR).status == 200
    assert as_token("all").put(path, b"other").status == 200
    literal = "/com/team/once/1.1-SNAPSHOT/once-1.1-SNAPSHOT.jar"
    assert [writer.put(literal, data).status for data in (b"1", b"22", b"333")] == [201, 200, 200]


SNAPSHOT_FILES = (
    "/com/example/app/1.1-SNAPSHOT/app-1.1-20240102.030405-6.jar",
    "/com/example/app/1.1-SNAPSHOT/app-1.1-SNAPSHOT.pom",
    "/com/example/app/1.1-SNAPSHOT/app-1.1-20240102.030405-6.jar.asc",
    "/com/example/app/1.1-SNAPSHOT/app-1.1-20240102.030405-6.jar.sha1",
    "/com/example/app/1.1-20240102.030405-6/app-1.1-20240102.030405-6.jar",
)
RELEASE_FILES = (APP, f"{APP}.asc", f"{APP}.md5", "/com/example/app/1.0-SNAPSHOT-2/app-1.0-SNAPSHOT-2.pom")


@pytest.mark.parametrize("path", SNAPSHOT_FILES)
def test_a_repository_of_releases_refuses_every_file_of_a_snapshot(repository, path):
    status, reason = ask_to_send(repository("releases"), path)
    version = path.split("/")[4]
    assert (status, reason) == (409, f"Repository accepts only RELEASES; {version} refused")
    assert repository("releases").get(path).status == 404


@pytest.mark.parametrize("path", RELEASE_FILES)
def test_a_repository_of_snapshots_refuses_every_file_of_a_release(repository, path):
    status, reason = ask_to_send(repository("snapshots"), path)
    version = path.split("/")[4]
    assert (status, reason) == (409, f"Repository accepts only SNAPSHOTS; {version} refused")


def test_free_paths_and_the_other_versions_pass_the_policy(repository):
    for name, path in (("releases", APP), ("snapshots", SNAPSHOT_FILES[0])):
        where = repository(name)
        assert where.put(path, JAR).status == 201
        assert where.put(PLAIN, b"x").status == 201


def test_a_long_version_is_cut_in_the_reason(repository):
    version = "1" * 200 + "-SNAPSHOT"
    status, reason = ask_to_send(repository("releases"), f"/g/a/{version}/a-{version[:40]}.jar")
    assert status == 100  # its name does not begin with the version: a plain file
    status, reason = ask_to_send(repository("releases"), f"/g/a/{version}/a-{version}.jar")
    assert (status, len(reason) <= 120) == (409, True)


def test_bundles_only(repository):
    for path in (APP, f"{APP}.sha1", PLAIN):
        status, reason = ask_to_send(repository("bundles"), path)
        assert status == 403
        assert reason == "This repository accepts bundle deploys only: POST /repositories/main/bundles/deploy"


def test_files_that_cannot_be_overwritten(repository):
    where = repository("fixed")
    path = "/com/example/once/1.0/once-1.0.jar"
    assert where.put(path, JAR).status == 201
    refused = (409, "once-1.0.jar already exists; overwriting is disabled (allow_overwrite)")
    assert ask_to_send(where, path, Content_Length="3") == refused
    assert ask_to_send(where, path, X_Checksum_Sha1="0" * 40) == refused
    other = where.put(path, b"x" * len(JAR))  # of the same length: the body decides
    assert (other.status, other.reason) == refused
    assert where.ask("PUT", path, iter([b"chunks"])).status == 409
    assert where.get(path).body == JAR
    assert where.put(path, JAR).status == 200
    assert where.ask("PUT", path, JAR, {"X-Checksum-Sha1": sums(JAR)["sha1"]}).status == 200
    assert where.put(f"{path}.sha1", sums(JAR)["sha1"].encode()).status == 201
    assert [where.put(f"{path}.asc", data).status for data in (b"signature", b"another")] == [201, 409]


def test_builds_and_plain_files_are_not_overwritten_either(repository):
    where = repository("fixed")
    for path in ("/com/example/once/1.1-SNAPSHOT/once-1.1-20240102.030405-6.jar", "/once.txt"):
        assert [where.put(path, data).status for data in (b"one", b"two")] == [201, 409]


def test_snapshots_without_a_timestamp_are_overwritten_always(repository):
    where = repository("fixed")
    path = "/com/example/once_2.13/0.1-SNAPSHOT/once_2.13-0.1-SNAPSHOT.jar"
    assert [where.put(path, data).status for data in (b"one", b"two", b"three")] == [201, 200, 200]
    assert where.get(path).body == b"three"
    assert [where.delete(path).status, where.put(path, b"four").status] == [204, 201]


def test_of_many_pushes_to_one_path_exactly_one_is_accepted(repository):
    where = repository("fixed")
    for attempt in range(3):
        path = f"/com/example/raced/{attempt}/raced-{attempt}.jar"
        statuses = []

        def put(number, path=path, statuses=statuses):
            statuses.append((where.put(path, b"%04d" % number).status, number))

        threads = [threading.Thread(target=put, args=(number,)) for number in range(12)]
        for each in threads:
            each.start()
        for each in threads:
            each.join()
        assert sorted(status for status, _ in statuses) == [201] + [409] * 11
        winner = next(number for status, number in statuses if status == 201)
        assert where.get(path).body == b"%04d" % winner


def test_the_first_rule_that_forbids_a_push_decides(repository, api, new_user):
    """Rules in their order: token, permission, bundle, policy."""
    config = {"type": "Hosted"}
    rules = {"must_use_auth_token_for_push": True, "require_service_deploy": True, "push_policy": "RELEASES"}
    value = {"name": "strict", "storage": "main", "format": "java", "visibility": "public"}
    assert api.post_json("/repository", value | {"config": {**config, "push_rules": rules}}).status == 201
    snapshot = SNAPSHOT_FILES[0]
    reader = new_user("strict-reader", strict=["read"])
    where = repository("strict")
    assert ask_to_send(where.as_user(), "/a/../b")[0] == 400
    assert ask_to_send(where.as_user(), snapshot)[0] == 401
    assert "auth token" in ask_to_send(where.as_user(*reader), snapshot)[1]


def test_projects_own_groups_and_artifacts(repository, api, new_user):
    where = repository("members")
    members = {
        name: where.as_user(*new_user(f"m-{name}", members=["read", "write", "overwrite"]))
        for name in ("ann", "bob", "eve")
    }
    assert api.post_json("/project", {"key": "acme"}).status == 201
    for pattern in ("com.acme", "org.tools:cli"):
        bound = api.post_json("/project/acme/bindings", {"repository": "main/members", "pattern": pattern})
        assert bound.status == 200, bound
    assert api.post_json("/project/acme/members", {"user": "m-ann", "role": "developer"}).status == 200
    assert api.post_json("/project/acme/members", {"user": "m-bob", "role": "reporter"}).status == 200
    for path in (
        "/com/acme/app/1.0/app-1.0.jar",
        "/com/acme/deep/er/app/1.0/app-1.0.jar",
        "/org/tools/cli/1/cli-1.jar",
    ):
        for name in ("bob", "eve"):
            for each in (path, f"{path}.sha1", f"{path}.asc"):
                status, reason = ask_to_send(members[name], each)
                assert (name, each, status) == (name, each, 403)
                assert "acme" in reason
        assert members["ann"].put(path, JAR).status == 201
    assert ask_to_send(members["eve"], "/com/acme/notes.txt")[0] == 403
    assert ask_to_send(members["eve"], "/com/notes.txt")[0] == 403  # a free path is for who administers the repository


def test_the_first_to_publish_an_artifact_owns_it(repository, new_user):
    where = repository("claims")
    ann, eve = (
        where.as_user(*new_user(f"first-{name}", claims=["read", "write", "overwrite"])) for name in ("ann", "eve")
    )
    files = {".jar": JAR, ".pom": make_pom("net.first", "lib", "1.0"), "-sources.jar": b"s"}
    threads = [
        threading.Thread(target=put_all, args=(ann, "net.first", "lib", "1.0", {rest: data}))
        for rest, data in files.items()
    ]
    for each in threads:
        each.start()
    for each in threads:
        each.join()
    for rest, data in files.items():
        assert where.get(f"/net/first/lib/1.0/lib-1.0{rest}").body == data
    assert ask_to_send(eve, "/net/first/lib/1.1/lib-1.1.jar")[0] == 403
    assert eve.put("/net/first/other/1.0/other-1.0.jar", JAR).status == 201  # ownership is of the artifact alone
    assert ask_to_send(ann, "/net/first/other/1.1/other-1.1.jar")[0] == 403


def test_the_metadata_of_an_owned_artifact_is_for_its_project(repository, api, new_user):
    where = repository("claims")
    ann, eve, bob = (
        where.as_user(*new_user(f"meta-{name}", claims=["read", "write", "overwrite"]))
        for name in ("ann", "eve", "bob")
    )
    assert ann.put("/org/meta/lib/1.0/lib-1.0.jar", JAR).status == 201  # ann owns org.meta:lib now
    forged = b"<metadata><versioning><versions><version>6.6.6</version></versions></versioning></metadata>"
    for path in ("/org/meta/lib/maven-metadata.xml", "/org/meta/lib/repo-metadata.xml.sha1"):
        assert (path, eve.put(path, forged).status) == (path, 403)
    assert "6.6.6" not in where.get("/org/meta/lib/maven-metadata.xml").text
    plugins = b"<metadata><plugins><plugin><prefix>x</prefix><artifactId>x</artifactId></plugin></plugins></metadata>"
    assert ann.put("/org/meta/lib/maven-metadata.xml", plugins).status in (200, 201)
    assert eve.put("/org/meta/other/maven-metadata.xml", plugins).status in (200, 201)  # nobody owns it
    # The group org.meta.lib may be of another project than the artifact org.meta:lib.
    assert api.post_json("/project", {"key": "metagroup"}).status == 201
    bound = api.post_json("/project/metagroup/bindings", {"repository": "main/claims", "pattern": "org.meta.lib"})
    assert bound.status == 200
    assert api.post_json("/project/metagroup/members", {"user": "meta-bob", "role": "developer"}).status == 200
    assert bob.put("/org/meta/lib/maven-metadata.xml", plugins).status in (200, 201)
    assert eve.put("/org/meta/lib/maven-metadata.xml", plugins).status == 403


def test_of_two_first_publishers_one_becomes_the_owner(repository, new_user):
    where = repository("claims")
    people = {
        name: where.as_user(*new_user(f"both-{name}", claims=["read", "write", "overwrite"])) for name in ("ann", "bob")
    }
    statuses = {}

    def put(name):
        statuses[name] = people[name].put(f"/net/both/lib/1.0/lib-1.0-{name}.jar", JAR).status

    threads = [threading.Thread(target=put, args=(name,)) for name in people]
    for each in threads:
        each.start()
    for each in threads:
        each.join()
    assert sorted(statuses.values()) == [201, 403]


def test_refusals_are_problem_documents_for_clients_that_take_them(repository):
    where = repository("releases")
    reply = where.ask("PUT", SNAPSHOT_FILES[0], b"x", {"Accept": "application/problem+json,*/*"})
    assert reply.headers["content-type"] == "application/problem+json"
    assert reply.json == {
        "type": "about:blank",
        "title": "Conflict",
        "status": 409,
        "detail": "Repository accepts only RELEASES; 1.1-SNAPSHOT refused",
    }
