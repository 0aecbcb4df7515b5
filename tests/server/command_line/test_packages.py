"""Files of every format go to a server and come back the same; packages are found, yanked, tagged and deleted."""

import json
import subprocess
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Event, Thread

import pytest

from tests.support.conda_packages import make_conda
from tests.support.gems import make_gem
from tests.support.images import describe, digest_of, make_image, make_index
from tests.support.maven_bundles import make_jar, make_pom
from tests.support.npm_packages import make_tarball
from tests.support.python_packages import make_wheel
from tests.support.timeouts import TIMEOUT_S

pytestmark = pytest.mark.server


def packages():
    """By repository: file name, content, name of the package, version, name of the file when it comes back."""
    pom = make_pom("com.team", "app", "1.0")
    wheel, data = make_wheel("sample", "1.0", pad=600_000)
    return {
        "py": (wheel, data, "sample", "1.0", wheel),
        "node": ("any.tgz", make_tarball("@team/left", "1.0.0", pad=600_001), "@team/left", "1.0.0", "left-1.0.0.tgz"),
        "java": (
            "app-1.0.jar",
            make_jar({"META-INF/maven/com.team/app/pom.xml": pom}),
            "com.team:app",
            "1.0",
            "app-1.0.jar",
        ),
        "gems": ("alpha-1.0.0.gem", make_gem("alpha", "1.0.0"), "alpha", "1.0.0", "alpha-1.0.0.gem"),
        "channel": ("demo-1.0-py_0.conda", make_conda("demo", "1.0"), "demo", "1.0", "demo-1.0-py_0.conda"),
    }


def recalled(admin, *named):
    """Who fetched something, as soon as the worker that has sent it has written that."""
    while not (found := admin.json("recall", *named))["items"]:
        pass
    return found


@pytest.mark.parametrize("repository", ["py", "node", "java", "gems", "channel"])
def test_a_file_goes_to_the_server_and_comes_back(admin, write, repository):
    filename, data, name, version, received = packages()[repository]
    path = write(filename, data)
    (sent,) = admin.json("upload", f"main/{repository}", path)
    assert sent["verified"] is True
    assert admin("upload", f"main/{repository}", path).startswith(f"published {sent['path']} (")  # nothing changes
    target = admin.folder / f"got-{repository}"
    arguments = ("download", f"main/{repository}", name, version, "--file", received, "--to", target)
    (got,) = admin.json(*arguments)
    assert (got["sha256"], got["verified"]) == (sent["sha256"], True)
    assert (target / received).read_bytes() == data
    assert admin.json(*arguments)[0]["sha256"] == sent["sha256"]
    (target / received).write_bytes(b"other")
    result = admin.run(*arguments)
    assert (result.returncode, result.stdout) == (5, "")
    assert "is there already; --force replaces it" in result.stderr
    by_path = admin.json("download", f"main/{repository}", "--path", sent["path"], "--to", target, "--force")
    assert by_path[0]["verified"] is True
    assert (target / received).read_bytes() == data
    assert sorted(each.name for each in target.iterdir()) == [received]
    assert name in admin("package", "list", f"main/{repository}")
    assert admin.json("package", "versions", f"main/{repository}", name)[0]["version"] == version
    assert received in admin("package", "show", f"main/{repository}", name, version)
    found = recalled(admin, f"main/{repository}", f"{name}=={version}")
    assert [each["user"] for each in found["items"]] == ["admin"]
    assert {each["digest"] for each in found["fetched"]} == {f"sha256:{sent['sha256']}"}
    assert admin.json("recall", f"sha256:{sent['sha256']}")["items"] == found["items"]
    assert admin("recall", f"main/{repository}", name, version, "--csv").splitlines()[1].startswith("admin,")
    shown = admin("recall", f"main/{repository}", name)
    assert shown.split()[:2] == ["USER", "TOKEN"]
    rules = write("rules.json", json.dumps([{"name": "all of it", "match": {"packages": [name]}}]).encode())
    tried = admin.json("rehearse", rules, "-r", f"main/{repository}")
    ((refused, (user,)),) = [(each["version"], each["users"]) for each in tried["refused"]]
    assert (refused, user.partition(" (token")[0]) == (version, "admin")
    assert "all of it" in admin("rehearse", rules)
    assert "nothing of this name is stored here" in admin.refused(1, "recall", f"main/{repository}", f"{name}@7")


