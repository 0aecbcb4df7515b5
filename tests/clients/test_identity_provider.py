"""People who log in at a real OpenID Connect provider, at the console, and by it with their clients."""

from __future__ import annotations

import re
import sqlite3
import subprocess
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, contextmanager
from pathlib import Path
from urllib.parse import urljoin

import pytest
import requests
from attrs import frozen

from pkgrepo.auth.login.sessions import csrf_of
from tests.support import server_databases
from tests.support.client_programs import CLIENTS, absent, program
from tests.support.command_line import PROGRAM, Program
from tests.support.configurations import hosted
from tests.support.issuer import CLIENT, SECRET
from tests.support.npm_clients import NodeBench, Registry
from tests.support.ports import reserve_port
from tests.support.python_index import PASSWORD
from tests.support.server_process import ServerProcess, restarts, running
from tests.support.terminals import Terminal
from tests.support.timeouts import TIMEOUT_S

PROVIDER = CLIENTS / "oidc-provider"
MODULE = PROVIDER / "node_modules" / "oidc-provider" / "lib" / "index.js"
SCRIPT = Path(__file__).with_name("identity_provider.mjs")


@frozen
class Scene:
    """A server and a provider at which its people log in."""

    server: ServerProcess
    issuer: str

    def log_in(self, name: str) -> requests.Session:
        """A browser that has logged in: it fills in the forms of the provider."""
        browser = requests.Session()
        page = browser.get(f"{self.server.url}/ui/login/oidc/real?next=/ui/account", timeout=TIMEOUT_S)
        for prompt in ("login", "consent"):
            assert f'value="{prompt}"' in page.text, page.text
            page = submit(browser, page, login=name, password="any")
        assert page.url.startswith(self.server.url), page.text
        assert page.status_code == 200, page.text
        return browser

    def whoami(self, browser: requests.Session) -> str:
        """The user of a browser."""
        name: str = browser.get(f"{self.server.url}/api/user/whoami", timeout=TIMEOUT_S).json()["username"]
        return name

    def make_token(self, browser: requests.Session) -> str:
        """An access token of the user of a browser."""
        headers = {"X-CSRF": csrf_of(browser.cookies["pkgrepo_session"].encode())}
        body = {"name": "a token", "scopes": ["api:read"]}
        made = browser.post(f"{self.server.url}/api/user/token", json=body, headers=headers, timeout=TIMEOUT_S)
        token: str = made.json()["token"]
        return token

    def tell_provider(self, what: str) -> None:
        """Let the provider do something."""
        assert requests.get(f"{self.issuer}/test/{what}", timeout=TIMEOUT_S).status_code == 200


def submit(browser: requests.Session, page: requests.Response, **typed: str) -> requests.Response:
    """Send the form of a page."""
    action = re.search(r'<form[^>]*action="([^"]+)"', page.text)
    assert action is not None, page.text
    hidden = dict(re.findall(r'<input type="hidden" name="([^"]+)" value="([^"]*)"', page.text))
    return browser.post(urljoin(page.url, action[1]), data={**hidden, **typed}, timeout=TIMEOUT_S)


