"""The exchange of identity tokens of pipelines, against an issuer with keys of its own."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from attrs import frozen

from tests.support.configurations import PRIVATE, hosted, virtual
from tests.support.fulcio import COMMIT, extensions_of, sign_bundle
from tests.support.http_client import HttpClient, Reply
from tests.support.issuer import AUDIENCE, Issuer, issuer_lines, listening, make_key
from tests.support.npm_packages import make_bundle, make_publish, make_tarball
from tests.support.python_index import PASSWORD, USER
from tests.support.python_packages import make_wheel
from tests.support.server_process import ServerProcess, running

pytestmark = pytest.mark.server

PUBLISHER = {"issuer": "forge", "claims": {"repository": "acme/*"}, "packages": ["acme-*"], "actions": ["write"]}


@frozen
class Scene:
    """A server that trusts an issuer, and the admin's client of its API."""

    server: ServerProcess
    issuer: Issuer
    api: HttpClient

    def exchange(self, token: str, repository: str = "main/py") -> Reply:
        """Exchange an identity token by the API."""
        return self.api.as_user().post_json("/auth/oidc", {"token": token, "repository": repository})

    def token(self, **changes: Any) -> str:
        """A token of this server for a pipeline."""
        answer = self.exchange(self.issuer.token(**changes))
        assert answer.status == 200, answer.text
        text: str = answer.json["token"]
        return text

    def put(self, token: str, name: str, version: str, repository: str = "py") -> Reply:
        """Publish a wheel with a token."""
        filename, data = make_wheel(name, version)
        client = HttpClient(f"{self.server.url}/repositories/main/{repository}", ("__token__", token))
        return client.ask("PUT", f"/{name}/{version}/{filename}", data)

    def configure(self, *publishers: Any, repository: str = "main/py") -> Reply:
        """Replace the publishers of a repository."""
        return self.api.post_json(f"{self.path(repository)}/config/publishers", list(publishers), "PUT")

    def path(self, repository: str) -> str:
        """The path of a repository in the API."""
        return f"/repository/{self.uid(repository)}"

    def uid(self, repository: str) -> str:
        """The id of a repository."""
        found: str = self.api.ask("GET", f"/repository/find-id/{repository}").json["repository_id"]
        return found


@pytest.fixture(scope="module")
def scene(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Scene]:
    """The server, whose repository "py" has a publisher."""
    with listening() as issuer:
        lines = (
            issuer_lines(issuer)
            + hosted("python", py="", other="", hidden=PRIVATE)
            + hosted("npm", "js")
            + hosted("cargo", "crates")
        )
        lines += virtual("python", "all", "main/py", publish_to="main/py")
        lines = f'bootstrap.admin.password = "{PASSWORD}"\n{lines}'
        with running(tmp_path_factory.mktemp("pipelines"), lines) as server:
            found = Scene(server, issuer, HttpClient(f"{server.url}/api", (USER, PASSWORD)))
            assert found.configure(PUBLISHER).status == 200
            yield found


@pytest.mark.parametrize("algorithm", ["RS256", "ES256"])
def test_a_pipeline_publishes_what_the_publisher_names_and_nothing_else(scene: Scene, algorithm: str) -> None:
    answer = scene.exchange(scene.issuer.token(algorithm=algorithm))
    assert answer.status == 200
    assert answer.json["expires_in"] == 900
    token = answer.json["token"]
    name = f"acme-{algorithm.lower()}"
    assert scene.put(token, name, "1.0").status == 201, "a package that does not exist yet"
    assert scene.put(token, "evil", "1.0").status == 403
    assert scene.put(token, name, "1.0", repository="other").status == 403
    holder = scene.api.as_user("__token__", token)
    for path in ("/user/token", "/users", "/system/settings", "/user/me"):
        assert holder.ask("GET", path).status in (403, 404), path
    assert holder.post_json("/user/token", {"name": "more"}).status == 403
    version = scene.api.ask("GET", f"/package/{scene.uid('main/py')}/{name}/versions/1.0").json
    assert version["publisher"] == "pipeline release.yml of acme/widget (forge)"
    page = HttpClient(scene.server.url).ask("GET", f"/ui/repositories/main/py/packages/{name}/versions/1.0")
    assert "by pipeline release.yml of acme/widget (forge)" in page.text


