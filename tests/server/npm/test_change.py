"""Deprecations, unpublishing, owners and stars, with the requests that clients send."""

import json
from urllib.parse import urlsplit

import pytest

from tests.support.npm_packages import make_publish
from tests.support.python_index import USER

pytestmark = pytest.mark.server


@pytest.fixture
def document(npm):
    def get(name):
        reply = npm.get(f"/{name}?write=true")
        assert reply.status == 200, reply
        return reply.json

    return get


@pytest.fixture
def write(npm):
    def put(path, document, method="PUT"):
        return npm.ask(method, path, json.dumps(document), {"Content-Type": "application/json"})

    return put


def deprecation(npm, name, version):
    for form in ("application/vnd.npm.install-v1+json", "application/json"):
        found = npm.get(f"/{name}", Accept=form).json["versions"][version].get("deprecated")
    return found


def test_a_deprecation_is_shown_until_it_ends(npm, publish, document, write):
    for version in ("1.0.0", "1.1.0"):
        publish("old", version)
    sent = document("old")
    sent["versions"]["1.0.0"]["deprecated"] = "use 1.1.0"
    assert write("/old", sent).json["ok"] is True
    assert (deprecation(npm, "old", "1.0.0"), deprecation(npm, "old", "1.1.0")) == ("use 1.1.0", None)
    assert npm.get("/old/1.0.0").json["deprecated"] == "use 1.1.0"
    assert write("/old", {"versions": {"1.1.0": {"deprecated": "and this"}}}).status == 201  # pnpm's short form
    assert (deprecation(npm, "old", "1.0.0"), deprecation(npm, "old", "1.1.0")) == ("use 1.1.0", "and this")
    sent = document("old")
    sent["versions"]["1.0.0"]["deprecated"] = ""
    sent["versions"]["9.9.9"] = {"deprecated": "nothing is here"}
    del sent["versions"]["1.1.0"]
    assert write("/old", sent).status == 201
    assert (deprecation(npm, "old", "1.0.0"), deprecation(npm, "old", "1.1.0")) == (None, "and this")
    assert sorted(document("old")["versions"]) == ["1.0.0", "1.1.0"]


@pytest.mark.parametrize(
    ("path", "change"),
    [
        ("/unsent", {"versions": {"1.0.0": {}, "9.9.9": {}}, "dist-tags": {"latest": "9.9.9"}}),
        ("/unsent", {"versions": {"9.9.9": {"deprecated": "nothing is here"}}}),
        ("/unsent/-rev/{rev}", {"versions": {"1.0.0": {}, "9.9.9": {}}, "dist-tags": {"latest": "9.9.9"}}),
    ],
)
def test_a_document_about_a_version_without_a_tarball_is_refused(npm, publish, document, write, path, change):
    if npm.get("/unsent").status == 404:
        publish("unsent", "1.0.0")
    before = document("unsent")
    reply = write(path.replace("{rev}", before["_rev"]), {"_id": "unsent", "name": "unsent", **change})
    assert reply.status == 400
    assert "the document has no tarball attached, and unsent has no version 9.9.9" in reply.json["error"]
    assert document("unsent") == before


@pytest.mark.parametrize("rev", ["", "/-rev/{rev}"])
def test_a_document_that_names_other_versions_beside_its_change_is_taken(npm, publish, document, write, rev):
    name = f"merged{len(rev)}"
    for version in ("1.0.0", "1.1.0"):
        publish(name, version)
    sent = document(name)
    sent["versions"]["9.9.9"] = {}
    if rev:
        del sent["versions"]["1.1.0"]
        sent["dist-tags"] = {"latest": "9.9.9", "old": "1.0.0"}
    else:
        sent["versions"]["1.0.0"]["deprecated"] = "old"
    assert write(f"/{name}{rev.replace('{rev}', sent['_rev'])}", sent).json["ok"] is True
    assert list(document(name)["versions"]) == (["1.0.0"] if rev else ["1.0.0", "1.1.0"])
    assert deprecation(npm, name, "1.0.0") == (None if rev else "old")


