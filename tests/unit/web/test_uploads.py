"""Files that are sent in the form of the console, or of the API: published as clients publish them, or refused."""

from __future__ import annotations

from collections.abc import Mapping
from hashlib import sha256
from typing import Any

import pytest

from tests.support.browser import BASE, Browser, Page
from tests.support.conda_packages import make_conda
from tests.support.gems import make_gem
from tests.support.http_client import BOUNDARY, Field, form_body
from tests.support.images import make_image, make_oci_archive
from tests.support.maven_files import make_pom
from tests.support.memory_server import OTHER_PASSWORD
from tests.support.npm_packages import make_tarball
from tests.support.python_packages import make_wheel

TYPE = f"multipart/form-data; boundary={BOUNDARY}"
WHEEL = make_wheel("demo", "1.0")
FILES: Mapping[str, tuple[str, bytes, list[Field], str]] = {
    "python": (*WHEEL, [], "demo 1.0"),
    "npm": (
        "app-1.2.0.tgz",
        make_tarball("app", "1.2.0", files={"README.md": b"# App"}),
        [("tag", "next")],
        "app 1.2.0",
    ),
    "ruby": ("demo-1.0.gem", make_gem("demo", "1.0"), [], "demo 1.0"),
    "conda": ("demo-1.0-py_0.conda", make_conda("demo", "1.0"), [], "demo 1.0"),
    "maven": (
        "any.jar",
        b"PK\x05\x06" + bytes(18),
        [("pom", "", b""), ("group", "org.acme"), ("artifact", "lib"), ("version", "1.0")],
        "org.acme:lib 1.0",
    ),
    "docker": ("app.tar", make_oci_archive({"acme/app:1.0": make_image()}), [("image", "app"), ("tag", "")], "app 1.0"),
}


async def send(
    browser: Browser, path: str, filename: str, data: bytes, *fields: Field, csrf: str | None = None
) -> Page:
    """Send a file in the form of a repository, as browsers do: its fields in their order, the file last."""
    page = await browser.get(path)
    token = page.forms[path]["csrf"] if csrf is None else csrf
    body = form_body([("csrf", token), *fields, ("file", filename, data)])
    headers = {"Cookie": browser.cookie, "Origin": BASE, "Content-Type": TYPE}
    reply = await browser.stack.call("POST", path, who=None, headers=headers, raw=body)
    return browser._page(reply)


@pytest.mark.parametrize("format_", FILES)
async def test_a_file_is_published_as_clients_publish_it(browser: Browser, format_: str) -> None:
    filename, data, fields, shown = FILES[format_]
    stack = browser.stack
    await stack.add_repository("repo", format=format_)
    await browser.log_in()
    page = await send(browser, "/ui/repositories/main/repo/upload", filename, data, *fields)
    assert (page.status, f"{shown} is published." in page.text) == (201, True), page.text
    package, _, version = shown.rpartition(" ")
    found = await stack.ok("GET", f"/package/main%2Frepo/{package}/versions/{version}")
    assert found["publisher"] == "admin"
    [row] = await stack.audited(action="package.upload")
    assert row["object"] == f"main/repo/{package}@{version}"
    again = await send(browser, "/ui/repositories/main/repo/upload", filename, data, *fields)
    assert (again.status, "nothing has changed" in again.text) == (200, True), again.text


async def test_refusals_are_those_of_clients(browser: Browser) -> None:
    stack, path = browser.stack, "/ui/repositories/main/py/upload"
    await stack.add_repository("py")
    await browser.log_in()
    page = await send(browser, path, "demo.exe", b"MZ")
    assert (page.status, "neither a wheel (.whl) nor a source distribution" in page.text) == (422, True)
    page = await send(browser, path, WHEEL[0], WHEEL[1][:-30])
    assert page.status == 422
    page = await send(browser, path, *WHEEL)
    assert page.status == 201
    page = await send(browser, path, *make_wheel("demo", "1.0", summary="other"))
    assert (page.status, "demo-1.0-py3-none-any.whl" in page.text) == (409, True)
    page = await send(browser, path, *make_wheel("demo", "2.0"), csrf="0" * 64)
    assert page.status == 403
    late = form_body([("csrf", (await browser.get(path)).forms[path]["csrf"]), ("file", *WHEEL), ("file", *WHEEL)])
    headers = {"Cookie": browser.cookie, "Origin": BASE, "Content-Type": TYPE}
    for raw in (late, late[:-60], form_body([("csrf", "x")])):
        assert (await stack.call("POST", path, who=None, headers=headers, raw=raw)).status in (400, 403)
    assert (await stack.ok("GET", "/package/main%2Fpy/demo"))["versions"] == 1


async def test_the_form_is_for_those_who_may_publish(browser: Browser) -> None:
    stack, path = browser.stack, "/ui/repositories/main/py/upload"
    await stack.add_repository("py")
    await stack.add_repository(
        "mirror", config={"type": "Proxy", "proxy": {"routes": [{"name": "one", "url": "http://127.0.0.1:9/simple/"}]}}
    )
    await stack.add_user("ada")
    await browser.log_in("ada", OTHER_PASSWORD)
    assert path not in (await browser.get("/ui/repositories/main/py")).links
    assert (await browser.get(path)).status == 404
    form: list[Field] = [("csrf", (await browser.get("/ui/")).forms["/ui/logout"]["csrf"]), ("file", *WHEEL)]
    headers = {"Cookie": browser.cookie, "Origin": BASE, "Content-Type": TYPE}
    assert (await stack.call("POST", path, who=None, headers=headers, raw=form_body(form))).status == 404
    await stack.grant("ada", "main/py", "read", "write")
    assert path in (await browser.get("/ui/repositories/main/py")).links
    assert (await send(browser, path, *WHEEL)).status == 201
    await browser.log_in()
    assert (await browser.get("/ui/repositories/main/mirror/upload")).status == 404
    assert (await stack.ok("GET", "/repository/main%2Fmirror"))["takes_files"] is False


