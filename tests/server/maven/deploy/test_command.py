"""The command that a CI job runs: a staging folder is published whole, or its exit code and output say why not."""

import os
import threading

import pytest

from tests.support.forked_programs import run_pkgrepo
from tests.support.maven_bundles import artifact, make_pom, with_checksums
from tests.support.python_index import PASSWORD, USER
from tests.support.server_process import clean_environment

pytestmark = pytest.mark.server

BASIC = {"PKGREPO_DEPLOY_USER": USER, "PKGREPO_DEPLOY_PASSWORD": PASSWORD}


@pytest.fixture
def folder(tmp_path):
    """An empty staging folder."""
    made = tmp_path / "staging"
    made.mkdir()
    return made


def fill(folder, members):
    for path, content in members.items():
        target = folder / path
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_bytes(content)


def run(folder, url, *options, **variables):
    return run_pkgrepo("deploy", folder, "--to", url, *options, environ=clean_environment(**variables))


def modules(name, count=3):
    found = {}
    for number in range(count):
        found |= artifact("com.command", f"{name}{number}", "1.0")
    return found


def test_a_folder_is_published_and_each_component_is_printed(repository, folder):
    where = repository("bundles")
    members = modules("printed")
    fill(folder, with_checksums(members))
    fill(
        folder, {"com/command/printed0/maven-metadata.xml": b"<metadata/>", "com/command/maven-metadata.xml.sha1": b"x"}
    )
    result = run(folder, where.url, "--name", "build 1", **BASIC)
    assert result.returncode == 0, result.stderr
    assert result.stdout.splitlines()[:-1] == [f"published com.command:printed{number}:1.0" for number in range(3)]
    assert result.stdout.splitlines()[-1].startswith("3 components with 6 files are published (deployment ")
    for path, content in members.items():
        assert where.get(f"/{path}").body == content
    again = run(folder, where.url, **BASIC)
    assert again.returncode == 0, again.stderr


def test_a_token_comes_from_the_environment_or_a_file(repository, folder, token_texts, tmp_path):
    where = repository("tokens")
    fill(folder, modules("token"))
    refused = run(folder, where.url, **BASIC)
    assert refused.returncode == 4
    assert "Use an auth token instead of a password" in refused.stderr
    assert run(folder, where.url, PKGREPO_DEPLOY_TOKEN=token_texts["all"]).returncode == 0
    file = tmp_path / "token"
    file.write_text(token_texts["all"] + "\n")
    assert run(folder, where.url, "--token-file", str(file)).returncode == 0


def test_what_is_wrong_is_printed_with_its_path(mvn, folder):
    members = modules("wrong")
    pom = next(path for path in members if path.endswith("wrong1-1.0.pom"))
    fill(folder, {**members, pom: make_pom("com.command", "other", "1.0")})
    result = run(folder, mvn.url, **BASIC)
    assert result.returncode == 2
    assert f"{pom}: the POM says that its artifactId is 'other', and the path says 'wrong1'" in result.stderr
    assert "nothing is published" in result.stderr
    assert {mvn.get(f"/{path}").status for path in members} == {404}


def test_a_conflict_has_its_own_exit_code(repository, folder):
    where = repository("fixed")
    members = modules("fixed")
    fill(folder, members)
    assert run(folder, where.url, **BASIC).returncode == 0
    fill(folder, {next(iter(members)): b"other"})
    result = run(folder, where.url, **BASIC)
    assert result.returncode == 5
    assert "already exists" in result.stderr


def test_files_of_no_artifact_and_links_are_left_out_and_named(mvn, folder):
    members = modules("left", 1)
    fill(folder, {**members, "README.md": b"x", "com/command/left0/1.0/_remote.repositories": b"x"})
    jar = folder / next(iter(members))
    (jar.parent / "left0-1.0-sources.jar").symlink_to(jar)
    result = run(folder, mvn.url, **BASIC)
    assert result.returncode == 0, result.stderr
    left = [line.rpartition(": ")[2] for line in result.stderr.splitlines() if line.startswith("left out")]
    assert left == [
        "README.md",
        "com/command/left0/1.0/_remote.repositories",
        "com/command/left0/1.0/left0-1.0-sources.jar",
    ]
    assert mvn.get("/com/command/left0/1.0/left0-1.0-sources.jar").status == 404


