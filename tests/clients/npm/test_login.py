"""Login, tokens, private repositories, search and audit with the clients' commands."""

from __future__ import annotations

import json
import re
from collections.abc import Callable

import pytest
import requests

from tests.support.npm_clients import ENDS, NPMS, PNPMS, NodeBench, Registry
from tests.support.python_index import PASSWORD, USER
from tests.support.terminals import Terminal
from tests.support.timeouts import TIMEOUT_S

pytestmark = [pytest.mark.clients, pytest.mark.timeout(600)]


@pytest.mark.shows("login")
@pytest.mark.parametrize("npm", ENDS)
def test_a_login_with_name_and_password(open_bench: Callable[..., NodeBench], npm: str) -> None:
    bench = open_bench(token=None)
    bench.run(npm, "whoami", status=1)
    terminal = Terminal(bench, npm, "login", "--auth-type=legacy")
    terminal.answer("(?i)username:", USER)
    terminal.answer("(?i)password:", PASSWORD)
    assert terminal.wait() == 0, terminal.output
    assert bench.run(npm, "whoami").strip() == USER
    bench.publish(npm, bench.package(f"logged-in-{npm}"))
    bench.run(npm, "logout")
    bench.run(npm, "whoami", status=1)


@pytest.mark.shows("login")
@pytest.mark.parametrize("client_name", [*ENDS, "pnpm-12"])
def test_a_login_through_a_browser(open_bench: Callable[..., NodeBench], client_name: str) -> None:
    bench = open_bench(token=None)
    options = ("--auth-type=web", "--browser=false") if client_name in NPMS else ()
    terminal = Terminal(bench, client_name, "login", *options)
    page = terminal.read_until(r"(http://\S+/-/v1/login\?session=\S+)")[1]
    assert requests.get(page, timeout=TIMEOUT_S).status_code == 200
    approved = requests.post(page, data={"username": USER, "password": PASSWORD}, timeout=TIMEOUT_S)
    assert approved.status_code == 200, approved.text
    assert terminal.wait() == 0, terminal.output
    assert bench.run(client_name, "whoami").strip() == USER
    bench.run(client_name, "logout")
    bench.run(client_name, "whoami", status=1)


@pytest.mark.parametrize("npm", ENDS)
def test_a_wrong_password_is_printed(open_bench: Callable[..., NodeBench], npm: str) -> None:
    terminal = Terminal(open_bench(token=None), npm, "login", "--auth-type=legacy")
    terminal.answer("(?i)username:", USER)
    terminal.answer("(?i)password:", "wrong")
    assert terminal.wait() == 1
    assert "incorrect username or password" in terminal.output.lower()


@pytest.mark.parametrize("npm", ENDS)
def test_tokens_are_listed_and_revoked(bench: NodeBench, registry: Registry, npm: str) -> None:
    spare = registry.token(readonly=True)
    answer = registry.ask("GET", "-/npm/v1/tokens", headers={"Authorization": f"Bearer {bench.token}"})
    key = answer.json()["objects"][-1]["key"]
    assert key[:6] in bench.run(npm, "token", "list")
    bench.run(npm, "token", "revoke", key)
    bench.log_in(spare)
    assert "E401" in bench.run(npm, "whoami", status=1)


@pytest.mark.parametrize("npm", ["npm-9", "npm-10"])
def test_a_token_is_created(bench: NodeBench, npm: str) -> None:
    terminal = Terminal(bench, npm, "token", "create", "--read-only", "--json")
    terminal.answer("(?i)password:", PASSWORD)
    assert terminal.wait() == 0, terminal.output
    made = re.search(r"pkgr_p_\w+", terminal.output)
    assert made is not None, terminal.output
    bench.log_in(made[0])
    assert bench.run(npm, "whoami").strip() == USER
    assert "E403" in bench.publish(npm, bench.package(f"read-only-{npm}"), status=1)


def test_a_token_for_one_package_is_created(bench: NodeBench) -> None:
    reach = ("--packages=for-token", "--packages-and-scopes-permission=read-write")
    made = json.loads(bench.run("npm-11", "token", "create", "--name=ci", f"--password={PASSWORD}", "--json", *reach))
    bench.log_in(made["token"])
    bench.publish("npm-11", bench.package("for-token"))
    assert "E403" in bench.publish("npm-11", bench.package("not-for-token"), status=1)


@pytest.mark.shows("private")
@pytest.mark.parametrize("client_name", [*NPMS, *PNPMS, "yarn-1", "yarn-4", "bun"])
def test_a_private_repository_requires_credentials(open_bench: Callable[..., NodeBench], client_name: str) -> None:
    owner = open_bench("private")
    name = f"private-{client_name}"
    owner.publish("npm-11", owner.package(name))
    reader = open_bench("private", token=owner.registry.token(readonly=True))
    project = reader.project("private")
    reader.install(client_name, project, name)
    assert reader.required(project, name) == f"{name}@1.0.0"
    nobody = open_bench("private", token=None)
    printed = nobody.install(client_name, nobody.project("nobody"), name, status=1)
    told = printed.lower()
    assert "401" in told or "unauth" in told or "authent" in told or "needs credentials" in told, printed


@pytest.mark.shows("search")
@pytest.mark.parametrize("npm", ENDS)
def test_search_finds_what_was_published(bench: NodeBench, npm: str) -> None:
    name = f"@findable/by-{npm}"
    bench.publish(npm, bench.package(name, keywords=["needle"]))
    found = json.loads(bench.run(npm, "search", "--json", f"by-{npm}"))
    assert [each["name"] for each in found] == [name]
    printed = bench.run(npm, "search", f"by-{npm}")
    assert name.split("/")[1] in printed
    assert "prehistoric" not in printed
    assert "undefined" not in printed


@pytest.mark.shows("audit")
@pytest.mark.parametrize("auditor", [*ENDS, *PNPMS, "yarn-4", "bun"])
def test_an_audit_prints_advisories(bench: NodeBench, auditor: str) -> None:
    if "biter" not in bench.registry.ask("GET", "-/all").json():
        bench.publish("npm-11", bench.package("biter", "1.0.0"))
        bench.publish("npm-11", bench.package("biter", "1.2.0"))
    project = bench.project(f"audit-{auditor}")
    command = ("npm", "audit") if auditor == "yarn-4" else ("audit",)
    bench.install(auditor, project, "biter@1.2.0")
    bench.run(auditor, *command, cwd=project)
    bench.install(auditor, project, "biter@1.0.0")
    assert "It bites" in bench.run(auditor, *command, cwd=project, status=1)
