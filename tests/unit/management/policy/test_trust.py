"""Who published a version, of what is published here: the API, explanations, rules and rehearsals."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from typing import Any

import pytest
import pytest_twisted

from tests.support.fulcio import COMMIT, extensions_of
from tests.support.memory_server import Stack, running_stacks
from tests.support.npm_packages import make_publish, make_tarball
from tests.support.python_packages import make_sdist
from tests.support.sigstore import ISSUER, SLSA, FakeSigstore, npm_statement
from tests.support.upstreams.messages import Answer
from tests.support.upstreams.npm import NpmUpstream

FAKE = FakeSigstore()
FELL = {"name": "fell", "match": {"trust": "fell"}, "missing": "block"}
SOURCE = "https://forge.example/acme/widget"
VERSION = "/package/main%2Fjs/widget/versions/{}/attestations"


@pytest_twisted.async_yield_fixture
async def stack(tmp_path: Path) -> Any:
    root = tmp_path / "trusted_root.json"
    root.write_bytes(FAKE.root_text)
    async with running_stacks(tmp_path) as make:
        made = await make(auth__trusted_root=str(root), proxy__allow_private=["127.0.0.1"])
        await made.add_repository("js", format="npm")
        yield made


async def publish(stack: Stack, version: str, bundle: str = "", repository: str = "js") -> None:
    tarball = make_tarball("widget", version)
    if bundle == "good":
        made = FAKE.bundle(
            npm_statement("widget", version, tarball), extensions=extensions_of(ISSUER, _14="refs/tags/v1")
        )
        bundle = json.dumps(made)
    elif bundle == "forged":
        bundle = json.dumps(FakeSigstore().bundle(npm_statement("widget", version, tarball)))
    body = make_publish("widget", version, tarball=tarball, bundle=bundle or None)
    fields = {"Content-Type": "application/json"}
    reply = await stack.call("PUT", f"/repositories/main/{repository}/widget", raw=body, headers=fields)
    assert reply.status == 201, reply.body


async def set_rules(stack: Stack, *rules: Any, repository: str = "js") -> None:
    await stack.ok("PATCH", f"/repository/main%2F{repository}/config/policy", {"rules": list(rules)})


async def versions(stack: Stack, repository: str = "js") -> list[str]:
    return [*(await stack.call("GET", f"/repositories/main/{repository}/widget")).json["versions"]]


async def test_attestations_are_verified_and_name_the_pipeline(stack: Stack) -> None:
    for version, bundle in (("1.0.0", "good"), ("1.1.0", "forged"), ("1.2.0", "")):
        await publish(stack, version, bundle)
    (good,) = (await stack.ok("GET", VERSION.format("1.0.0")))["items"]
    assert good["verified"]
    assert (good["says"], good["why"]) == (SLSA, "")
    assert (good["issuer"], good["source"], good["ref"], good["commit"]) == (ISSUER, SOURCE, "refs/tags/v1", COMMIT)
    (forged,) = (await stack.ok("GET", VERSION.format("1.1.0")))["items"]
    assert (forged["verified"], forged["source"]) == (False, "")
    assert forged["why"] == "its entry is in a transparency log that is not trusted"
    assert (await stack.ok("GET", VERSION.format("1.2.0")))["items"] == []


async def test_a_rule_holds_what_is_published_here_with_less(stack: Stack) -> None:
    for version, bundle in (("1.0.0", "good"), ("1.1.0", "good"), ("1.2.0", "forged"), ("1.3.0", "")):
        await publish(stack, version, bundle)
    await set_rules(stack, FELL)
    assert await versions(stack) == ["1.0.0", "1.1.0"]
    for version, why in (
        ("1.2.0", "no provenance that is verified: its entry is in a transparency log that is not trusted"),
        ("1.3.0", "1.0.0 before it had provenance, and it has no provenance)"),
    ):
        reply = await stack.call("GET", f"/repositories/main/js/widget/-/widget-{version}.tgz")
        assert (reply.status, why in reply.body.decode()) == (403, True), reply.body
    assert (await stack.call("GET", "/repositories/main/js/widget/-/widget-1.1.0.tgz")).status == 200


async def test_an_explanation_says_who_published_a_version(stack: Stack) -> None:
    for version, bundle in (("1.0.0", "good"), ("1.1.0", "good"), ("1.2.0", "")):
        await publish(stack, version, bundle)
    path = "/explain?repository=main/js&package=widget&version="
    assert (await stack.ok("GET", f"{path}1.1.0"))["version"]["trust"] is None
    await set_rules(stack, FELL)
    await versions(stack)
    trust = (await stack.ok("GET", f"{path}1.1.0"))["version"]["trust"]
    assert (trust["claimed"], trust["rank"], trust["before"], trust["before_version"]) == (
        *("provenance", "provenance", "provenance"),
        "1.0.0",
    )
    assert (trust["issuer"], trust["source"], trust["ref"]) == (ISSUER, SOURCE, "refs/tags/v1")
    found = await stack.ok("GET", f"{path}1.2.0")
    assert found["outcome"] == "blocked"
    assert "(1.0.0 before it had provenance, and it has no provenance)" in found["sentence"]
    assert (found["version"]["trust"]["rank"], found["version"]["trust"]["before"]) == ("none", "provenance")


async def test_a_rehearsal_tells_what_would_be_held(stack: Stack) -> None:
    for version, bundle in (("1.0.0", "good"), ("1.1.0", "")):
        await publish(stack, version, bundle)
    found = await stack.ok("POST", "/policy/rehearse?wait=true", {"rules": [FELL], "repository": "main/js"})
    assert [(each["version"], each["missing"]) for each in found["stored"]] == [("1.1.0", "")]


async def test_a_rehearsal_compares_with_all_that_an_upstream_lists(stack: Stack) -> None:
    with NpmUpstream() as up:
        for number, version in enumerate(("0.9.0", "1.0.0", "1.1.0"), 1):
            claim = {"attestations": {"provenance": {"predicateType": SLSA}}} if version == "1.0.0" else None
            up.add("widget", version, published=f"2026-08-0{number}T00:00:00.000Z", dist=claim)
        config = {"type": "Proxy", "proxy": {"routes": [{"url": up.url, "name": "up"}]}}
        await stack.add_repository("mirror", format="npm", config=config)
        for version in ("0.9.0", "1.1.0"):
            reply = await stack.call("GET", f"/repositories/main/mirror/widget/-/widget-{version}.tgz")
            assert reply.status == 200
        await stack.assembly._proxies.settle()
        found = await stack.ok("POST", "/policy/rehearse?wait=true", {"rules": [FELL], "repository": "main/mirror"})
        assert [(each["version"], each["missing"]) for each in found["stored"]] == [("1.1.0", "")]
        assert [each["version"] for each in found["refused"]] == ["1.1.0"]


async def test_what_a_rule_has_found_of_an_upstream_is_shown(stack: Stack) -> None:
    with NpmUpstream() as up:
        claim = {"attestations": {"provenance": {"predicateType": SLSA}}}
        for number, version in enumerate(("1.0.0", "1.1.0"), 1):
            tarball = up.add("widget", version, published=f"2026-08-0{number}T00:00:00.000Z", dist=claim)
            body = json.dumps(FAKE.npm("widget", version, tarball)).encode()
            up.serve(f"/-/npm/v1/attestations/widget@{version}", Answer(body=body))
        config = {"type": "Proxy", "proxy": {"routes": [{"url": up.url, "name": "up"}]}, "policy": {"rules": [FELL]}}
        await stack.add_repository("mirror", format="npm", config=config)
        path = "/repositories/main/mirror/widget/-/widget-1.1.0.tgz"
        assert (await stack.call("GET", path)).status == 200
        await stack.assembly._proxies.settle()
        (found,) = (await stack.ok("GET", "/package/main%2Fmirror/widget/versions/1.1.0/attestations"))["items"]
        assert (found["verified"], found["source"], found["says"]) == (True, SOURCE, SLSA)
        assert found["about"] == "widget/-/widget-1.1.0.tgz"
        page = await stack.call("GET", "/ui/repositories/main/mirror/packages/widget/versions/1.1.0")
        assert f"source {SOURCE}" in page.body.decode()


async def test_what_was_promoted_is_known_by_its_digest(stack: Stack) -> None:
    await stack.add_repository("live", format="npm")
    for version in ("1.0.0", "1.1.0"):
        await publish(stack, version, "good")
        await stack.ok("POST", f"/package/main%2Fjs/widget/versions/{version}/promote", {"to": "main/live"})
    await set_rules(stack, FELL, repository="live")
    assert await versions(stack, "live") == ["1.0.0", "1.1.0"]
    items = (await stack.ok("GET", "/package/main%2Flive/widget/versions/1.1.0/attestations"))["items"]
    assert [(each["verified"], each["source"]) for each in items] == [(True, SOURCE)]


async def test_attestations_of_distributions_are_verified(stack: Stack) -> None:
    await stack.add_repository("py")
    for version in ("1.0", "1.1", "1.2"):
        filename, data = make_sdist("widget", version)
        fields = {":action": "file_upload", "name": "widget", "version": version, "filetype": "sdist"}
        if version != "1.2":
            fields["attestations"] = json.dumps([FAKE.attestation(filename, data)])
        body, kind = form(fields, filename, data)
        reply = await stack.call("POST", "/repositories/main/py/legacy/", raw=body, headers={"Content-Type": kind})
        assert reply.status == 200, reply.body
    (found,) = (await stack.ok("GET", "/package/main%2Fpy/widget/versions/1.1/attestations"))["items"]
    assert (found["verified"], found["source"]) == (True, SOURCE)
    await set_rules(stack, FELL, repository="py")
    page = await stack.call("GET", "/repositories/main/py/simple/widget/")
    assert [each in page.body.decode() for each in ("widget-1.0.t", "widget-1.1.t", "widget-1.2.t")] == [
        True,
        True,
        False,
    ]


def form(fields: dict[str, str], filename: str, data: bytes) -> tuple[bytes, str]:
    """A form with a file, and its media type."""
    fields = {
        **fields,
        "metadata_version": "2.1",
        "sha256_digest": hashlib.sha256(data).hexdigest(),
        "pyversion": "source",
    }
    parts = [f'--b\r\nContent-Disposition: form-data; name="{k}"\r\n\r\n{v}\r\n'.encode() for k, v in fields.items()]
    head = f'--b\r\nContent-Disposition: form-data; name="content"; filename="{filename}"\r\n\r\n'.encode()
    return b"".join([*parts, head, data, b"\r\n--b--\r\n"]), "multipart/form-data; boundary=b"


@pytest.mark.parametrize("text", ["", "{}", "no JSON"])
def test_a_trusted_root_that_cannot_be_read_is_told_by_check_config(tmp_path: Path, text: str) -> None:
    from pkgrepo.composition.core import Core
    from pkgrepo.startup.checks import start_problems
    from tests.support.inprocess_server import reactor, server_config

    root = tmp_path / "root.json"
    root.write_text(text)
    config = server_config(tmp_path, auth__trusted_root=str(root))
    assert [each for each in start_problems(Core(config, reactor), config) if each.startswith("auth.trusted_root: ")]