def test_a_held_deployment_is_published_by_a_second_request(mvn, folder):
    members = modules("held", 1)
    fill(folder, members)
    result = run(folder, mvn.url, "--hold", **BASIC)
    assert result.returncode == 0, result.stderr
    uid = result.stdout.split()[1]
    assert {mvn.get(f"/{path}").status for path in members} == {404}
    assert mvn.post(f"/deploy/{uid}/publish").status == 200
    assert {mvn.get(f"/{path}").status for path in members} == {200}


@pytest.mark.parametrize(
    ("variables", "code"),
    [
        ({}, 2),
        ({"PKGREPO_DEPLOY_USER": "admin"}, 2),
        ({"PKGREPO_DEPLOY_TOKEN": "hunter 22"}, 2),
        ({"PKGREPO_DEPLOY_TOKEN": "hunter22"}, 4),
        ({"PKGREPO_DEPLOY_USER": "admin", "PKGREPO_DEPLOY_PASSWORD": "hunter22"}, 4),
    ],
)
def test_missing_or_wrong_credentials_have_exit_codes_and_are_not_printed(mvn, folder, variables, code):
    fill(folder, modules("credentials", 1))
    result = run(folder, mvn.url, **variables)
    assert result.returncode == code, result.stderr
    assert "Traceback" not in result.stderr
    assert "hunter" not in result.stderr


def test_a_large_folder_with_wrong_credentials_is_refused_not_broken(mvn, folder):
    fill(folder, {f"com/command/large/1.0/large-1.0-{number}.jar": os.urandom(500_000) for number in range(30)})
    result = run(folder, mvn.url, PKGREPO_DEPLOY_TOKEN="wrong")
    assert result.returncode == 4, result.stderr
    assert "incorrect username or password" in result.stderr


def test_a_bundle_that_is_too_large_is_refused(mvn, folder):
    fill(folder, artifact("com.command", "toolarge", "1.0", jar=os.urandom(3 * 1024 * 1024)))
    result = run(folder, mvn.url, **BASIC)
    assert result.returncode == 2, result.stderr
    assert "larger" in result.stderr


@pytest.mark.parametrize(
    ("url", "code", "expected"),
    [
        ("ftp://x/repositories/main/mvn", 2, "no address of a repository"),
        ("nonsense", 2, "no address of a repository"),
        ("http://user:secret@127.0.0.1:1/repositories/main/mvn", 2, "credentials do not belong into --to"),
        ("http://127.0.0.1:70000/x", 2, "no address of a repository"),
    ],
)
def test_a_wrong_address_is_refused(folder, url, code, expected):
    fill(folder, modules("address", 1))
    result = run(folder, url, **BASIC)
    assert (result.returncode, expected in result.stderr) == (code, True)
    assert "secret" not in result.stderr


def test_an_unknown_repository_and_an_empty_folder_are_not_found(mvn, folder):
    empty = run(folder, mvn.url, **BASIC)
    assert (empty.returncode, "there are no artifacts in" in empty.stderr) == (3, True)
    fill(folder, modules("unknown", 1))
    assert run(folder, mvn.url.replace("/mvn", "/nowhere"), **BASIC).returncode == 3


def test_commands_at_the_same_time_publish_each_version_once(repository, tmp_path):
    where = repository("fixed")
    results = []

    def start(number):
        folder = tmp_path / f"{number}"
        fill(folder, {path: b"%d" % number if path.endswith(".jar") else content for path, content in members.items()})
        results.append(run(folder, where.url, **BASIC))

    members = modules("together", 2)
    threads = [threading.Thread(target=start, args=(number,)) for number in range(3)]
    for each in threads:
        each.start()
    for each in threads:
        each.join()
    assert sorted(result.returncode for result in results) == [0, 5, 5]
    assert len({where.get(f"/{path}").body for path in members if path.endswith(".jar")}) == 1