def test_what_is_uploaded_to_a_stage_is_verified_there_and_named_in_one_argument(admin, write):
    filename, data = make_wheel("staged", "1.0")
    path = write(filename, data)
    stage = admin.json("stage", "open", "main/py")
    (sent,) = admin.json("upload", f"main/py+stage-{stage['id']}", path)
    assert sent["verified"] is True
    admin("stage", "approve", stage["id"])
    assert filename in admin("package", "show", "main/py", "staged==1.0")
    assert admin("package", "pin", "main/py", "staged==1.0") == "staged 1.0 is pinned\n"
    assert admin("package", "unpin", "main/py", "staged@1.0") == "staged 1.0 is not pinned any more\n"
    assert admin.json("download", "main/py", "staged==1.0", "--to", admin.folder / "staged")[0]["verified"] is True
    assert "deleted staged 1.0 with 2 files" in admin("package", "delete", "main/py", "staged==1.0", "--yes")


def test_an_image_goes_to_the_server_and_comes_back(admin):
    layout = admin.folder / "layout"
    blobs = layout / "blobs" / "sha256"
    blobs.mkdir(parents=True)
    index = make_index([make_image("a"), make_image("b", architecture="arm64")])
    for image in (make_image("a"), make_image("b", architecture="arm64"), index):
        for content in (image.manifest, *image.blobs):
            (blobs / digest_of(content).partition(":")[2]).write_bytes(content)
    (layout / "index.json").write_text(json.dumps({"schemaVersion": 2, "manifests": [index.descriptor]}))
    pushed = admin.json("upload", "main/images", layout, "--as", "team/app:1")
    assert pushed["digest"] == index.digest
    admin("package", "tag", "main/images", "team/app", "1", "stable")
    assert "images are not compared" in admin.refused(2, "package", "diff", "main/images", "team/app", "1", "stable")
    got = admin.json("download", "main/images", "team/app:stable", "--to", admin.folder)
    folder = admin.folder / "team_app"
    assert got["folder"] == str(folder)
    assert recalled(admin, "main/images", "team/app@stable")["items"][0]["user"] == "admin"
    assert {each.name: each.read_bytes() for each in (folder / "blobs" / "sha256").iterdir()} == {
        each.name: each.read_bytes() for each in blobs.iterdir()
    }
    assert (
        describe(index.manifest, index.media_type).items()
        <= json.loads((folder / "index.json").read_text())["manifests"][0].items()
    )
    archive = admin.folder / "image.tar"
    subprocess.run(["tar", "-C", folder, "-cf", archive, "."], check=True)
    assert index.digest in admin("upload", "main/images", archive, "--as", "other:1")
    assert "would delete other 1 " in admin("package", "delete", "main/images", "other:1", "--dry-run")
    admin("package", "untag", "main/images", "team/app", "stable")
    assert [each["version"] for each in admin.json("package", "versions", "main/images", "team/app")] == ["1"]
    (blobs / digest_of(index.blobs[0] if index.blobs else make_image("a").blobs[1])[7:]).write_bytes(b"damaged")
    broken = admin.run("upload", "main/images", layout, "--as", "broken:1")
    assert broken.returncode == 1
    assert "the file has changed while it was sent" in broken.stderr
    assert "is no image layout" in admin.refused(2, "upload", "main/images", layout / "index.json", "--as", "x:1")
    assert "--as NAME:TAG" in admin.refused(2, "upload", "main/images", layout)


def test_versions_are_yanked_tagged_and_deleted(admin, write):
    for version in ("1.0.0", "1.1.0"):
        admin("upload", "main/node", write("x.tgz", make_tarball("yanked", version)))
    compared = admin("package", "diff", "main/node", "yanked", "1.0.0", "1.1.0")
    assert "changed  package/package.json" in compared
    assert "are the same" in compared
    compared = admin("package", "diff", "main/node", "yanked", "1.0.0", "1.1.0", "--entry", "package/package.json")
    assert "1.1.0" in next(line for line in compared.splitlines()[2:] if line.startswith("+"))
    assert "does not exist" in admin.refused(3, "package", "diff", "main/node", "yanked", "1.0.0", "9.9.9")
    assert admin("package", "yank", "main/node", "yanked", "1.1.0", "--reason", "broken") == "yanked 1.1.0 is yanked\n"
    assert "yanked: broken" in admin("package", "versions", "main/node", "yanked")
    admin("package", "unyank", "main/node", "yanked", "1.1.0")
    assert admin.json("package", "show", "main/node", "yanked", "1.1.0")["state"] == "live"
    admin("package", "tag", "main/node", "yanked", "1.0.0", "old")
    assert admin.json("package", "show", "main/node", "yanked", "1.0.0")["tags"] == ["old"]
    history = admin.refused(2, "package", "history", "main/node", "yanked", "old")
    assert "only images have a history of tags" in history
    admin("package", "untag", "main/node", "yanked", "old")
    assert "the tag 'latest' cannot be removed" in admin.refused(2, "package", "untag", "main/node", "yanked", "latest")
    assert "have no tags" in admin.refused(2, "package", "tag", "main/py", "sample", "1.0", "x")
    assert "would delete yanked 1.0.0 with 1 file" in admin(
        "package", "delete", "main/node", "yanked", "1.0.0", "--dry-run"
    )
    assert "deleted yanked 1.0.0 with 1 file" in admin("package", "delete", "main/node", "yanked", "1.0.0", "--yes")
    assert "does not exist" in admin.refused(3, "package", "show", "main/node", "yanked", "1.0.0")
    admin("package", "delete", "main/node", "yanked", "--yes")
    assert "does not exist" in admin.refused(3, "package", "versions", "main/node", "yanked")


