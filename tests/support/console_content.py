"""Content for the pages of the console, in tests in a browser and in screenshots."""

from __future__ import annotations

import json
import sqlite3
import time
from contextlib import closing
from pathlib import Path
from typing import Final
from urllib.parse import quote

from tests.support.container_clients import ok, push_image
from tests.support.http_client import HttpClient
from tests.support.images import Image, describe, make_artifact, make_image, make_index
from tests.support.npm_packages import make_bundle, make_manifest, make_publish, make_tarball
from tests.support.python_packages import make_wheel

HOSTILE: Final = "\"><img src=x onerror=hacked()><script>window.hacked = 1</script>'\u202eabc"
CONFIG: Final = """
[[bootstrap.repositories]]
name = "py"
storage = "main"
format = "python"
visibility = "public"
[auth.issuers.forge]
issuer = "https://forge.corp.example/a/long/address/of/a/forge/api/actions"
audience = "https://packages.example"
"""
README: Final = """# Pad

Fills a text with spaces, on **either** side.

```python
from pad import left

print(left("12", width=5))
```

| function | side |
| --- | --- |
| `left` | left |
| `right` | right |
"""
WHEEL: Final = "packages/demo/1.0/demo-1.0-py3-none-any.whl"
INSIDE: Final = "demo/<img src=x onerror=hacked()>\u202e\"'.txt"  # a file in it
PAGES: Final = (
    "/ui/",
    "/ui/search?q=demo",
    "/ui/search?q=a&license=MIT",
    "/ui/repositories/main/py",
    "/ui/repositories/main/py/upload",
    "/ui/repositories/main/py/tree/",
    "/ui/repositories/main/py/packages/demo",
    "/ui/repositories/main/py/packages/demo/versions",
    "/ui/repositories/main/py/packages/demo/downloads",
    "/ui/repositories/main/py/packages/demo/dependents",
    "/ui/repositories/main/py/packages/demo/difference?before=1.0&after=1.1",
    "/ui/repositories/main/py/packages/demo/versions/1.0/files",
    f"/ui/repositories/main/py/contents/{WHEEL}",
    f"/ui/repositories/main/py/contents/{WHEEL}?folder=demo",
    f"/ui/repositories/main/py/contents/{WHEEL}?entry={quote(INSIDE)}",
    "/ui/repositories/main/js/packages/app",
    "/ui/repositories/main/images/packages/app/versions/v1",
    "/ui/repositories/main/images/packages/app/versions",
    "/ui/repositories/main/images/packages/app/versions/sbom/statements",
    "/ui/repositories/main/all/explain?package=demo",
    "/ui/repositories/main/py/stages",
    "/ui/repositories/main/py/trash",
    "/ui/waiting",
    "/ui/repositories/main/py/settings",
    "/ui/repositories/main/py/settings/figures",
    "/ui/repositories/main/mirror/settings",
    "/ui/projects",
    "/ui/projects/core",
    "/ui/account",
    "/ui/account/rights",
    "/ui/account/tokens",
    "/ui/device",
    "/ui/password-link",
    "/ui/admin",
    "/ui/admin/users",
    "/ui/admin/users/ada",
    "/ui/admin/users/ada/rights",
    "/ui/admin/grants",
    "/ui/admin/grants?user=ada&repository=main/py",
    "/ui/admin/jobs",
    "/ui/admin/statistics",
    "/ui/admin/health",
    "/ui/admin/audit",
    "/ui/admin/repositories/new",
    "/ui/admin/repositories/new?format=docker&type=Proxy",
    "/ui/repositories/main/all/settings",
    "/ui/repositories/main/java/settings",
    "/ui/docs",
    "/ui/docs?q=freeze",
    "/ui/docs/proxies",
    "/ui/docs/settings",
    "/ui/nowhere",
)