@pytest.mark.parametrize(
    ("path", "change"),
    [
        ("/{name}", {"_id": "other", "versions": {"1.0.0": {"deprecated": "x"}}}),
        ("/{name}", {"name": "other", "versions": {"1.0.0": {"deprecated": "x"}}}),
        ("/{name}", {"_id": 1, "versions": {"1.0.0": {"deprecated": "x"}}}),
        ("/", {"name": "{name}", "_id": "other", "versions": {"1.0.0": {"deprecated": "x"}}}),
        ("/{name}/1.1.0", {"_id": "{name}", "versions": {"1.0.0": {"deprecated": "x"}}}),
        ("/{name}", {"_id": "other", "users": {"admin": True}}),
        ("/{name}/-rev/{rev}", {"_id": "other", "versions": {}}),
        ("/{name}/-rev/{rev}", {"name": "other", "versions": {"1.0.0": {}}}),
        ("/{name}/-rev/{rev}", {"_id": "{name}", "_rev": "1-0", "versions": {"1.0.0": {}}}),
        ("/{name}/-rev/{rev}", {"_id": "other", "_rev": "{rev}", "maintainers": [{"name": "bob", "email": ""}]}),
    ],
)
@pytest.mark.parametrize("name", ["named", "@named/x"])
def test_a_document_that_contradicts_its_address_changes_nothing(npm, publish, document, name, path, change):
    if npm.get(f"/{name}").status == 404:
        for version in ("1.0.0", "1.1.0"):
            publish(name, version)
    before = document(name)
    fill = {"{name}": name, "{rev}": before["_rev"]}
    body = json.dumps(change)
    for field, value in fill.items():
        path, body = path.replace(field, value), body.replace(field, value)
    reply = npm.ask("PUT", path, body)
    assert (reply.status, list(reply.json)) == (400, ["error"])
    assert document(name) == before


def test_a_star_for_two_packages_is_refused(npm, publish):
    publish("one-star")
    assert npm.post_json("/-/user/v1/star", {"package": "one-star", "name": "other"}, "PUT").status == 400
    assert "one-star" not in npm.get("/-/user/v1/star").json


def unpublish(npm, document, write, name, version):
    """Send the requests of ``npm unpublish name@version``."""
    sent = document(name)
    del sent["versions"][version]
    sent["dist-tags"] = {tag: at for tag, at in sent["dist-tags"].items() if at != version}
    if "latest" not in sent["dist-tags"]:
        sent["dist-tags"]["latest"] = sorted(sent["versions"])[-1]
    first = write(f"/{name}/-rev/{sent['_rev']}", sent)
    bare = name.rpartition("/")[2]
    second = npm.ask("DELETE", f"/{name}/-/{bare}-{version}.tgz/-rev/{document(name)['_rev']}")
    return first, second


@pytest.mark.parametrize("name", ["shrinking", "@shrinking/x"])
def test_a_version_is_unpublished(npm, publish, document, write, name):
    for version in ("1.0.0", "1.1.0", "2.0.0-rc.1"):
        publish(name, version, tag="next" if "rc" in version else "latest")
    bare = name.rpartition("/")[2]
    for _ in range(2):
        assert npm.get(f"/{name}/-/{bare}-1.1.0.tgz").status == 200
    first, second = unpublish(npm, document, write, name, "1.1.0")
    assert (first.status, second.status) == (200, 200)
    assert first.json["rev"] == document(name)["_rev"]
    left = document(name)
    assert sorted(left["versions"]) == ["1.0.0", "2.0.0-rc.1"]
    assert left["dist-tags"] == {"latest": "2.0.0-rc.1", "next": "2.0.0-rc.1"}  # as the client computed them
    assert "1.1.0" not in left["time"]
    assert npm.get(f"/{name}/-/{bare}-1.1.0.tgz").status == 404
    assert npm.get(f"/{name}/1.1.0").status == 404
    again = npm.put(f"/{name}", make_publish(name, "1.1.0"))
    assert again.status == 403