def test_what_was_exchanged_is_in_the_audit_log_with_its_claims(scene: Scene) -> None:
    token = scene.token(ref="refs/tags/audited")
    [entry] = [
        each
        for each in scene.api.ask("GET", "/audit?action=pipeline.token&outcome=ok").json["items"]
        if each["detail"]["claims"].get("ref") == "refs/tags/audited"
    ]
    assert entry["actor"] == "pipeline release.yml of acme/widget (forge)"
    assert entry["detail"]["claims"]["repository"] == "acme/widget"
    assert entry["detail"]["repositories"] == [
        {"repository": "main/py", "actions": ["read", "write"], "packages": ["acme-*"]}
    ]
    assert token not in json.dumps(entry)


def test_an_identity_token_is_exchanged_once_whoever_comes_first(scene: Scene) -> None:
    identity = scene.issuer.token()
    with ThreadPoolExecutor(16) as pool:
        answers = list(pool.map(lambda _: scene.exchange(identity), range(16)))
    assert sorted(each.status for each in answers) == [200] + [422] * 15
    assert all("exchanged before" in each.json["detail"] for each in answers if each.status == 422)


def test_tokens_that_are_not_right_are_refused_alike(scene: Scene) -> None:
    right = scene.issuer.token()
    head, claims, signature = right.split(".")
    other = scene.issuer.token(repository="evil/widget")
    tokens = {
        "wrong audience": scene.issuer.token(audience="https://elsewhere.example"),
        "expired": scene.issuer.token(exp=int(time.time()) - 120),
        "not yet": scene.issuer.token(nbf=int(time.time()) + 3600),
        "another issuer": scene.issuer.token(iss="https://token.actions.githubusercontent.com.evil.example"),
        "another repository": other,
        "swapped claims": f"{head}.{other.split('.')[1]}.{signature}",
        "swapped signature": f"{head}.{claims}.{other.split('.')[2]}",
        "no signature": f"{head}.{claims}.",
        "another key": scene.issuer.token(key=make_key()),
        "unknown key": scene.issuer.token(key=make_key(), kid="../../etc/passwd"),
        "huge": right + "A" * 100_000,
        "an access token": scene.token(),
        "nothing": "",
    }
    for why, token in tokens.items():
        answer = scene.exchange(token)
        assert answer.status in (413, 422), (why, answer.text)
        assert "token" not in answer.json, why
    assert scene.exchange(right).status == 200, "none of that used it up"


def test_a_claim_that_is_missing_or_no_text_fits_no_pattern(scene: Scene) -> None:
    for value in (None, ["acme/widget"], {"acme/": 1}, "acme", "evil/acme/widget", "acme/widget/x", "ACME/widget"):
        answer = scene.exchange(scene.issuer.token(repository=value))
        assert answer.status == 422, value
        assert "fits the identity token" in answer.json["detail"]


def test_a_removed_publisher_ends_its_tokens_at_once(scene: Scene) -> None:
    second = {"issuer": "forge", "claims": {"repository": "acme/second"}, "packages": ["second"]}
    assert scene.configure(PUBLISHER, second).status == 200
    token = scene.token(repository="acme/second", sub="x")
    assert scene.put(token, "second", "1.0").status == 201
    narrowed = {**second, "packages": ["third"]}
    assert scene.configure(PUBLISHER, narrowed).status == 200
    assert scene.put(token, "second", "1.1").status == 403
    assert scene.configure(PUBLISHER).status == 200
    assert scene.put(token, "second", "1.2").status == 403
    assert scene.put(token, "acme-x", "1.0").status == 201, "the other publisher fits it, too"


