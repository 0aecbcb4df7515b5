"""People who log in at a real OpenID Connect provider."""

from __future__ import annotations

import re
import subprocess
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import urljoin

import pytest
import requests
from attrs import frozen

from tests.support.client_programs import CLIENTS, absent, program
from tests.support.configurations import hosted
from tests.support.issuer import CLIENT, SECRET
from tests.support.ports import reserve_port
from tests.support.python_index import PASSWORD
from tests.support.server_process import ServerProcess, running
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


def submit(browser: requests.Session, page: requests.Response, **typed: str) -> requests.Response:
    """Send the form of a page."""
    action = re.search(r'<form[^>]*action="([^"]+)"', page.text)
    assert action is not None, page.text
    hidden = dict(re.findall(r'<input type="hidden" name="([^"]+)" value="([^"]*)"', page.text))
    return browser.post(urljoin(page.url, action[1]), data={**hidden, **typed}, timeout=TIMEOUT_S)


@pytest.fixture(scope="module")
def scene(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Scene]:
    """The server and the provider."""
    if not (PROVIDER / ".installed").exists():
        absent("oidc-provider is not installed (bin/test installs it)")
    folder = tmp_path_factory.mktemp("identity")
    (folder / "secret").write_text(SECRET)
    port, _reserved = reserve_port()
    settings = (
        f'bootstrap.admin.password = "{PASSWORD}"\n[auth.oidc.real]\nissuer = "http://127.0.0.1:{port}"\n'
        f'client_id = "{CLIENT}"\nclient_secret_file = "{folder / "secret"}"\nadmin_groups = ["chiefs"]\n'
        'auto_create = true\nscopes = ["openid", "profile", "email", "groups", "offline_access"]\n'
    )
    with running(folder, settings + hosted("python", "py")) as server:
        command = [program("node"), SCRIPT, MODULE, str(port), CLIENT, SECRET, server.url]
        with subprocess.Popen(list(map(str, command)), stdout=subprocess.PIPE, text=True) as process:
            assert process.stdout is not None
            try:
                for line in process.stdout:
                    if line.strip() == "listening":
                        break
                yield Scene(server, f"http://127.0.0.1:{port}")
            finally:
                process.kill()


def test_people_log_in_with_a_code_and_become_who_the_claims_say(scene: Scene) -> None:
    assert scene.whoami(scene.log_in("ann")) == "ann"
    chief = scene.log_in("chief.bo")
    assert chief.get(f"{scene.server.url}/api/users/ann", timeout=TIMEOUT_S).json()["email"] == "ann@corp.example"


def test_a_logout_at_the_provider_ends_the_session_here(scene: Scene) -> None:
    browser = scene.log_in("cid")
    page = browser.get(f"{scene.issuer}/session/end", timeout=TIMEOUT_S)
    assert submit(browser, page, logout="yes").status_code == 200
    assert scene.whoami(browser) == ""
