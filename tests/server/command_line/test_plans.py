"""
The repositories of Nexus and Artifactory as a file that is applied here.

Both are stubs, which answer as their documentation says; addresses of upstreams are those of nobody.
"""

from __future__ import annotations

import base64
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.support.command_line import Program
from tests.support.imports import stub

pytestmark = pytest.mark.server

SECRET = "Basic " + base64.b64encode(b"ann:s3cret").decode()
UPSTREAM = "http://127.0.0.1:9"
LISTED = "/service/rest/v1/repositorySettings"
ROLES = "/service/rest/v1/security/roles"
USERS = "/service/rest/v1/security/users?source=default"


def hosted(name: str, format_: str, policy: str = "ALLOW_ONCE", **more: Any) -> dict[str, Any]:
    storage = {"blobStoreName": "default", "strictContentTypeValidation": True, "writePolicy": policy}
    return {"name": name, "format": format_, "type": "hosted", "online": True, "storage": storage, **more}


def proxy(name: str, format_: str, url: str = UPSTREAM, **more: Any) -> dict[str, Any]:
    remote = {"remoteUrl": url, "contentMaxAge": 1440, "metadataMaxAge": 1440}
    return {"name": name, "format": format_, "type": "proxy", "online": True, "proxy": remote, **more}


def group(name: str, format_: str, *members: str, **more: Any) -> dict[str, Any]:
    inner = {"memberNames": list(members), **more}
    return {"name": name, "format": format_, "type": "group", "online": True, "group": inner}


NEXUS = [
    group("all-npm", "npm", "npm-group", "npm-proxy"),  # before its members
    group("npm-group", "npm", "npm-team", "apt-files", writableMember="npm-team"),
    hosted("releases", "maven2", maven={"versionPolicy": "RELEASE"}, cleanup={"policyNames": ["old-builds"]}),
    hosted("snapshots", "maven2", "ALLOW", maven={"versionPolicy": "SNAPSHOT"}),
    hosted("npm-team", "npm"),
    proxy("npm-proxy", "npm", httpClient={"authentication": {"type": "username", "username": "x"}}),
    proxy("py-proxy", "pypi", routingRuleName="no-internal"),
    hosted("py-old", "pypi", "DENY"),
    hosted("images", "docker", "ALLOW", docker={"httpPort": 8082, "httpsPort": None}),
    hosted("hidden-images", "docker", docker={"httpPort": None, "httpsPort": None}),
    hosted("apt-files", "apt"),
    hosted("raw-files", "raw", "ALLOW"),
    hosted("raw-once", "raw"),
    hosted("charts", "helm"),
    hosted("crates", "cargo"),
    proxy("go-proxy", "go"),
    group("go-all", "go", "go-proxy"),
    group("empty", "nuget"),
    {**hosted("off", "rubygems"), "online": False},
]
VIEW = "nx-repository-view"
NEXUS_ROLES = [
    {"id": "nx-admin", "privileges": ["nx-all"], "roles": []},
    {
        "id": "developers",
        "description": "who builds",
        "privileges": [f"{VIEW}-maven2-releases-read", f"{VIEW}-npm-*-browse", f"{VIEW}-npm-*-read"],
        "roles": ["publishers"],
    },
    {
        "id": "publishers",
        "privileges": [f"{VIEW}-npm-npm-team-{each}" for each in ("add", "edit")] + ["nx-search-read", "by-expression"],
        "roles": ["developers"],  # in a circle
    },
    {"id": "all-java", "privileges": [f"{VIEW}-maven2-*-*"], "roles": []},
    {"id": "viewers", "privileges": [f"{VIEW}-*-*-browse"], "roles": []},
]
NEXUS_USERS = [
    {"userId": "bob", "emailAddress": "bob@corp.example", "status": "active", "roles": ["developers", "nx-admin"]},
    {"userId": "gone", "emailAddress": "", "status": "disabled", "roles": ["developers"]},
]