@pytest.mark.parametrize("name", ["doubled", "@doubled/x", "repositories"])
def test_a_version_is_unpublished_at_a_doubled_path(npm, publish, document, name):
    for version in ("1.0.0", "1.1.0"):
        publish(name, version)
    tarball = urlsplit(document(name)["versions"]["1.1.0"]["dist"]["tarball"]).path  # all of it, as npm 6 and 7 have it
    assert npm.ask("DELETE", f"{tarball}/-rev/{document(name)['_rev']}").status == 200
    assert list(document(name)["versions"]) == ["1.0.0"]
    other = f"/repositories/main/other/{name}/-/x-1.0.0.tgz/-rev/{document(name)['_rev']}"
    assert npm.ask("DELETE", other).status == 400
    assert npm.ask("DELETE", f"/{name}/-rev/{document(name)['_rev']}").status == 200


def test_latest_moves_to_the_highest_release(npm, publish):
    for version in ("1.0.0", "2.0.0-rc.1", "1.5.0"):
        publish("moving", version)
    rev = npm.get("/moving?write=true").json["_rev"]
    assert npm.ask("DELETE", f"/moving/-/moving-1.5.0.tgz/-rev/{rev}").status == 200
    assert npm.get("/moving").json["dist-tags"] == {"latest": "1.0.0"}
    rev = npm.get("/moving?write=true").json["_rev"]
    assert npm.ask("DELETE", f"/moving/-/moving-1.0.0.tgz/-rev/{rev}").status == 200
    assert npm.get("/moving").json["dist-tags"] == {"latest": "2.0.0-rc.1"}


def test_a_package_is_unpublished_at_its_revision_only(npm, publish, document):
    publish("whole", "1.0.0")
    stale = document("whole")["_rev"]
    publish("whole", "1.1.0")
    reply = npm.ask("DELETE", f"/whole/-rev/{stale}")
    assert reply.status == 409
    assert npm.ask("DELETE", "/whole").status == 405
    assert npm.ask("DELETE", f"/whole/-rev/{document('whole')['_rev']}").status == 200
    for path in ("/whole", "/whole/1.0.0", "/whole/-/whole-1.0.0.tgz", "/-/package/whole/dist-tags"):
        assert npm.get(path).status == 404


def test_a_document_of_an_older_revision_removes_nothing(npm, publish, document, write):
    publish("stale", "1.0.0")
    sent = document("stale")
    publish("stale", "1.1.0")
    reply = write(f"/stale/-rev/{sent['_rev']}", sent)
    assert reply.status == 409
    assert sorted(document("stale")["versions"]) == ["1.0.0", "1.1.0"]


def test_a_new_owner_changes_nothing_else(npm, publish, document, write):
    for version in ("1.0.0", "1.1.0"):
        publish("owned", version)
    bob = npm.get("/-/user/org.couchdb.user:bob").json
    assert (bob["name"], bob["email"]) == ("bob", "bob@example.org")
    before = document("owned")
    owners = [*before["maintainers"], {"name": "bob", "email": bob["email"]}]
    reply = write(f"/owned/-rev/{before['_rev']}", {"_id": "owned", "_rev": before["_rev"], "maintainers": owners})
    assert reply.status == 200
    after = document("owned")
    assert after["maintainers"] == owners
    assert after["versions"] == before["versions"]
    assert after["dist-tags"] == before["dist-tags"]
    assert npm.as_user().get("/-/package/owned/collaborators").json == {"admin": "write", "bob": "read"}
    assert npm.get("/-/user/bob/package").json["owned"] == "read"
    assert reply.headers["npm-notice"] == (
        "'bob' may not publish owned: owners are a note, and what somebody may do is decided by the permissions of "
        "main/npm"
    )
    assert write(f"/owned/-rev/{after['_rev']}", {"maintainers": [{"name": 1}]}).status == 400