def test_publishers_that_are_anybody_or_of_no_issuer_are_refused(scene: Scene) -> None:
    for wrong in (
        {"claims": {}},
        {"claims": {"repository": "*"}},
        {"claims": {"repository": ""}},
        {"claims": {"repository": "**/*"}},
        {"claims": {"repository": []}},
        {"issuer": "unknown"},
        {"actions": ["admin"]},
        {"actions": []},
        {"packages": [""]},
    ):
        assert scene.configure({**PUBLISHER, **wrong}).status == 422, wrong
    stored = {**PUBLISHER, "audience": "", "environment": ""}
    assert scene.api.ask("GET", f"{scene.path('main/py')}/config/publishers").json == [stored]


def test_publishers_are_added_listed_and_removed_one_by_one(scene: Scene) -> None:
    path = f"{scene.path('main/other')}/publishers"
    given = {"issuer": "forge", "claims": {"repository": "acme/one"}, "environment": "release", "packages": ["one-*"]}
    added = scene.api.post_json(path, given)
    assert added.status == 201, added.text
    assert (added.json["actions"], added.json["package"], added.json["warnings"]) == (["read", "write"], None, [])
    assert scene.api.post_json(path, given).status == 409
    of_package = f"/package/{scene.uid('main/other')}/Alone/publishers"
    alone = scene.api.post_json(of_package, {"issuer": "forge", "claims": {"repository": "acme*"}})
    assert (alone.json["package"], alone.json["packages"]) == ("alone", ["alone"])
    assert "whose pipelines publish (repository=acme*)" in alone.json["warnings"][0]
    assert "publishers: no claim says" in scene.api.ask("GET", scene.path("main/other")).text
    assert scene.api.post_json(of_package, {**given, "packages": ["others"]}).status == 422
    assert [each["id"] for each in scene.api.ask("GET", path).json] == [added.json["id"], alone.json["id"]]
    assert [each["id"] for each in scene.api.ask("GET", of_package).json] == [alone.json["id"]]
    token = scene.exchange(scene.issuer.token(repository="acme/one"), "main/other").json["token"]
    assert scene.put(token, "one-a", "1.0", "other").status == 201
    assert scene.put(token, "alone", "1.0", "other").status == 403
    of_other = f"/package/{scene.uid('main/other')}/one-a/publishers"
    assert scene.api.ask("DELETE", f"{of_other}/{added.json['id']}").status == 403
    for uid, status in ((added.json["id"], 204), (added.json["id"], 404), (alone.json["id"], 204)):
        assert scene.api.ask("DELETE", f"{path}/{uid}").status == status
    assert scene.put(token, "one-a", "1.1", "other").status == 403
    actions = [each["action"] for each in scene.api.ask("GET", "/audit?action=publisher.add&outcome=ok").json["items"]]
    assert actions == ["publisher.add"] * 2
    removed = scene.api.ask("GET", "/audit?action=publisher.remove&outcome=ok").json["items"]
    assert {each["detail"]["publishers"][0]["claims"]["repository"] for each in removed} == {"acme/one", "acme*"}


def test_publishers_that_are_added_at_the_same_time_are_all_there(scene: Scene) -> None:
    path = f"{scene.path('main/other')}/publishers"
    given = [{"issuer": "forge", "claims": {"repository": f"acme/{number}"}} for number in range(12)]
    with ThreadPoolExecutor(12) as pool:
        added = list(pool.map(lambda each: scene.api.as_user(USER, PASSWORD).post_json(path, each), given))
    assert {each.status for each in added} == {201}
    assert len(scene.api.ask("GET", path).json) == 12
    assert scene.configure(repository="main/other").status == 200