def test_packages_are_found_and_explained(admin, write):
    filename, data = make_wheel("needle", "1.0")
    admin("upload", "main/py", write(filename, data))
    rows = admin("search", "needl", "--format", "python").splitlines()
    assert rows[1].split()[:4] == ["needle", "main/py", "python", "1.0"]
    assert admin.json("search", "needle", "--limit", "1")["items"][0]["name"] == "needle"
    nothing = admin.run("search", "no-such-package-here")
    assert (nothing.returncode, nothing.stdout) == (0, "")
    for named in (["needle", "--version", "1.0"], ["needle", "1.0"], ["needle==1.0"]):
        assert "main/py serves version 1.0" in admin("explain", "main/py", *named)
    for asked in (
        ("main/py", "no-such"),
        ("main/py", "needle", "--version", "9.9"),
        ("main/py", "needle", "9.9"),
        ("main/py", "needle", "--version", "9.9", "--json"),
    ):
        missing = admin.run("explain", *asked)
        assert missing.returncode == 3, missing
        assert "9.9" in missing.stdout or "no-such" in missing.stdout
    hook = admin.json("webhook", "create", "away", "http://receiver.invalid/")
    tried = admin.run("webhook", "test", hook["id"])
    assert (tried.returncode, "did not take the event" in tried.stderr) == (1, True), tried
    admin("webhook", "delete", hook["id"], "--yes")
    before = admin.run("explain", "main/py@2026-01-01", "needle")
    assert before.returncode == 3
    assert "1 version of main/py was published after 2026-01-01 23:59:59 UTC" in before.stdout
    since = admin("snapshot", "main/py", "--at", "2026-01-01T12:00Z")
    assert any(line.split()[:3] == ["needle", "main/py", "1.0"] for line in since.splitlines()), since
    found = admin.json("snapshot", "main/py", "--at", "2026-01-01", "--limit", "1")
    assert (found["settled"], found["url"]) == (True, f"{admin.url}/repositories/main/py@2026-01-01/")
    assert "no date such as" in admin.refused(2, "snapshot", "main/py", "--at", "soon")
    snippets = admin("setup", "main/py", "--client", "pip")
    assert f"{admin.url}/repositories/main/py/simple/" in snippets
    assert "does not exist" in admin.refused(3, "setup", "main/py", "--client", "nonsense")
    stats = admin.json("stats", "main/py")
    assert stats["total_packages"] >= 1
    assert "packages" in admin("stats", "main/py")
    assert len(admin("stats", "--days", "3").splitlines()) == 4
    assert "are not rebuilt" in admin.refused(5, "repo", "rebuild", "main/py")


def test_files_that_cannot_be_published_are_refused(admin, write):
    junk = write("junk.bin", b"junk")
    assert "neither a wheel" in admin.refused(2, "upload", "main/py", junk)
    assert "is no npm package" in admin.refused(2, "upload", "main/node", junk)
    assert "does not say where it belongs" in admin.refused(2, "upload", "main/java", junk)
    assert admin.run("upload", "main/channel", junk).returncode == 2
    assert admin.run("upload", "main/gems", junk).returncode == 2
    assert "'main/none' does not exist" in admin.refused(3, "upload", "main/none", junk)
    assert admin.run("upload", "main/py", admin.folder / "none").returncode == 2
    assert "is no path of an artifact" in admin.refused(2, "upload", "main/java", junk, "--path", "x/y")
    jar = write("lib.jar", b"PK")
    admin("upload", "main/java", jar, "--path", "com/team/lib/2.0/lib-2.0.jar")
    assert admin.json("package", "versions", "main/java", "com.team:lib")[0]["version"] == "2.0"


def test_a_file_is_described_by_fields_of_the_form(admin, write):
    jar = write("any.jar", make_jar({"a": b""}))
    fields = [word for each in ("group=com.team", "artifact=named", "version=3.0") for word in ("--field", each)]
    (sent,) = admin.json("upload", "main/java", jar, *fields)
    assert sent["path"] == "com/team/named/3.0/named-3.0.jar"
    assert "--field takes NAME=TEXT" in admin.refused(2, "upload", "main/java", jar, "--field", "group")