@pytest.fixture(scope="module")
def moved(admin: Program, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """A storage for what is planned."""
    admin("storage", "create", "moved", "--path", tmp_path_factory.mktemp("moved") / "storage")
    yield "moved"
    listed = {each["name"] for each in admin.json("group", "list")}  # other tests count them
    for name in listed & {"developers", "publishers", "all-java", "pythonists"}:
        admin("group", "delete", name, "--yes")


def test_repositories_of_nexus_are_made_here_and_again_changes_nothing(
    admin: Program, moved: str, tmp_path: Path
) -> None:
    password = tmp_path / "password"
    password.write_text("s3cret\n")
    with stub({LISTED: NEXUS, ROLES: NEXUS_ROLES, USERS: NEXUS_USERS}, secret=SECRET) as url:
        given = ("import", "plan", "nexus", url, "--username", "ann", "--password-file", password, "--storage", moved)
        made = admin.run(*given)
        assert made.returncode == 0, made
        assert "s3cret" not in made.stdout + made.stderr
        assert "401" in admin.refused(4, "import", "plan", "nexus", url)
        assert "404" in admin.refused(3, *given[:3], f"{url}/nexus", *given[4:])
    names = [each["name"] for each in json.loads(made.stdout)["repositories"]]
    assert names.index("npm-team") < names.index("npm-group") < names.index("all-npm")
    assert sorted(names) == sorted(
        {each["name"] for each in NEXUS} - {"apt-files", "empty"}  # formats that are not served
    )
    file = tmp_path / "plan.json"
    file.write_text(made.stdout)
    count = len(names) + 3
    assert admin("repo", "apply", "-f", file).splitlines()[-1] == f"{count} created, 0 changed, 0 unchanged"
    assert admin("repo", "apply", "-f", file).splitlines()[-1] == f"0 created, 0 changed, {count} unchanged"

    def config(name: str) -> Any:
        return admin.json("repo", "show", f"{moved}/{name}")["config"]

    assert config("npm-group")["members"] == [f"{moved}/npm-team"]
    assert config("npm-group")["publish_to"] == f"{moved}/npm-team"
    assert config("all-npm")["members"] == [f"{moved}/npm-group", f"{moved}/npm-proxy"]
    assert [each["url"] for each in config("py-proxy")["proxy"]["routes"]] == [f"{UPSTREAM}/simple/"]
    rules = config("releases")["push_rules"]
    assert (rules["push_policy"], rules["allow_overwrite"]) == ("RELEASES", False)
    assert config("snapshots")["push_rules"]["push_policy"] == "SNAPSHOTS"
    assert [config(name)["policy"]["overwrite"] for name in ("raw-files", "raw-once")] == [["*"], []]
    assert config("charts")["policy"]["allow_overwrite"] is False
    assert [each["url"] for each in config("go-proxy")["proxy"]["routes"]] == [f"{UPSTREAM}/"]
    assert config("go-all")["members"] == [f"{moved}/go-proxy"]
    assert config("images")["push_rules"]["allow_tag_overwrite"] is True
    assert admin.json("repo", "show", f"{moved}/off")["active"] is False
    assert admin.json("repo", "show", f"{moved}/releases")["visibility"] == "private"

    rest = made.stderr.splitlines()
    check_addresses(admin, rest, moved)
    assert f"pkgrepo import nexus {url} --repository releases --into {moved}/releases --username ann" in rest
    assert f"pkgrepo import container http://127.0.0.1:8082 --into {moved}/images --username ann" in rest
    for name in ("raw-files", "charts", "crates"):
        assert f"pkgrepo import nexus {url} --repository {name} --into {moved}/{name} --username ann" in rest
        assert f'"/repository/{name}/" = "{moved}/{name}"' in rest
    assert not any("import" in line and "proxy" in line for line in rest)
    assert f'"/repository/npm-group/" = "{moved}/npm-group"' in rest
    assert f'"127.0.0.1:8082" = "{moved}/images"' in rest
    left = [line for line in rest if line.startswith("# ")]
    for part in ("apt-files is left out", "empty is left out", "npm-group: its member apt-files", "old-builds"):
        assert any(part in line for line in left), (part, left)
    for part in ("npm-proxy: its upstream wants credentials", "no-internal", "py-old is read-only", "no connector"):
        assert any(part in line for line in left), (part, left)
    assert "pkgrepo user create bob --email bob@corp.example --invite" in rest
    assert "pkgrepo group add developers bob" in rest
    assert not any("gone" in line for line in rest)
    for part in ("by-expression of the role publishers", "bob is an administrator", "viewers is no group here"):
        assert any(part in line for line in left), (part, left)
    npm = {f"{moved}/{name}": "read" for name in ("all-npm", "npm-group", "npm-proxy")}
    rights = {**npm, f"{moved}/npm-team": "read, write, overwrite", f"{moved}/releases": "read"}
    assert granted(admin, "developers") == rights
    assert granted(admin, "publishers") == rights
    assert granted(admin, "all-java") == {
        f"{moved}/{name}": "read, write, overwrite, delete" for name in ("releases", "snapshots")
    }


def check_addresses(admin: Program, printed: list[str], moved: str) -> None:
    """The lines for the configuration file must be taken by it."""
    begin = printed.index("[aliases]")
    lines = [line for line in printed[begin:] if not line.startswith("# ")]
    file = admin.folder / "addresses.toml"
    file.write_text("\n".join(['server.public_url = "https://packages.corp.example"', *lines]))
    admin("check-config", PKGREPO_CONFIG=str(file))
    assert moved in file.read_text()


def granted(admin: Program, name: str) -> dict[str, str]:
    """The actions of a group, by repository."""
    shown = admin.json("group", "show", name)
    return {each["repository"]: ", ".join(each["actions"]) for each in shown["repositories"]}


ARTIFACTORY = {
    "libs-local": {"rclass": "local", "packageType": "maven", "handleReleases": True, "handleSnapshots": False},
    "py-remote": {
        "rclass": "remote",
        "packageType": "pypi",
        "url": f"{UPSTREAM}/files",
        "pyPIRegistryUrl": f"{UPSTREAM}/index",
        "username": "team",
        "description": "the index",
    },
    "py-local": {"rclass": "local", "packageType": "pypi"},
    "py-all": {
        "rclass": "virtual",
        "packageType": "pypi",
        "repositories": ["py-local", "py-remote"],
        "defaultDeploymentRepo": "py-local",
    },
    "oci-local": {"rclass": "federated", "packageType": "docker", "blackedOut": True},
    "deb-local": {"rclass": "local", "packageType": "debian"},
    "helm-local": {"rclass": "local", "packageType": "helm"},
    "files": {"rclass": "local", "packageType": "generic"},
    "files-remote": {"rclass": "remote", "packageType": "generic", "url": f"{UPSTREAM}/files"},
    "crates-remote": {
        "rclass": "remote",
        "packageType": "cargo",
        "url": f"{UPSTREAM}/crates",
        "gitRegistryUrl": f"{UPSTREAM}/index",
        "cargoInternalIndex": True,
    },
    "crates-of-git": {"rclass": "remote", "packageType": "cargo", "url": UPSTREAM, "cargoInternalIndex": False},
    "modules": {"rclass": "remote", "packageType": "go", "url": UPSTREAM, "vcsGitProvider": "ARTIFACTORY"},
    "sources": {"rclass": "remote", "packageType": "go", "url": UPSTREAM, "vcsGitProvider": "GITHUB"},
    "modules-all": {"rclass": "virtual", "packageType": "go", "repositories": ["modules", "sources"]},
    "no-url": {"rclass": "remote", "packageType": "npm"},
}


def permission(name: str, repositories: list[str], actions: dict[str, Any], **more: Any) -> dict[str, Any]:
    rights = {"include-patterns": ["**"], "exclude-patterns": [], "repositories": repositories, "actions": actions}
    return {"name": name, "repo": {**rights, **more}}


def test_repositories_of_artifactory_are_made_here(admin: Program, moved: str, tmp_path: Path) -> None:
    answers: dict[str, Any] = {f"/art/api/repositories/{key}": {"key": key, **raw} for key, raw in ARTIFACTORY.items()}
    answers["/art/api/repositories"] = [{"key": key, "type": "LOCAL"} for key in ARTIFACTORY]
    at = "/art/api/v2/security/permissions"
    answers[at] = [{"name": name, "uri": "{url}"} for name in ("deploy", "limited", "everywhere")]
    team = {"groups": {"pythonists": ["read", "write", "annotate"]}, "users": {"bob": ["read", "delete"]}}
    answers[f"{at}/deploy"] = permission("deploy", ["py-local", "deb-local"], team)
    answers[f"{at}/limited"] = permission("limited", ["libs-local"], team, **{"include-patterns": ["com/corp/**"]})
    answers[f"{at}/everywhere"] = permission("everywhere", ["ANY REMOTE"], {"groups": {"pythonists": ["read"]}})
    with stub(answers) as url:
        made = admin.run("import", "plan", "artifactory", f"{url}/art/", "--storage", moved, "--visibility", "public")
    assert made.returncode == 0, made
    plan = {each["name"]: each for each in json.loads(made.stdout)["repositories"]}
    hosts = ["libs-local", "py-local", "oci-local", "helm-local", "files"]
    assert list(plan) == [*hosts, "py-remote", "files-remote", "crates-remote", "modules", "py-all", "modules-all"]
    file = tmp_path / "plan.json"
    file.write_text(made.stdout)
    assert admin("repo", "apply", "-f", file).splitlines()[-1] == "12 created, 0 changed, 0 unchanged"
    remote = {f"{moved}/{name}": "read" for name in ("crates-remote", "files-remote", "modules", "py-remote")}
    assert granted(admin, "pythonists") == {f"{moved}/py-local": "read, write", **remote}
    shown = admin.json("repo", "show", f"{moved}/py-all")
    assert shown["visibility"] == "public"
    assert shown["config"]["members"] == [f"{moved}/py-local", f"{moved}/py-remote"]
    assert shown["config"]["publish_to"] == f"{moved}/py-local"
    assert plan["py-remote"]["config"]["proxy"]["routes"] == [{"url": f"{UPSTREAM}/index/simple/"}]
    assert plan["py-remote"]["description"] == "the index"
    assert plan["libs-local"]["config"]["push_rules"]["push_policy"] == "RELEASES"
    assert plan["oci-local"]["active"] is False
    assert plan["files"]["config"]["policy"] == {"overwrite": ["*"]}
    assert plan["crates-remote"]["config"]["proxy"]["routes"] == [{"url": f"{UPSTREAM}/index/"}]
    assert plan["modules-all"]["config"]["members"] == [f"{moved}/modules"]
    rest = made.stderr.splitlines()
    check_addresses(admin, rest, moved)
    assert f"pkgrepo import artifactory {url}/art --repository py-local --into {moved}/py-local" in rest
    assert f'"/art/api/pypi/py-all/" = "{moved}/py-all"' in rest
    for part, name in (("", "libs-local"), ("", "files"), ("api/helm/", "helm-local"), ("api/go/", "modules-all")):
        assert f'"/art/{part}{name}/" = "{moved}/{name}"' in rest
    assert f'"/v2/oci-local/" = "{moved}/oci-local"' in rest
    assert f"pkgrepo user grant bob {moved}/py-local read overwrite delete" in rest
    for part in (
        "limited is left out",
        "deb-local is left out",
        "crates-of-git is left out: its upstream is a server of git",
        "sources is left out: its upstream is a server of git",
        "no-url is left out",
        "py-remote: its upstream wants credentials",
    ):
        assert any(part in line for line in rest), (part, rest)


@pytest.mark.parametrize(
    "answer", [{"items": []}, [1], [{"format": "npm"}], "no"], ids=["object", "number", "no-name", "text"]
)
def test_what_is_no_list_of_repositories_is_refused(admin: Program, answer: Any) -> None:
    with stub({LISTED: answer}) as url:
        assert "the server " in admin.refused(2, "import", "plan", "nexus", url)


def test_groups_that_contain_each_other_end(admin: Program) -> None:
    listed = [group("a", "npm", "b", "c"), group("b", "npm", "a"), hosted("c", "npm")]
    with stub({LISTED: listed, ROLES: [], USERS: []}) as url:
        made = admin.run("import", "plan", "nexus", url)
    assert [each["name"] for each in json.loads(made.stdout)["repositories"]] == ["c", "a"]
    assert "b is left out: it has no members" in made.stderr