def test_a_publisher_has_an_audience_and_an_environment_of_its_own(scene: Scene) -> None:
    mine = {"issuer": "forge", "claims": {"repository": "acme/own"}, "audience": "urn:own", "environment": "prod"}
    assert scene.configure(mine, repository="main/other").status == 200

    def status(**changes: Any) -> int:
        return scene.exchange(scene.issuer.token(repository="acme/own", **changes), "main/other").status

    assert status(audience="urn:own", environment="prod") == 200
    assert status(audience="urn:own", environment="release") == 422
    assert status(environment="prod") == 422
    assert scene.exchange(scene.issuer.token(audience="urn:own")).status == 422, "it is no audience of other publishers"
    assert scene.configure(repository="main/other").status == 200


def test_provenance_of_another_pipeline_is_refused(scene: Scene) -> None:
    publisher = {"issuer": "forge", "claims": {"repository": "acme/*"}}
    assert scene.configure(publisher, repository="main/js").status == 200
    token = scene.exchange(scene.issuer.token(sha=COMMIT), "main/js").json["token"]
    client = HttpClient(f"{scene.server.url}/repositories/main/js", ("__token__", token))
    bundle = make_bundle("attested", "1.0.0", make_tarball("attested", "1.0.0"))

    def publish(**changes: str) -> Reply:
        signed = sign_bundle(bundle, extensions_of(scene.issuer.url, **changes))
        body = make_publish("attested", "1.0.0", bundle=signed)
        return client.ask("PUT", "/attested", body, {"Content-Type": "application/json"})

    refused = publish(_12="https://forge.example/evil/widget")
    assert refused.status == 400, refused.text
    assert "is of another pipeline than the one that publishes" in refused.text
    assert publish(_13="0" * 40).status == 400
    assert publish().status == 201
    assert client.ask("GET", "/-/npm/v1/attestations/attested@1.0.0").status == 200
    person = client.ask("GET", "/attested").json["versions"]["1.0.0"]["_npmUser"]
    trusted = person.pop("trustedPublisher")
    assert (trusted["id"], trusted["oidcConfigId"].partition(":")[0]) == ("forge", "oidc")
    assert list(person) == ["name", "email"]
    assert scene.configure(repository="main/js").status == 200


def test_a_publisher_of_a_project_is_for_the_packages_that_the_project_owns(scene: Scene) -> None:
    assert scene.api.post_json("/project", {"key": "core"}).status == 201
    for repository, pattern in (("main/other", "core-*"), ("main/js", "@core")):
        bound = scene.api.post_json("/project/core/bindings", {"repository": repository, "pattern": pattern})
        assert bound.status == 200, bound.text
    path = "/project/core/publishers"
    given = {"issuer": "forge", "claims": {"repository": "core/tools"}, "actions": ["write"]}
    added = scene.api.post_json(path, given)
    assert added.status == 201, added.text
    assert scene.api.post_json(path, given).status == 409
    assert scene.api.post_json(path, {**given, "issuer": "unknown"}).status == 422
    assert [each["id"] for each in scene.api.ask("GET", path).json] == [added.json["id"]]
    assert scene.api.as_user().ask("GET", path).status == 404
    [of_package] = scene.api.ask("GET", "/package/main%2Fother/core-tool/publishers").json
    assert (of_package["id"], of_package["of_project"]) == (added.json["id"], True)

    def exchange(repository: str) -> Reply:
        return scene.exchange(scene.issuer.token(repository="core/tools"), repository)

    token = exchange("main/other").json["token"]
    assert scene.put(token, "core-tool", "1.0", "other").status == 201, "it need not exist"
    assert scene.put(token, "tool", "1.0", "other").status == 403
    assert scene.put(token, "core-tool", "1.0", "py").status == 403, "the token is for the other repository"
    [entry] = [
        each
        for each in scene.api.ask("GET", "/audit?action=pipeline.token&outcome=ok").json["items"]
        if each["detail"]["claims"].get("repository") == "core/tools"
    ]
    assert entry["detail"]["repositories"] == [
        {"repository": "main/other", "actions": ["read", "write"], "packages": []}
    ]
    npm = HttpClient(f"{scene.server.url}/repositories/main/js")
    for name, status in (("@core%2fa", 201), ("@evil%2fa", 422), ("core", 422)):
        headers = {"Authorization": f"Bearer {scene.issuer.token(repository='core/tools')}"}
        answer = npm.ask("POST", f"/-/npm/v1/oidc/token/exchange/package/{name}", b"", headers)
        assert answer.status == status, (name, answer.text)
    assert exchange("main/py").status == 422, "it owns nothing there"
    assert scene.api.ask("DELETE", f"{path}/{added.json['id']}").status == 204
    assert scene.put(token, "core-tool", "1.1", "other").status == 403
    assert exchange("main/other").status == 422
    assert scene.api.ask("DELETE", "/project/core").status == 204