@pytest.mark.parametrize("right", ["read", "write"])
def test_collaborators_have_their_permissions(npm, publish, document, api, right):
    carol, name = f"carol-{right}", f"rights-{right}"
    assert api.post_json("/users", {"username": carol, "password": "carol keeps cats at home"}).status == 201
    actions = ["read", "write"] if right == "write" else ["read"]
    granted = {"repositories": [{"repository": "main/npm", "actions": actions}]}
    assert api.post_json(f"/users/{carol}/permissions", granted, "PUT").status == 200
    publish(name)
    reply = npm.post_json(f"/-/package/{name}/owners", {"user": carol}, "PUT")
    assert ("npm-notice" in reply.headers) == (right == "read")
    rev = document(name)["_rev"]
    owners = [*document(name)["maintainers"], {"name": "nobody-here", "email": ""}]
    reply = npm.ask("PUT", f"/{name}/-rev/{rev}", json.dumps({"_id": name, "_rev": rev, "maintainers": owners}))
    assert "'nobody-here'" in reply.headers["npm-notice"]
    assert npm.as_user().get(f"/-/package/{name}/collaborators").json == {USER: "write", carol: right}
    assert npm.get(f"/-/user/{carol}/package").json == {name: right}
    assert npm.as_user(carol, "carol keeps cats at home").get("/-/-/package").json == {name: right}
    assert npm.get("/-/user/nobody-here/package").json == {}
    published = npm.as_user(carol, "carol keeps cats at home").put(f"/{name}", make_publish(name, "2.0.0"))
    assert published.status == (201 if right == "write" else 403)


def test_many_owners_are_all_listed(npm, publish, document):
    publish("crowded")
    rev = document("crowded")["_rev"]
    owners = [{"name": f"nobody-{number}", "email": ""} for number in range(50)]
    owners += [{"name": "bob", "email": ""}, {"name": USER, "email": ""}]
    body = json.dumps({"_id": "crowded", "_rev": rev, "maintainers": owners})
    assert npm.ask("PUT", f"/crowded/-rev/{rev}", body).headers["npm-notice"].count("nobody-") == 20
    assert npm.as_user().get("/-/package/crowded/collaborators").json == {"bob": "read", USER: "write"}


def test_collaborators_are_those_of_whom_the_caller_may_know(repository, publish, api):
    """All who have rights for who administers the package, members of its project for members, owners for others."""
    private, cats = repository("private"), "carol keeps cats at home"
    for name in ("team-dev", "team-read", "granted"):
        assert api.post_json("/users", {"username": name, "password": cats}).status == 201
    granted = {"repositories": [{"repository": "main/private", "actions": ["read", "write"]}]}
    assert api.post_json("/users/granted/permissions", granted, "PUT").status == 200
    assert api.post_json("/project", {"key": "team", "visibility": "Private"}).status == 201
    for name, role in (("team-dev", "developer"), ("team-read", "reporter")):
        assert api.post_json("/project/team/members", {"user": name, "role": role}).status < 300
    bound = {"repository": "main/private", "pattern": "@joint"}
    assert api.post_json("/project/team/bindings", bound).status < 300
    publish("@joint/x", where=private)

    def seen(*user):
        return private.as_user(*user).get("/-/package/@joint%2fx/collaborators").json

    members = {USER: "write", "team-dev": "write", "team-read": "read"}
    assert private.get("/-/package/@joint%2fx/collaborators").json == {**members, "granted": "write"}
    assert seen("team-read", cats) == seen("team-dev", cats) == members
    assert seen("granted", cats) == {USER: "write", "granted": "write"}


def test_an_owner_without_permission_is_no_collaborator(repository, publish, format_server):
    private = repository("private")
    publish("lonely", where=private)
    assert private.post_json("/-/package/lonely/owners", {"user": "bob"}, "PUT").status == 200
    assert "bob" not in private.get("/-/package/lonely/collaborators").json
    assert private.get("/-/user/bob/package").json == {}


