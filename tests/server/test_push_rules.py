"""The push rules that all formats have: who may publish, change and remove the packages of a project."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from urllib.parse import quote

import pytest

from tests.support.configurations import config, hosted
from tests.support.format_cases import CASES
from tests.support.format_worlds import new_tokens, serving
from tests.support.http_client import HttpClient, Reply
from tests.support.images import OCI_IMAGE, digest_of, make_image
from tests.support.python_index import PASSWORD, USER
from tests.support.server_process import ServerProcess

pytestmark = pytest.mark.server

FORMATS = (*CASES, "docker")
RULES = {
    "members": "must_be_project_member = true",
    "claims": "must_be_project_member = true, auto_create_projects = true",
    "tokens": "must_use_auth_token_for_push = true",
}
IMAGE = make_image()
BOB, ANN = ("bob", "bob keeps bees at home"), ("ann", "ann keeps ants at home")
TEXTS = new_tokens(["ci"])


@pytest.fixture(scope="module")
def process(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServerProcess]:
    """A server with a repository of each format for each rule."""
    repositories = {f"{rule}-npm": config(push_rules=rules) for rule, rules in RULES.items()}
    lines = "".join(
        hosted(each, **{f"{rule}-{each}": config(push_rules=rules) for rule, rules in RULES.items()})
        for each in FORMATS
        if each != "npm"
    )
    scopes = {"ci": ("main/*", ["read", "write", "delete"], [])}
    folder = tmp_path_factory.mktemp("push_rules")
    with serving(folder, "npm", repositories, scopes, TEXTS, max_upload=2**20, lines=lines) as server:
        api = HttpClient(f"{server.url}/api", (USER, PASSWORD))
        for name, password in (ANN, BOB):
            uid = api.post_json("/users", {"username": name, "password": password}).json["id"]
            rights = {"default_repository_actions": ["read", "write", "overwrite", "delete"]}
            assert api.post_json(f"/users/{uid}/permissions", rights, "PUT").status == 200
        yield server


@pytest.fixture
def at(process: ServerProcess) -> Callable[..., HttpClient]:
    """Return a client of a repository with a user's credentials: ``at(repository, name, password)``."""

    def client(repository: str, *who: str) -> HttpClient:
        images = repository.endswith("-docker")
        path = f"/v2/main/{repository}" if images else f"/repositories/main/{repository}"
        return HttpClient(process.url + path, who or (USER, PASSWORD))

    return client


def publish(where: HttpClient, format: str, version: str = "1.0.0") -> Reply:
    """Publish a version of the package."""
    if format in CASES:
        return CASES[format].replies(where, "app", version)[-1]
    for blob in IMAGE.blobs:
        started = where.post("/app/blobs/uploads/")
        if started.status != 202:
            return started
        upload = started.headers["location"].rpartition("/app/")[2]
        digest = quote(digest_of(blob))
        assert where.ask("PUT", f"/app/{upload}?digest={digest}", blob).status == 201
    return where.put(f"/app/manifests/{version}", IMAGE.manifest, Content_Type=OCI_IMAGE)


def remove(where: HttpClient, format: str, version: str = "1.0.0") -> Reply:
    """Remove the version, or yank it."""
    match format:
        case "npm":
            return where.ask("DELETE", f"/app/-/app-{version}.tgz/-rev/{quote(where.get('/app').json['_rev'])}")
        case "python":
            return where.ask("DELETE", f"/pypi/app/{version}/")
        case "maven":
            return where.ask("DELETE", f"/com/example/app/{version}")
        case "ruby":
            return where.ask("DELETE", "/api/v1/gems/yank", f"gem_name=app&version={version}")
        case "conda":
            return where.ask("DELETE", f"/release/main/app/{version}")
        case "docker":
            return where.ask("DELETE", f"/app/manifests/{IMAGE.digest}")
    base, _, repository = where.url.partition("/repositories/")  # its clients remove nothing
    name, text = quote(CASES[format].named("app"), safe=""), CASES[format].spelled(version)
    path = f"/api/package/{quote(repository, safe='')}/{name}/versions/{text}"
    return where.elsewhere(base).ask("DELETE", path)


def is_there(where: HttpClient, format: str) -> bool:
    images = format == "docker"
    return (
        where.get(f"/app/manifests/{IMAGE.digest}" if images else CASES[format].file_of("app", "1.0.0")).status == 200
    )