def test_a_pipeline_that_may_only_stage_publishes_nothing_directly(scene: Scene) -> None:
    staging = {"issuer": "forge", "claims": {"repository": "acme/staging"}, "actions": ["stage"]}
    assert scene.configure(staging, repository="main/other").status == 200
    token = scene.exchange(scene.issuer.token(repository="acme/staging"), "main/other").json["token"]
    refused = scene.put(token, "staged", "1.0", "other")
    assert refused.status == 403
    assert "to a stage alone" in refused.text
    opened = scene.api.as_user("__token__", token).post_json(f"{scene.path('main/other')}/stages", {})
    assert opened.status == 201, opened.text
    assert scene.configure(repository="main/other").status == 200


def test_editors_give_only_what_they_have(scene: Scene) -> None:
    uid = scene.api.post_json("/users", {"username": "editor", "password": "edits everything here"}).json["id"]
    rights = {"repositories": [{"repository": "main/other", "actions": ["read", "edit"]}]}
    assert scene.api.post_json(f"/users/{uid}/permissions", rights, "PUT").status == 200
    editor = scene.api.as_user("editor", "edits everything here")
    answer = editor.post_json(f"{scene.path('main/other')}/config/publishers", [PUBLISHER], "PUT")
    assert answer.status == 403
    assert "'write'" in answer.json["detail"]


def test_repositories_that_may_not_be_known_look_like_those_without_publishers(scene: Scene) -> None:
    bodies = set()
    for repository in ("main/hidden", "main/nothing", "main/js", "nonsense"):
        answer = scene.exchange(scene.issuer.token(), repository)
        bodies.add((answer.status, answer.json["detail"]))
    for repository in ("hidden", "nothing"):
        client = HttpClient(f"{scene.server.url}/repositories/main/{repository}")
        answer = client.post_json("/_/oidc/mint-token", {"token": scene.issuer.token()})
        assert answer.status == 422
        assert answer.json["errors"][0]["code"] == "invalid-publisher"
        bodies.add((422, answer.json["errors"][0]["description"]))
    assert len(bodies) == 1


def test_addresses_that_clients_build(scene: Scene) -> None:
    root = HttpClient(scene.server.url)
    within = HttpClient(f"{scene.server.url}/repositories/main/py")
    for client in (root, within):
        assert client.ask("GET", "/_/oidc/audience").json == {"audience": AUDIENCE}
        answer = client.post_json("/_/oidc/mint-token", {"token": scene.issuer.token()})
        assert (answer.status, answer.json["success"]) == (200, True)
        assert 890 <= answer.json["expires"] - time.time() <= 901
        assert scene.put(answer.json["token"], "acme-minted", f"1.{client is root:d}").status == 201
        for body, code in (
            ({}, "invalid-payload"),
            ({"token": 1}, "invalid-payload"),
            ({"token": "x"}, "invalid-token"),
        ):
            answer = client.post_json("/_/oidc/mint-token", body)
            assert (answer.status, answer.json["errors"][0]["code"]) == (422, code)