async def test_a_virtual_repository_passes_a_file_on(browser: Browser) -> None:
    stack = browser.stack
    await stack.add_repository("py")
    config = {"type": "Virtual", "members": ["main/py"], "publish_to": "main/py"}
    await stack.add_repository("all", config=config)
    await browser.log_in()
    assert (await send(browser, "/ui/repositories/main/all/upload", *WHEEL)).status == 201
    assert (await stack.ok("GET", "/package/main%2Fpy/demo"))["versions"] == 1


@pytest.mark.parametrize(
    ("fields", "status", "said"),
    [
        ([("pom", "any.pom", make_pom("org.acme", "lib", "2.0"))], 201, "org.acme:lib 2.0 is published"),
        ([("pom", "", b"")], 422, "the form needs the group and the artifact and the version"),
        ([("pom", "x.pom", make_pom("org.acme", "lib", "2.0")), ("version", "3.0")], 422, "the POM says"),
        ([("pom", "x.pom", b"<project>")], 422, "the POM"),
    ],
)
async def test_a_jar_has_a_pom(browser: Browser, fields: list[Field], status: int, said: str) -> None:
    stack = browser.stack
    await stack.add_repository("java", format="maven")
    await browser.log_in()
    page = await send(browser, "/ui/repositories/main/java/upload", "app.jar", b"PK\x05\x06" + bytes(18), *fields)
    assert (page.status, said.lower() in page.text.lower()) == (status, True), page.text
    assert (await stack.ok("GET", "/repository/main%2Fjava/packages"))["items"] == [] or status == 201
    page = await send(browser, "/ui/repositories/main/java/upload", "x.pom", make_pom("org.acme", "parent", "1"))
    assert (page.status, "org.acme:parent 1" in page.text) == (201, True), page.text  # no session was left open


async def test_the_api_takes_a_form(browser: Browser) -> None:
    stack: Any = browser.stack
    await stack.add_repository("py")
    form = form_body([("file", *WHEEL)])
    path = "/api/repository/main%2Fpy/upload"
    reply = await stack.call("POST", path, headers={"Content-Type": TYPE}, raw=form)
    digest = sha256(WHEEL[1]).hexdigest()
    at = {"path": f"packages/demo/1.0/{WHEEL[0]}", "sha256": digest}
    assert reply.json == {"package": "demo", "version": "1.0", "changed": True, "notes": [], **at}
    for said, status in (("0" * 64, 400), ("0", 422), (digest, 200)):
        form = form_body([("sha256", said), ("file", *WHEEL)])
        assert (await stack.call("POST", path, headers={"Content-Type": TYPE}, raw=form)).status == status
    assert (await stack.call("POST", path, who=None, headers={"Content-Type": TYPE}, raw=form)).status == 401
    assert (await stack.call("POST", path, raw=form)).status == 415
    large = form_body([(name, "x" * 3_000_000) for name in ("one", "two")] + [("file", *WHEEL)])
    assert (await stack.call("POST", path, headers={"Content-Type": TYPE}, raw=large)).status == 413
    described = await stack.ok("GET", "/repository/main%2Fpy/upload")
    assert described["names"].keys() == {".whl", ".tar.gz", ".zip"}


@pytest.mark.parametrize(
    ("format_", "given", "filename", "data", "status", "said"),
    [
        ("maven", "org/acme/app/1.0/", "app-1.0.jar", b"PK", 200, "org/acme/app/1.0/app-1.0.jar"),
        ("maven", "org/acme/app/1.0/app-1.0-x.zip", "y", b"PK", 200, "org/acme/app/1.0/app-1.0-x.zip"),
        ("maven", "x/y", "app-1.0.jar", b"PK", 422, "is no path of an artifact"),
        ("conda", "noarch/", "demo-1.0-py_0.conda", make_conda("demo", "1.0"), 200, "noarch/demo-1.0-py_0.conda"),
        ("conda", "linux-64", "demo-1.0-py_0.conda", make_conda("demo", "1.0"), 422, "is for noarch"),
        ("conda", "nowhere", "demo-1.0-py_0.conda", make_conda("demo", "1.0"), 422, "nowhere"),
    ],
)
async def test_a_form_says_where_a_file_belongs(
    browser: Browser, format_: str, given: str, filename: str, data: bytes, status: int, said: str
) -> None:
    stack: Any = browser.stack
    await stack.add_repository("repo", format=format_)
    form = form_body([("path", given), ("file", filename, data)])
    reply = await stack.call("POST", "/api/repository/main%2Frepo/upload", headers={"Content-Type": TYPE}, raw=form)
    assert reply.status == status, reply.json
    assert (reply.json["path"] == said) if status == 200 else (said in reply.json["detail"])


async def test_who_may_publish_some_packages_sends_these(browser: Browser) -> None:
    stack: Any = browser.stack
    await stack.add_repository("node", format="npm")
    scope = {"repository": "main/node", "actions": ["read", "write"], "packages": ["@team/*"]}
    made = await stack.ok("POST", "/user/token", {"name": "ci", "scopes": [], "repositories": [scope]})
    headers = {"Content-Type": TYPE, "Authorization": f"Bearer {made['token']}"}
    for name, status in (("@team/left", 200), ("left", 403)):
        form = form_body([("file", "any.tgz", make_tarball(name, "1.0.0"))])
        reply = await stack.call("POST", "/api/repository/main%2Fnode/upload", who=None, headers=headers, raw=form)
        assert reply.status == status, reply.json
