"""A server process for a module, as client programs have one, and upstreams in which incidents happen."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from tests.support.configurations import proxy
from tests.support.http_client import HttpClient
from tests.support.python_index import PASSWORD, USER
from tests.support.server_process import ServerProcess, running
from tests.support.sigstore import FakeSigstore
from tests.support.upstreams.incidents import IncidentUpstream

FORMATS = ("npm", "python", "ruby")
YOUNG = "young"  # the suggested rule that lets everything through after some days


@pytest.fixture(scope="module")
def upstreams() -> Iterator[dict[str, IncidentUpstream]]:
    """An upstream of each format."""
    sigstore = FakeSigstore()
    with ExitStack() as stack:
        yield {each: stack.enter_context(IncidentUpstream(each, sigstore)) for each in FORMATS}


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory, upstreams: dict[str, IncidentUpstream]) -> Iterator[ServerProcess]:
    """
    Two proxies of each format: ``suggested`` with the rules that are suggested, and ``later`` without that of the age.

    What the second one holds is held however old it is.
    """
    folder = tmp_path_factory.mktemp("server")
    root = Path(folder, "root.json")
    root.write_bytes(upstreams["npm"].sigstore.root_text)
    lines = ['proxy.allow_private = ["127.0.0.1"]', f'auth.trusted_root = "{root}"']
    for name, each in upstreams.items():
        lines += (proxy(name, f"{name}-{kind}", each.address) for kind in ("suggested", "later"))
    with running(folder, "\n".join(lines)) as process:
        api = HttpClient(f"{process.url}/api", (USER, PASSWORD))
        for name in upstreams:
            rules = api.get(f"/policy/suggested?format={name}").json["rules"]
            others = [each for each in rules if each["name"] != YOUNG]
            assert len(others) == len(rules) - 1
            for kind, some in (("suggested", rules), ("later", others)):
                place = f"/repository/main%2F{name}-{kind}/config/policy"
                answer = api.post_json(place, {"rules": some}, method="PATCH")
                assert answer.status == 200, answer.text
        yield process