@pytest.mark.parametrize(
    ("method", "path", "body", "headers", "verb"),
    [
        ("PUT", "/said", {"versions": {}}, {}, "publish"),
        ("PUT", "/said", {"versions": {}}, {"npm-command": "publish"}, "publish"),
        ("PUT", "/said", {"versions": {}}, {"npm-command": "deprecate"}, "deprecate"),
        ("PUT", "/said", {"versions": {}}, {"npm-command": "star"}, "star"),
        ("PUT", "/said", {"versions": {}}, {"npm-command": "<x>"}, "publish"),
        ("PUT", "/said/-rev/{rev}", {"versions": {}}, {}, "change"),
        ("PUT", "/said/-rev/{rev}", {"versions": {}}, {"npm-command": "unpublish"}, "unpublish"),
        ("PUT", "/said/-rev/{rev}", {"maintainers": []}, {"npm-command": "owner"}, "change the owners of"),
        ("DELETE", "/said/-rev/{rev}", None, {}, "unpublish"),
        ("DELETE", "/said/-/said-1.0.0.tgz/-rev/{rev}", None, {}, "unpublish"),
        ("PUT", "/-/package/said/dist-tags/next", "1.0.0", {}, "change the tags of"),
        ("DELETE", "/-/package/said/dist-tags/next", None, {}, "change the tags of"),
        ("PUT", "/-/package/said/owners", {"user": "bob"}, {}, "change the owners of"),
        ("DELETE", "/-/package/said/owners/bob", None, {}, "change the owners of"),
        ("POST", "/-/package/said/access", {"access": "public"}, {}, "change the access of"),
        ("PUT", "/-/user/v1/star", {"package": "said"}, {}, "star"),
    ],
)
def test_a_refusal_names_the_verb(npm, publish, document, as_token, method, path, body, headers, verb):
    if npm.get("/said").status == 404:
        publish("said")
    path = path.replace("{rev}", document("said")["_rev"])
    reply = as_token("reader").ask(method, path, None if body is None else json.dumps(body), headers)
    assert reply.status == 403
    assert reply.json["error"].startswith(f'You do not have permission to {verb} "said". '), reply.json


def test_unpublishing_needs_the_delete_permission(npm, publish, document, as_token):
    publish("kept", "1.0.0")
    rev = document("kept")["_rev"]
    reply = as_token("writer").ask("PUT", f"/kept/-rev/{rev}", json.dumps({"_id": "kept", "versions": {}}))
    assert (reply.status, reply.json["error"][:46]) == (403, 'You do not have permission to unpublish "kept"')


def test_a_star_is_added_and_removed(npm, publish, document, write):
    publish("starred")
    sent = document("starred")
    assert write("/starred", {"_id": "starred", "_rev": sent["_rev"], "users": {"admin": True}}).status == 201
    assert document("starred")["users"] == {"admin": True}
    assert write("/starred", {"_id": "starred", "users": {"bob": True}}).status == 201
    assert "users" not in document("starred")