def test_a_pipeline_publishes_at_the_address_of_a_virtual_repository(scene: Scene) -> None:
    client = HttpClient(f"{scene.server.url}/repositories/main/all")
    answer = client.post_json("/_/oidc/mint-token", {"token": scene.issuer.token()})
    assert scene.put(answer.json["token"], "acme-virtual", "1.0", repository="all").status == 201
    assert scene.put(answer.json["token"], "evil", "1.0", repository="all").status == 403
    token = scene.exchange(scene.issuer.token(), "main/all").json["token"]
    assert scene.put(token, "acme-virtual", "1.1").status == 201


def test_tokens_with_keys_that_do_not_exist_ask_the_issuer_seldom(scene: Scene) -> None:
    tokens = [scene.issuer.token(key=make_key(), kid=f"guess-{number}") for number in range(64)]
    asked = len(scene.issuer.paths)
    with ThreadPoolExecutor(16) as pool:
        answers = list(pool.map(scene.exchange, tokens))
    assert {each.status for each in answers} == {422}
    assert len(scene.issuer.paths) - asked <= 2


def test_an_issuer_that_gives_no_usable_answer_is_named_and_local_logins_go_on(tmp_path: Path) -> None:
    with listening() as issuer:
        lines = f'bootstrap.admin.password = "{PASSWORD}"\n' + issuer_lines(issuer) + hosted("python", "py")
        issuer.answer = lambda _path: (200, b"[" * (4 << 20))
        with running(tmp_path, lines) as server:
            scene = Scene(server, issuer, HttpClient(f"{server.url}/api", (USER, PASSWORD)))
            with ThreadPoolExecutor(32) as pool:
                waiting = [pool.submit(scene.exchange, issuer.token()) for _ in range(300)]
                assert scene.api.ask("GET", "/user/me").status == 200
                answers = [each.result() for each in waiting]
            assert {each.status for each in answers} == {503}
            assert "longer than" in answers[0].json["detail"]
            assert "the issuer 'forge' cannot be used now" in answers[0].json["detail"]
            assert len(issuer.paths) < 20


def test_a_token_of_crates_is_revoked_by_whoever_has_it(scene: Scene) -> None:
    assert scene.configure({**PUBLISHER, "packages": []}, repository="main/crates").status == 200
    tokens, crates = "/api/v1/trusted_publishing/tokens", f"{scene.server.url}/repositories/main/crates"
    for url in (crates, scene.server.url):
        client = HttpClient(url)
        text = client.post_json(tokens, {"jwt": scene.issuer.token()}).json["token"]
        bearer = {"Authorization": f"Bearer {text}"}
        yank = f"{crates}/api/v1/crates/absent/1.0.0/unyank".removeprefix(url)
        assert client.ask("PUT", yank, b"", bearer).status in (403, 404)  # it is one
        assert client.ask("DELETE", tokens).status == 401
        assert client.ask("DELETE", tokens, headers={"Authorization": "Bearer pkgr_wrong"}).status == 401
        gone = client.ask("DELETE", tokens, headers=bearer)
        assert (gone.status, gone.body) == (204, b"")
        assert client.ask("DELETE", tokens, headers=bearer).status == 401
        assert client.ask("PUT", yank, b"", bearer).status == 401
    own = scene.api.post_json("/user/token", {"name": "mine"}).json["token"]
    refused = HttpClient(crates).ask("DELETE", tokens, headers={"Authorization": own})
    assert (refused.status, "pipeline" in refused.json["errors"][0]["detail"]) == (403, True)
    assert HttpClient(crates).ask("DELETE", tokens, headers={"Authorization": own}).status == 403  # it still works
    entries = scene.api.ask("GET", "/audit?action=token.revoke").json["items"]
    assert len(entries) >= 2