def fill(wire: HttpClient, *, hostile: bool) -> str:
    """
    Add what the pages in ``PAGES`` show, by the admin's ``wire``; texts are ``hostile`` where people choose them.

    Returns the address of the page of a job.
    """
    text = HOSTILE if hostile else "Packages of the team"
    for name, format_, config in (
        ("js", "npm", {"type": "Hosted"}),
        ("mirror", "python", {"type": "Proxy", "proxy": {"routes": [{"url": "http://127.0.0.1:9/simple/"}]}}),
        ("all", "python", {"type": "Virtual", "members": ["main/py", "main/mirror"]}),
        ("images", "docker", {"type": "Hosted"}),
        ("java", "maven", {"type": "Hosted"}),
    ):
        body = {"name": name, "storage": "main", "format": format_, "visibility": "public", "config": config}
        ok(wire.post_json("/api/repository", {**body, "description": text}))
    for username in ("ada", "grace", "linus"):
        user = {"username": username, "password": "correct horse battery", "name": text}
        ok(wire.post_json("/api/users", user))
    grants = [{"repository": "main/py", "actions": ["read", "write"]}, {"repository": "main/js", "actions": []}]
    ok(wire.post_json("/api/users/ada/permissions", {"repositories": grants}, "PUT"))
    ok(wire.post_json("/api/project", {"key": "core", "name": text, "description": text, "visibility": "public"}))
    ok(wire.post_json("/api/project/core/members", {"user": "ada", "role": "maintainer"}))
    ok(wire.post_json("/api/project/core/bindings", {"repository": "main/py", "pattern": "demo-*"}))
    ok(wire.post_json("/api/user/token", {"name": text, "expires_in_days": 30}))
    for version in ("1.0", "1.1"):
        inside = {INSIDE if hostile else "demo/notes.txt": HOSTILE.encode()}
        filename, data = make_wheel("demo", version, fields=_fields(hostile=hostile), extra_files=inside)
        ok(wire.put(f"/repositories/main/py/demo/{version}/{filename}", data))
        for _ in range(3):
            wire.get(f"/repositories/main/py/demo/{version}/{filename}")
    _publish_npm(wire, text)
    _push_image(wire, text)
    _make_rules(wire, text)
    job = ok(wire.post_json("/api/repository/main%2Fpy/gc", {"dry_run": True}))
    return f"/ui/admin/jobs/{job.json['job_id']}"


def _publish_npm(wire: HttpClient, text: str) -> None:
    """A package with provenance and dependencies."""
    fields = {"description": text, "author": {"name": text}, "dependencies": {"left-pad": "^1.0.0"}}
    tarball = make_tarball("app", "1.0.0", manifest=make_manifest("app", "1.0.0", **fields))
    bundle = make_bundle("app", "1.0.0", tarball, predicateType=text)
    body = make_publish("app", "1.0.0", tarball=tarball, bundle=bundle, **fields)
    ok(wire.put("/repositories/main/js/app", body, Content_Type="application/json"))


def _make_rules(wire: HttpClient, text: str) -> None:
    """Rules that match nothing of the content, of the server and of a repository."""
    licences = {"name": text, "match": {"licences": ["AGPL-*", text], "packages": ["acme-*"]}}
    young = {"name": "young", "match": {"age_days": 7, "source": "cached"}, "exempt": ["acme-*"], "reason": text}
    rules = [licences | {"action": "quarantine", "until": "2099-01-01T00:00:00Z"}, young]
    old = {"name": text, "match": {"prerelease": True}, "keep": {"last": 3, "newer_than_days": 30, "pinned": False}}
    config = "/api/repository/main%2Fpy/config"
    ok(wire.post_json(f"{config}/policy", {"rules": rules}, "PATCH"))
    ok(wire.post_json("/api/policy/rules", {"rules": rules}, "PUT"))
    ok(wire.post_json(f"{config}/retention", {"rules": [old, {"name": "off", "enabled": False}]}, "PUT"))
    ok(wire.post_json("/api/system/retention", {"retention": {"rules": [old]}}, "PUT"))


def _push_image(wire: HttpClient, text: str) -> None:
    """An image for two platforms, with a history and labels, and an SBOM."""
    history = [{"created_by": text}, {"created_by": f"LABEL a={text}", "empty_layer": True}]
    settings = {"Labels": {text: text}, "Entrypoint": [text], "User": text}
    one, two = (make_image(text, architecture=each, settings=settings, history=history) for each in ("amd64", "arm64"))
    index = make_index([one, two])
    for image, reference in ((one, ""), (two, ""), (index, "v1"), (make_sbom(text), "sbom")):
        push_image(wire, "main/images/app", image, reference or image.digest)


def make_sbom(text: str) -> Image:
    """A manifest with a bill of materials, and with an attestation, which say something about ``text``."""
    components = [{"name": f"{text}-{at}", "version": f"1.{at}", "type": "library"} for at in range(120)]
    components[0]["licenses"] = [{"expression": text}]
    sbom = {"bomFormat": "CycloneDX", "specVersion": "1.6", "components": components}
    said = {"predicateType": text, "subject": [{"name": text}], "predicate": {text: [text]}}
    documents = [json.dumps(each).encode() for each in (sbom, said)]
    kind = "application/vnd.cyclonedx+json"
    made = make_artifact(make_image(text), kind, layers=[describe(each, kind) for each in documents])
    return Image(made.manifest, (*made.blobs, *documents))