def test_the_other_files_are_published_after_a_refusal(admin, write):
    files = [write(*make_wheel("several", version)) for version in ("1.0", "2.0", "3.0")]
    admin("upload", "main/py", files[0])
    other = write(*make_wheel("several", "1.0", summary="another one"))
    junk = write("several.bin", b"junk")
    result = admin.run("upload", "main/py", other, junk, *files[1:])
    assert [line.split()[:2] for line in result.stdout.splitlines()] == [
        ["published", f"packages/several/{version}/several-{version}-py3-none-any.whl"] for version in ("2.0", "3.0")
    ]
    assert f"pkgrepo: {other}: " in result.stderr
    assert f"pkgrepo: {junk}: " in result.stderr
    assert result.stderr.splitlines()[-1] == "pkgrepo: 2 of 4 files were published, 2 failed"
    assert result.returncode == 1  # a conflict, and a file that is none
    assert admin.run("upload", "main/py", other).returncode == 5
    as_json = admin.run("upload", "main/py", junk, files[2], "--json")
    failed, published = json.loads(as_json.stdout)
    assert (as_json.returncode, failed["file"], published["verified"]) == (2, str(junk), True)
    assert "neither a wheel" in failed["error"]


def test_no_file_is_tried_after_one_that_needed_a_login(stranger, command_server, write):
    files = [write(*make_wheel("untried", version)) for version in ("1.0", "2.0", "3.0")]
    result = stranger.run("upload", "main/py", *files, "--url", command_server.url)
    assert result.returncode == 4
    assert result.stderr.count("pkgrepo login") == 1
    assert result.stderr.splitlines()[-1] == "pkgrepo: 0 of 3 files were published, 1 failed, 2 were not tried"


def test_nothing_is_left_of_a_download_that_fails(admin):
    target = admin.folder / "failed"
    assert "does not exist" in admin.refused(3, "download", "main/py", "none", "--to", target)
    assert admin.run("download", "main/py", "--path", "packages/none/1.0/none.whl", "--to", target).returncode == 3
    assert admin.run("download", "main/py", "--path", "..", "--to", target).returncode == 2
    assert list(target.iterdir()) == []


class Stalling(BaseHTTPRequestHandler):
    """Sends the beginning of a file, and nothing more until the client has left."""

    def do_GET(self):
        self.send_response(200)
        self.send_header("Content-Length", "1000000")
        self.end_headers()
        self.wfile.write(b"x" * 1000)
        self.wfile.flush()
        self.server.begun.set()
        self.server.ended.wait(TIMEOUT_S)

    def log_message(self, *_):
        """Log nothing."""


def test_an_interrupted_download_leaves_nothing_and_has_its_own_exit_code(stranger):
    target = stranger.folder / "target"
    with ThreadingHTTPServer(("127.0.0.1", 0), Stalling) as server:
        server.begun, server.ended = Event(), Event()
        Thread(target=server.serve_forever, daemon=True).start()
        code, errors = stranger.interrupted(
            "download", "main/py", "--path", "a/b.whl", "--to", target, "--url", f"http://127.0.0.1:{server.server_port}",
            begun=lambda: server.begun.wait(TIMEOUT_S),
        )  # fmt: skip
        server.ended.set()
        server.shutdown()
    assert code == 130
    assert len(errors.splitlines()) <= 1
    assert list(target.iterdir()) == []


class Lying(BaseHTTPRequestHandler):
    """Says that a version has a file with one digest, and serves another one."""

    def do_GET(self):
        file = {"name": "../../evil", "path": "a/evil.whl", "digests": {"sha256": "0" * 64}}
        answers = {"versions": {"files": [file]}, "repository": {"format": "python"}}
        kind = "versions" if "versions" in self.path else "repository" if "/api/repository" in self.path else ""
        body = json.dumps(answers[kind]).encode() if kind else b"other bytes"
        self.send_response(200)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_):
        """Log nothing."""


def test_a_file_with_another_digest_is_not_kept(stranger):
    target = stranger.folder / "target"
    with ThreadingHTTPServer(("127.0.0.1", 0), Lying) as server:
        Thread(target=server.serve_forever, daemon=True).start()
        url = f"http://127.0.0.1:{server.server_port}"
        result = stranger.run("download", "main/py", "evil", "1", "--to", target, "--url", url)
        server.shutdown()
    assert (result.returncode, result.stdout) == (1, "")
    assert "0000000" in result.stderr.splitlines()[-1]
    assert list(target.iterdir()) == []
