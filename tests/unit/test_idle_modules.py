"""What a server has imported that hosts and proxies npm packages alone, after its first response."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from pkgrepo.formats.helm import facts as helm
from pkgrepo.formats.maven import facts as maven

SERVER = """
import sys
from pathlib import Path
from urllib.request import urlopen

from twisted.internet import reactor, threads

from pkgrepo.config import read_config
from pkgrepo.service import Server

config = read_config(Path(sys.argv[1]), environ={}, overrides={})
server = Server(config, reactor)


def ask(addresses):
    with urlopen(addresses[0] + sys.argv[2], timeout=60) as response:
        return response.status


def show(status):
    print("MODULES", status, *sorted(name for name, module in sys.modules.items() if module is not None))


def ended(result):
    if result is not None:
        print(result, file=sys.stderr)
    reactor.stop()


ready = server.when_ready().addCallback(lambda addresses: threads.deferToThread(ask, addresses)).addCallback(show)
ready.addBoth(ended)
reactor.addSystemEventTrigger("before", "shutdown", server.stopService)
reactor.callWhenRunning(server.privilegedStartService)
reactor.callWhenRunning(server.startService)
reactor.run()
"""
CONFIG = """
[data]
dir = "{folder}"
[server]
listen = ["tcp:0:interface=127.0.0.1"]
workers = 1
[bootstrap.admin]
password = "a fairly long secret"
[[bootstrap.repositories]]
name = "own"
format = "npm"
visibility = "public"
[[bootstrap.repositories]]
name = "proxy"
format = "npm"
config = {{ type = "Proxy", proxy = {{ routes = [{{ url = "http://127.0.0.1:9", name = "up" }}] }} }}
"""
OF_FACTS = {
    "facts",
    "limits",
    "names",
    "owners",
    "version_order",
    "versions",
}  # modules of a format that its facts need
# What only requests to the API or to the console, commands, or rare jobs need.
RARE = (
    "pkgrepo.commands",
    "pkgrepo.importing",
    "pkgrepo.management.api.openapi",
    "pkgrepo.management.app",
    "pkgrepo.management.packages",
    "pkgrepo.management.policy",
    "pkgrepo.management.repositories.routes",
    "pkgrepo.management.users",
    "pkgrepo.packaging",
    "pkgrepo.web",
    "botocore",
    "click",
    "docutils",
    "jinja2",
    "ldaptor",
    "markdown_it",
    "psycopg",
    "pygments",
    "yaml",
)


@pytest.fixture(scope="module")
def modules(tmp_path_factory: pytest.TempPathFactory) -> set[str]:
    """The names of the modules; the server has sent its first response."""
    folder = tmp_path_factory.mktemp("idle")
    (folder / "pkgrepo.toml").write_text(CONFIG.format(folder=folder / "data"))
    arguments = [sys.executable, "-c", SERVER, folder / "pkgrepo.toml", "repositories/main/own/-/ping"]
    done = subprocess.run(
        arguments, capture_output=True, text=True, timeout=120, check=False, cwd=Path(__file__).parents[2]
    )
    found = [line.split() for line in done.stdout.splitlines() if line.startswith("MODULES ")]
    assert found, done.stderr
    _, status, *names = found[0]
    assert status == "200", done.stderr
    return set(names)


def below(modules: set[str], *rooms: str) -> list[str]:
    """The modules that are one of these, or in one of them."""
    return sorted(each for each in modules if any(f"{each}.".startswith(f"{room}.") for room in rooms))


def test_formats_that_no_repository_has_are_not_imported(modules: set[str]) -> None:
    loaded = [each.split(".")[2:] for each in below(modules, "pkgrepo.formats") if each.count(".") > 2]
    assert ["npm", "routes"] in loaded
    assert [".".join(each) for each in loaded if each[0] != "npm" and each[1] not in OF_FACTS] == []
    assert {each[0] for each in loaded} >= {facts.__name__.split(".")[-2] for facts in (helm, maven)}


def test_what_few_servers_need_is_not_imported(modules: set[str]) -> None:
    assert below(modules, *RARE) == []