def _fields(*, hostile: bool) -> list[tuple[str, str]]:
    if not hostile:
        fields = [("Summary", "Fills a text with spaces"), ("License-Expression", "MIT")]
        return [*fields, ("Description-Content-Type", "text/markdown"), ("Description", _indented(README))]
    fields = [(name, "<script>hacked()</script>") for name in ("Summary", "Author", "Keywords")]
    fields += [("Project-URL", "Homepage, javascript:hacked()"), ("Description-Content-Type", "text/markdown")]
    return [*fields, ("Description", _indented(HOSTILE_README))]


HOSTILE_README: Final = """<script>window.hacked = 1</script>
<img src="https://evil.invalid/x.png" onerror="window.hacked = 1">
<a href="javascript:window.hacked=1">link</a><style>* { display: none }</style><iframe src="https://evil.invalid/"></iframe>
[click](javascript:alert(1)) ![x](https://evil.invalid/y.png)
"""


def _indented(text: str) -> str:
    return text.replace("\n", "\n        ")


LONG: Final = "a-name-of-one-hundred-characters-" + "x" * 67
LONGEST: Final = {length: "the-longest-name-" + "x" * (length - 17) for length in (32, 64, 80)}
USER, PLACE, NAME = LONGEST.values()  # the longest of users, of repositories and groups; of others, one without limit
MANY: Final = 5000
RIGHT_TO_LEFT: Final = """# \u05e9\u05dc\u05d5\u05dd \u05e2\u05d5\u05dc\u05dd

\u0627\u0644\u0633\u0644\u0627\u0645 \u0639\u0644\u064a\u0643\u0645, `pip install rtl`
**\u05d8\u05e7\u05e1\u05d8**.

| \u05e9\u05dd | \u0627\u0633\u0645 |
| --- | --- |
| \u05d0 | \u0628 |
"""
WALKED: Final = (
    *PAGES,
    "/ui/search",
    "/ui/repositories/main/many",
    "/ui/repositories/main/many?sort=-downloads&q=package",
    "/ui/repositories/main/many/packages/package-00000/versions",
    "/ui/repositories/main/none",
    "/ui/repositories/main/none/tree/",
    "/ui/repositories/main/none/upload",
    "/ui/repositories/main/java/upload",
    "/ui/repositories/main/images/upload",
    "/ui/repositories/main/mirror/upstreams",
    "/ui/repositories/main/py/packages/rtl",
    f"/ui/repositories/main/js/packages/{LONG}",
    f"/ui/repositories/main/js/packages/{LONG}/versions",
    "/ui/repositories/main/js/packages/q",
    "/ui/admin/groups",
    "/ui/admin/tokens",
    "/ui/account/services",
    "/ui/repositories/main/js",
    f"/ui/repositories/main/{PLACE}",
    f"/ui/repositories/main/{PLACE}/packages/{NAME}",
    f"/ui/repositories/main/{PLACE}/packages/{NAME}/versions",
    f"/ui/repositories/main/{PLACE}/settings",
    f"/ui/search?q={NAME}",
    f"/ui/projects/{NAME}",
    f"/ui/admin/users/{USER}",
    f"/ui/admin/users/{USER}/rights",
    f"/ui/admin/groups/{PLACE}",
    "/ui/admin/repositories/new?format=python",
    "/ui/admin/stages",
    "/ui/admin/trash",
    "/ui/admin/quotas",
    "/ui/admin/hosts",
    "/ui/admin/policy",
    "/ui/admin/recall?repository=main/py&package=demo&version=1.0",
    "/ui/admin/retention",
    "/ui/admin/webhooks",
    "/ui/second-factor",
    "/ui/repositories/main/py/vulnerabilities",
    "/ui/repositories/main/js/past?at=2026-01-01",
    "/ui/repositories/main/py/settings/retention",
    "/ui/repositories/main/py/settings/publishers",
    "/ui/repositories/main/py/settings/import",
    "/ui/repositories/main/py/settings/rules",
    "/ui/repositories/main/py/settings/rules?rule=young",
    "/ui/repositories/main/py/settings/retention?example=unused",
    "/ui/repositories/main/py/packages/new/publishers",
    "/ui/api",
    "/ui/api/repositories",
    "/ui/api/users/post_users",
    "/ui/login",
)