@pytest.mark.parametrize("format", FORMATS)
def test_only_members_of_the_project_publish_and_remove(process, at, format):
    repository, case = f"members-{format}", CASES.get(format)
    name, pattern = (case.named("app"), case.binding.format(name="app")) if case else ("app", "app")
    admin, bob, ann = at(repository), at(repository, *BOB), at(repository, *ANN)
    refused = publish(bob, format)
    assert (refused.status, "no project owns" in refused.text) == (403, True), refused
    assert publish(admin, format).status in (200, 201)
    refused = remove(bob, format)
    assert (refused.status, "no project owns" in refused.text) == (403, True), refused
    api = HttpClient(f"{process.url}/api", (USER, PASSWORD))
    key = f"team-{format}"
    assert api.post_json("/project", {"key": key}).status == 201
    binding = {"repository": f"main/{repository}", "pattern": pattern}
    assert api.post_json(f"/project/{key}/bindings", binding).status == 200
    assert api.post_json(f"/project/{key}/members", {"user": ANN[0], "role": "developer"}).status == 200
    for refused in (publish(bob, format, "1.2.0"), remove(bob, format)):
        assert (refused.status, f"only members of project {key} may push" in refused.text) == (403, True), refused
    text = case.spelled("1.0.0") if case else "1.0.0"
    path = f"/package/main%2F{repository}/{quote(name, safe='')}/versions/{text}"
    assert api.as_user(*BOB).delete(path).status == 403
    assert is_there(admin, format)
    assert publish(ann, format, "1.2.0").status in (200, 201)
    assert remove(ann, format).status in (200, 201, 202, 204)
    assert not is_there(admin, format)


@pytest.mark.parametrize("format", FORMATS)
def test_the_first_pusher_of_a_name_owns_it_where_the_setting_says_so(at, format):
    repository = f"claims-{format}"
    ann, bob = at(repository, *ANN), at(repository, *BOB)
    assert publish(ann, format).status in (200, 201)
    for refused in (publish(bob, format, "1.2.0"), remove(bob, format)):
        assert (refused.status, "only members of project" in refused.text) == (403, True), refused
    assert is_there(ann, format)
    assert remove(ann, format).status in (200, 201, 202, 204)


@pytest.mark.parametrize("format", FORMATS)
def test_a_password_neither_publishes_nor_removes_where_tokens_must(at, format):
    repository = f"tokens-{format}"
    token = at(repository, "ci", TEXTS["ci"])
    refused = publish(at(repository), format)
    assert (refused.status, "token" in refused.text) == (403, True), refused
    assert publish(token, format).status in (200, 201)
    refused = remove(at(repository), format)
    assert (refused.status, "token" in refused.text) == (403, True), refused
    assert is_there(token, format)
    assert remove(token, format).status in (200, 201, 202, 204)


def test_plain_files_in_the_folders_of_a_project_are_for_its_members(process, at):
    api = HttpClient(f"{process.url}/api", (USER, PASSWORD))
    assert api.post_json("/project", {"key": "folders"}).status == 201
    for pattern in ("org.folders", "net.one:app"):
        binding = {"repository": "main/members-maven", "pattern": pattern}
        assert api.post_json("/project/folders/bindings", binding).status == 200
    admin, bob = at("members-maven"), at("members-maven", *BOB)
    for path in ("/org/folders/notes.txt", "/org/folders/app/1.0/x.txt", "/net/one/app/x.txt", "/net/one/app/1/x.txt"):
        assert (path, bob.put(path, b"x").status) == (path, 403)
        assert admin.put(path, b"x").status == 201
        assert (path, bob.delete(path).status) == (path, 403)
        removal = json.dumps({"paths": [path[1:]]})
        removed = api.as_user(*BOB).ask(
            "DELETE", "/repository/main%2Fmembers-maven/packages", removal, {"Content-Type": "application/json"}
        )
        assert (removed.status, [each["path"] for each in removed.json["rejected"]]) == (200, [path[1:]])
        assert admin.get(path).status == 200
    for path in ("/org/notes.txt", "/net/one/x.txt", "/x.txt"):
        assert (path, bob.put(path, b"x").status) == (path, 403)
        assert (path, admin.put(path, b"x").status) == (path, 201)
        assert (path, bob.delete(path).status) == (path, 403)
        assert (path, admin.delete(path).status) == (path, 204)
