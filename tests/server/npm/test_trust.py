"""npm trust: who may change the publishers of a package, and what is refused."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from tests.support.configurations import PRIVATE, hosted, virtual
from tests.support.http_client import HttpClient, Reply
from tests.support.python_index import PASSWORD, USER
from tests.support.server_process import ServerProcess, running

pytestmark = pytest.mark.server

PUBLIC = 'visibility = "public"'
SECRET = "keeps everything in order"
ISSUERS = """
auth.issuers.github = { issuer = "https://token.actions.githubusercontent.com", audience = "a" }
auth.issuers.forge = { issuer = "https://forge.corp.example/api/actions", audience = "a", kind = "gitlab" }
auth.issuers.lab = { issuer = "https://gitlab.corp.example/git", audience = "a" }
"""
GITHUB: dict[str, Any] = {
    "type": "github",
    "claims": {"repository": "acme/app", "workflow_ref": {"file": "release.yml"}, "environment": "prod"},
    "permissions": ["createPackage"],
}


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServerProcess]:
    """A server with a project that owns the scope @acme, of which maria is a maintainer and dora a developer."""
    lines = hosted("npm", js=PUBLIC, hidden=PRIVATE) + virtual("npm", "all", "main/js", publish_to="main/js")
    with running(
        tmp_path_factory.mktemp("trust"), f'bootstrap.admin.password = "{PASSWORD}"\n{ISSUERS}{lines}'
    ) as found:
        api = HttpClient(f"{found.url}/api", (USER, PASSWORD))
        assert api.post_json("/repository/main%2fall", {"visibility": "public"}, "PATCH").status == 200
        assert api.post_json("/project", {"key": "acme"}).status == 201
        for repository in ("main/js", "main/hidden"):
            body = {"repository": repository, "pattern": "@acme"}
            assert api.post_json("/project/acme/bindings", body).status == 200
        for name, role in (("maria", "maintainer"), ("dora", "developer")):
            assert api.post_json("/users", {"username": name, "password": SECRET}).status == 201
            assert api.post_json("/project/acme/members", {"user": name, "role": role}).status == 200
        yield found


def as_npm(server: ServerProcess, user: str = "", repository: str = "js") -> HttpClient:
    """A client with the token of a login by npm, or without credentials."""
    url = f"{server.url}/repositories/main/{repository}"
    if not user:
        return HttpClient(url)
    password = PASSWORD if user == USER else SECRET
    place = "all" if repository == "all" else "js"  # the token is for this one, and where it publishes to
    path = f"/repositories/main/{place}/-/user/org.couchdb.user:{user}"
    login = HttpClient(server.url).post_json(path, {"name": user, "password": password}, "PUT")
    return HttpClient(url, ("token", login.json["token"]))


def trust(client: HttpClient, name: str, *given: dict[str, Any]) -> Reply:
    return client.post_json(f"/-/package/{name}/trust", list(given))


def test_maintainers_of_the_project_trust_for_its_packages_alone(server: ServerProcess) -> None:
    maria = as_npm(server, "maria")
    added = trust(maria, "@acme%2fapp", GITHUB)
    assert added.status == 201, added.text
    [one] = added.json
    assert one == {"id": one["id"], **GITHUB}
    assert maria.ask("GET", "/-/package/@acme%2fapp/trust").json == added.json
    assert as_npm(server, "maria", "all").ask("GET", "/-/package/@acme%2fapp/trust").json == added.json
    assert trust(maria, "other", GITHUB).status == 403
    stored = HttpClient(f"{server.url}/api", (USER, PASSWORD)).ask("GET", "/package/main%2Fjs/@acme%2fapp/publishers")
    [publisher] = stored.json
    assert publisher["claims"] == {
        "repository": "acme/app",
        "workflow_ref": "acme/app/.github/workflows/release.yml@**",
    }
    assert publisher["packages"] == ["@acme/app"]
    for user in ("dora", "maria"):
        path = f"/-/package/@acme%2fapp/trust/{one['id']}"
        assert as_npm(server, user).ask("DELETE", path).status == (204 if user == "maria" else 403)
    assert trust(as_npm(server, "maria", "all"), "@acme%2fapp", GITHUB).status == 201, "where it is published to"


def test_others_may_neither_see_nor_change_it(server: ServerProcess) -> None:
    for user, repository, status in (
        ("", "js", 401),
        ("dora", "js", 403),
        ("", "hidden", 401),
        ("", "nothing", 401),
        ("dora", "nothing", 404),
    ):
        client = as_npm(server, user, repository)
        answers = [
            client.ask("GET", "/-/package/@acme%2fx/trust"),
            trust(client, "@acme%2fx", GITHUB),
            client.ask("DELETE", "/-/package/@acme%2fx/trust/0000000000000000"),
        ]
        assert {each.status for each in answers} == {status}, (user, repository)


@pytest.mark.parametrize(
    ("changes", "why"),
    [
        ({"type": "circleci"}, "accepts no identity tokens of circleci"),
        ({"type": "forge"}, "accepts no identity tokens of forge"),
        ({"type": "gitlab"}, "several issuers are of the type gitlab (forge, lab)"),
        ({"permissions": []}, "permissions are createPackage and createStagedPackage"),
        ({"permissions": ["admin"]}, "permissions are"),
        ({"claims": {}}, "at least one claim must name something"),
        ({"claims": {"environment": "prod"}}, "at least one claim must name something"),
        ({"claims": {"workflow_ref": {"file": "release.yml"}}}, "with the repository or project"),
        ({"claims": {"repository": "acme/app", "ref": {"file": "x.yml"}}}, "a file is that of"),
        ({"claims": {"repository": "acme/app", "workflow_ref": {"file": "../x.yml"}}}, "no trust configuration"),
        ({"claims": {"repository": 1}}, "no trust configuration"),
        ({"claims": {"ref": "main"}}, "everybody has pipelines at"),
        ({"more": 1}, "no trust configuration"),
    ],
    ids=range(13),
)
def test_configurations_that_are_refused(server: ServerProcess, changes: dict[str, Any], why: str) -> None:
    answer = trust(as_npm(server, USER), "refused", {**GITHUB, **changes})
    assert answer.status == 400, answer.text
    assert why in answer.text
    assert as_npm(server, USER).ask("GET", "/-/package/refused/trust").json == []


def test_a_name_with_wildcards_is_taken_as_it_is(server: ServerProcess) -> None:
    admin = as_npm(server, USER)
    [added] = trust(admin, "wild", {**GITHUB, "claims": {"repository": "acme/*"}}).json
    assert added["claims"] == {"repository": "acme/*"}
    [stored] = HttpClient(f"{server.url}/api", (USER, PASSWORD)).ask("GET", "/package/main%2Fjs/wild/publishers").json
    assert stored["claims"] == {"repository": "acme/[*]"}


def test_several_are_added_together_or_not_at_all(server: ServerProcess) -> None:
    admin = as_npm(server, USER)
    assert trust(admin, "several", GITHUB, {**GITHUB, "type": "circleci"}).status == 400
    assert trust(admin, "several", GITHUB, GITHUB).status == 409
    assert admin.ask("GET", "/-/package/several/trust").json == []