def _fill_longest(wire: HttpClient) -> None:
    """Names, texts and versions without a place to cut them, wherever people choose them."""
    version = "1.0.0-" + "x" * 74
    fields = {"description": NAME, "keywords": [NAME], "dependencies": {NAME: version}}
    kind = {"Content-Type": "application/json"}
    ok(wire.ask("PUT", f"/repositories/main/{PLACE}/{NAME}", make_publish(NAME, version, **fields), kind))
    tag = f"/repositories/main/{PLACE}/-/package/{NAME}/dist-tags/{NAME}"
    ok(wire.ask("PUT", tag, json.dumps(version).encode(), kind))
    email = f"{'e' * 60}@{'d' * 60}.example"
    user = {"username": USER, "password": "correct horse battery", "name": NAME, "email": email}
    ok(wire.post_json("/api/users", user))
    ok(wire.post_json("/api/groups", {"name": PLACE}))
    ok(wire.post_json(f"/api/groups/{PLACE}/members", {"user": USER}))
    grants = {"repositories": [{"repository": f"main/{PLACE}", "actions": ["read", "write", "admin"]}]}
    for each in (f"users/{USER}", f"groups/{PLACE}"):
        ok(wire.post_json(f"/api/{each}/permissions", grants, "PUT"))
    ok(wire.post_json("/api/project", {"key": NAME, "name": NAME, "description": NAME, "visibility": "public"}))
    ok(wire.post_json(f"/api/project/{NAME}/members", {"user": USER, "role": "maintainer"}))
    ok(wire.post_json(f"/api/project/{NAME}/bindings", {"repository": f"main/{PLACE}", "pattern": NAME}))
    block = {"repository": f"main/{PLACE}", "package": NAME, "versions": version, "reason": NAME}
    ok(wire.post_json("/api/policy/blocks", block))
    ok(wire.post_json(f"/api/repository/main%2F{PLACE}/stages", {"description": NAME}))


def fill_more(wire: HttpClient, catalog: Path) -> None:
    """
    Add what the further pages in ``WALKED`` show: names of 1 and 100 characters, 0 and 5,000 rows, other scripts.

    Packages, versions and rows of the audit log are written to the SQLite file of the catalog.
    """
    for name, format_ in (("many", "python"), ("none", "npm"), (PLACE, "npm")):
        body = {"name": name, "storage": "main", "format": format_, "visibility": "public"}
        ok(wire.post_json("/api/repository", body))
    for name in ("q", LONG):
        body = make_publish(name, "1.0.0-" + "beta." * (12 if name == LONG else 1) + "1", description=name)
        ok(wire.put(f"/repositories/main/js/{name}", body, Content_Type="application/json"))
    ok(wire.post_json("/api/policy/blocks", {"repository": "main/js", "package": "q", "reason": HOSTILE}))
    _fill_longest(wire)
    fields = [("Description-Content-Type", "text/markdown"), ("Description", _indented(RIGHT_TO_LEFT))]
    filename, data = make_wheel("rtl", "1.0", fields=fields)
    ok(wire.put(f"/repositories/main/py/rtl/1.0/{filename}", data))
    for given in ({"source": f"acme/{LONG}", "file": "release.yml"}, {"claims": {"repository": "acme*"}}):
        ok(wire.post_json("/api/repository/main%2Fpy/publishers", {"issuer": "forge", **given}))
    with closing(sqlite3.connect(catalog, timeout=60)) as connection, connection:
        [(many,)] = connection.execute("SELECT id FROM repository WHERE name = 'many'").fetchall()
        now_ms = int(time.time() * 1000)
        connection.executemany(
            "INSERT INTO package (repository_id, key, name, serial, created_at, updated_at) VALUES (?, ?, ?, 1, ?, ?)",
            [(many, name, name, now_ms, now_ms) for name in (f"package-{at:05}" for at in range(MANY))],
        )
        [(package,)] = connection.execute("SELECT id FROM package WHERE key = 'package-00000'").fetchall()
        connection.executemany(
            "INSERT INTO version (package_id, key, text, sort, published_at) VALUES (?, ?, ?, ?, ?)",
            [(package, f"1.{at}", f"1.{at}", at.to_bytes(4), now_ms - at * 3_600_000) for at in range(MANY)],
        )
        connection.executemany(
            "INSERT INTO audit (at, actor, action, object, outcome) VALUES (?, 'ada', 'login', 'ada', 'ok')",
            [(now_ms - at,) for at in range(MANY)],
        )