@contextmanager
def provider(port: int, server: ServerProcess) -> Iterator[Scene]:
    """A server with a provider that knows it."""
    command = [program("node"), SCRIPT, MODULE, str(port), CLIENT, SECRET, server.url]
    with subprocess.Popen(list(map(str, command)), stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        try:
            assert any(line.strip() == "listening" for line in process.stdout)
            yield Scene(server, f"http://127.0.0.1:{port}")
        finally:
            process.kill()


def configuration(folder: Path, port: int) -> str:
    """The settings of a server whose people log in at a provider at this port."""
    if not (PROVIDER / ".installed").exists():
        absent("oidc-provider is not installed (bin/test installs it)")
    (folder / "secret").write_text(SECRET)
    settings = (
        f'bootstrap.admin.password = "{PASSWORD}"\n[auth.oidc.real]\nissuer = "http://127.0.0.1:{port}"\n'
        f'client_id = "{CLIENT}"\nclient_secret_file = "{folder / "secret"}"\nadmin_groups = ["chiefs"]\n'
        'auto_create = true\nscopes = ["openid", "profile", "email", "groups", "offline_access"]\n'
    )
    return settings + hosted("npm", npm="")


@pytest.fixture(scope="module")
def scene(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Scene]:
    """The server and the provider of most tests."""
    folder = tmp_path_factory.mktemp("identity")
    port, _reserved = reserve_port()
    with running(folder, configuration(folder, port)) as server, provider(port, server) as found:
        yield found


def test_people_log_in_with_a_code_and_become_who_the_claims_say(scene: Scene) -> None:
    assert scene.whoami(scene.log_in("ann")) == "ann"
    chief = scene.log_in("chief.bo")
    assert chief.get(f"{scene.server.url}/api/users/ann", timeout=TIMEOUT_S).json()["email"] == "ann@corp.example"


def test_a_logout_at_the_provider_ends_the_session_here(scene: Scene) -> None:
    browser = scene.log_in("cid")
    page = browser.get(f"{scene.issuer}/session/end", timeout=TIMEOUT_S)
    assert submit(browser, page, logout="yes").status_code == 200
    assert scene.whoami(browser) == ""


def test_keys_are_rotated_while_people_log_in(scene: Scene) -> None:
    names = [f"person{number}" for number in range(12)]
    with ThreadPoolExecutor(4) as pool:
        logins = [pool.submit(scene.log_in, name) for name in names]
        for login in logins[::3]:
            login.result()
            scene.tell_provider("rotate")
        assert [scene.whoami(each.result()) for each in logins] == names


def test_the_command_line_logs_in_at_the_provider(scene: Scene, tmp_path: Path) -> None:
    browser = scene.log_in("dee")
    person = Program(tmp_path, scene.server.url)
    command = [PROGRAM, "login", scene.server.url, "--no-browser"]
    process = subprocess.Popen(command, env=person.environ(), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    try:
        assert process.stderr is not None
        code = process.stderr.readline().split()[-1]
        page = browser.get(f"{scene.server.url}/ui/device?user_code={code}", timeout=TIMEOUT_S)
        fields = dict(re.findall(r'name="(csrf|user_code)" value="([^"]*)"', page.text))
        url = f"{scene.server.url}/ui/device"
        assert "Logged in" in browser.post(url, data={**fields, "approve": "1"}, timeout=TIMEOUT_S).text
        said, _ = process.communicate(timeout=TIMEOUT_S)
    finally:
        process.kill()
    assert said == f"logged in to {scene.server.url} as dee (profile default)\n"


@pytest.mark.parametrize("npm", ["npm-10", "npm-12"])
def test_npm_logs_in_at_the_provider(scene: Scene, tmp_path: Path, npm: str) -> None:
    browser = scene.log_in("eva")
    (tmp_path / "home").mkdir(exist_ok=True)
    bench = NodeBench(tmp_path, Registry(scene.server.url, "main/npm"), None)
    terminal = Terminal(bench, npm, "login", "--auth-type=web", "--browser=false")
    page = terminal.read_until(r"(http://\S+/-/v1/login\?session=\S+)")[1]
    shown = browser.get(page, timeout=TIMEOUT_S).text
    assert "Go on as eva" in shown
    csrf = re.search(r'name="csrf" value="([^"]+)"', shown)
    assert csrf is not None
    assert "Logged in" in browser.post(page, data={"csrf": csrf[1]}, timeout=TIMEOUT_S).text
    assert terminal.wait() == 0, terminal.output
    assert bench.run(npm, "whoami").strip() == "eva"


def test_a_person_whom_the_provider_has_removed_loses_everything_at_the_daily_check(tmp_path: Path) -> None:
    if server_databases.SERVER:
        pytest.skip("it changes a row of a SQLite catalog")
    port, _reserved = reserve_port()
    with restarts(tmp_path, configuration(tmp_path, port)) as start:
        server = start()
        with provider(port, server) as scene:
            tokens = {name: scene.make_token(scene.log_in(name)) for name in ("fay", "gil")}
            assert server.stop() in (0, -15)
            with closing(sqlite3.connect(tmp_path / "data" / "pkgrepo.db")) as catalog, catalog:
                catalog.execute("UPDATE linked_identity SET checked_at = 0")
            scene.tell_provider("remove?fay")
            url = f"{start().url}/api/user/me"  # the check is made at the start, too

            def status(name: str) -> int:
                headers = {"Authorization": f"Bearer {tokens[name]}"}
                return requests.get(url, headers=headers, timeout=TIMEOUT_S).status_code

            end = time.monotonic() + TIMEOUT_S
            while status("fay") != 401:
                assert time.monotonic() < end, "the person is still there"
                time.sleep(0.2)
            assert status("gil") == 200