def test_owners_and_stars_are_changed_one_at_a_time_as_pnpm_does(npm, publish, document, as_token):
    for version in ("1.0.0", "1.1.0"):
        publish("@lone/x", version)
    before = document("@lone/x")
    owners = "/-/package/@lone%2fx/owners"
    assert npm.post_json(owners, {"user": "bob"}, "PUT").status == 200
    bob = {"name": "bob", "email": "bob@example.org"}
    assert document("@lone/x")["maintainers"] == [*before["maintainers"], bob]
    assert document("@lone/x")["versions"] == before["versions"]
    assert npm.post_json(owners, {"user": "bob"}, "PUT").status == 200
    assert npm.ask("DELETE", f"{owners}/admin").status == 200
    assert document("@lone/x")["maintainers"] == [bob]
    last = npm.ask("DELETE", f"{owners}/bob")
    assert (last.status, last.json) == (400, {"error": "bob is the only owner of @lone/x; add another one first"})
    for body, status in (({"user": "nobody"}, 404), ({"user": 1}, 400), ({}, 400)):
        assert npm.post_json(owners, body, "PUT").status == status
    assert npm.post_json("/-/package/not-there/owners", {"user": "bob"}, "PUT").status == 404

    star = {"name": "@lone/x", "package": "@lone/x"}
    assert npm.post_json("/-/user/v1/star", star, "PUT").status == 200
    assert document("@lone/x")["users"] == {USER: True}
    assert npm.get("/-/user/v1/star").json["@lone/x"] is True
    assert npm.as_user().get(f"/-/user/{USER}/stars").json["@lone/x"] is True
    assert npm.post_json("/-/user/v1/star", star, "DELETE").status == 200
    assert "@lone/x" not in npm.get("/-/user/v1/star").json
    for body, status in (({"package": "not-there"}, 404), ({"package": "../x"}, 400), ({}, 400)):
        assert npm.post_json("/-/user/v1/star", body, "PUT").status == status

    reader, nobody = as_token("reader"), npm.as_user()
    for who, status in ((reader, 403), (nobody, 401)):
        assert who.post_json(owners, {"user": "bob"}, "PUT").status == status
        assert who.ask("DELETE", f"{owners}/bob").status == status
        assert who.post_json("/-/user/v1/star", star, "PUT").status == status
    assert nobody.get("/-/user/v1/star").status == 401
    assert "@lone/x" not in npm.get("/-/-/package").json
    assert npm.post_json(owners, {"user": USER}, "PUT").status == 200
    assert npm.get("/-/-/package").json["@lone/x"] == "write"
    assert nobody.get("/-/-/package").status == 401


def test_team_requests_are_refused_with_a_sentence(npm):
    sentence = "this registry has no organisations and teams: permissions are given for its repositories"
    for method, path in (
        ("GET", "/-/org/acme/team?format=cli"),
        ("PUT", "/-/org/acme/team"),
        ("GET", "/-/org/acme/user"),
        ("PUT", "/-/org/acme/user"),
        ("GET", "/-/team/acme/dev/user?format=cli"),
        ("PUT", "/-/team/acme/dev/package"),
        ("GET", "/-/team/npm/dev/package?format=cli"),
        ("DELETE", "/-/team/acme/dev"),
    ):
        reply = npm.ask(method, path, None if method == "GET" else b"{}")
        assert (reply.status, reply.json) == (400, {"error": sentence})


def test_stars_of_a_user_are_listed(npm, publish, repository):
    private = repository("private")
    for where in (npm, private):
        publish("@liked/x", where=where)
        publish("@liked/y", where=where)
        where.post_json("/@liked%2fx", {"_id": "@liked/x", "users": {USER: True}}, "PUT")
    stars = f"/-/_view/starredByUser?key=%22{USER}%22"
    assert {"key": USER, "value": "@liked/x"} in npm.as_user().get(stars).json["rows"]
    assert [each["value"] for each in private.get(stars).json["rows"]] == ["@liked/x"]
    assert private.as_user().get(stars).status == 401
    assert npm.get("/-/_view/starredByUser?key=%22nobody%22").json == {"rows": []}


def test_access_is_that_of_the_repository(npm, publish, repository, write):
    publish("@shown/x")
    assert npm.get("/-/package/@shown%2fx/visibility").json == {"public": True}
    assert npm.get("/-/package/@shown%2fx/access").json == {"access": "public", "publish_requires_tfa": False}
    assert write("/-/package/@shown%2fx/access", {"access": "public"}, "POST").status == 200
    assert write("/-/package/@shown%2fx/access", {"publish_requires_tfa": False}, "POST").status == 200
    assert write("/-/package/@shown%2fx/access", {"access": "restricted"}, "POST").status == 403
    assert npm.get("/-/org/shown/package").json == {"@shown/x": "write"}
    assert npm.get("/-/org/admin/package").status == 404  # npm then requests the packages of a user
    assert npm.get("/-/user/admin/package").json["@shown/x"] == "write"
    publish("hidden", where=repository("private"))
    assert repository("private").get("/-/package/hidden/visibility").json == {"public": False}
    assert repository("private").get("/-/package/hidden/access").json["access"] == "restricted"


def test_changes_need_permission(npm, publish, document, as_token):
    publish("guarded", "1.0.0")
    rev = document("guarded")["_rev"]
    reader, writer = as_token("reader"), as_token("writer")
    for who, status in ((npm.as_user(), 401), (reader, 403)):
        assert who.ask("PUT", "/guarded", '{"versions":{"1.0.0":{"deprecated":"x"}}}').status == status
        assert who.ask("PUT", "/-/package/guarded/dist-tags/next", '"1.0.0"').status == status
        assert who.ask("DELETE", f"/guarded/-rev/{rev}").status == status
    assert writer.ask("PUT", "/-/package/guarded/dist-tags/next", '"1.0.0"').status == 201
    rev = document("guarded")["_rev"]
    assert writer.ask("DELETE", f"/guarded/-rev/{rev}").status == 403
    assert writer.ask("PUT", f"/guarded/-rev/{rev}", '{"versions":{}}').status == 403
    assert npm.get("/guarded").status == 200


def test_a_yank_through_the_api_is_a_deprecation(npm, publish, api):
    publish("withdrawn", "1.0.0")
    listed = api.get("/repository/list").json
    uid = next(each["id"] for each in listed["items"] if each["name"] == "npm")
    assert api.post_json(f"/package/{uid}/withdrawn/versions/1.0.0/yank", {"reason": "bad"}).status == 200
    assert deprecation(npm, "withdrawn", "1.0.0") == "bad"


def test_tags_are_set_listed_and_removed(npm, publish):
    for version in ("1.0.0", "1.1.0"):
        publish("@tags/x", version)
    tags = "/-/package/@tags%2fx/dist-tags"
    for method in ("PUT", "POST"):
        reply = npm.ask(method, f"{tags}/stable", '"1.0.0"')
        assert (reply.status, reply.json["dist-tags"]) == (201, {"latest": "1.1.0", "stable": "1.0.0"})
    assert npm.get(tags).json == {"latest": "1.1.0", "stable": "1.0.0"}
    assert npm.get("/@tags%2fx").json["dist-tags"] == {"latest": "1.1.0", "stable": "1.0.0"}
    assert npm.get("/@tags%2fx/stable").json["version"] == "1.0.0"
    assert npm.ask("PUT", f"{tags}/latest", '"1.0.0"').status == 201
    assert npm.get("/@tags%2fx/latest").json["version"] == "1.0.0"
    assert npm.ask("DELETE", f"{tags}/stable").json["dist-tags"] == {"latest": "1.0.0"}
    assert npm.get("/@tags%2fx/stable").status == 404


@pytest.mark.parametrize(
    ("method", "tag", "body", "status"),
    [
        ("PUT", "stable", '"9.9.9"', 404),
        ("PUT", "stable", "1.0.0", 400),
        ("PUT", "stable", "{}", 400),
        ("PUT", "1.x", '"1.0.0"', 400),
        ("PUT", "^1", '"1.0.0"', 400),
        ("PUT", "v1.0.0", '"1.0.0"', 400),
        ("PUT", "__proto__", '"1.0.0"', 400),
        ("PUT", "a%2fb", '"1.0.0"', 400),
        ("DELETE", "latest", None, 400),
        ("DELETE", "nothing", None, 404),
    ],
)
def test_an_invalid_tag_is_refused(npm, publish, method, tag, body, status):
    if npm.get("/untaggable").status == 404:
        publish("untaggable")
    assert npm.ask(method, f"/-/package/untaggable/dist-tags/{tag}", body).status == status
    assert npm.get("/-/package/untaggable/dist-tags").json == {"latest": "1.0.0"}


def test_a_body_that_would_take_long_to_parse_is_refused(npm, publish):
    publish("patient", "1.0.0")
    for path in ("/-/package/patient/dist-tags/stable", "/-/user/org.couchdb.user:bob"):
        assert npm.ask("PUT", path, json.dumps([{}] * 30_000)).status == 413
