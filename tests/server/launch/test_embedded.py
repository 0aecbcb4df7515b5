"""The server as a service inside another Twisted program."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
import requests
from twisted.application.service import MultiService
from twisted.internet.defer import maybeDeferred
from twisted.internet.threads import deferToThread

from tests.support.inprocess_server import assert_reactor_rests, no_failures, watched
from tests.support.server_process import ROOT
from tests.support.timeouts import TIMEOUT_S

pytestmark = pytest.mark.server


def readme_example(folder: Path) -> MultiService:
    """Make the service of the documentation's example, with another folder and a free port."""
    (code,) = re.findall(r"```python\n(.+?)```", (ROOT / "pkgrepo" / "docs" / "install.md").read_text(), re.DOTALL)
    assert "/srv/packages" in code
    assert '"tcp:8081"' in code
    names: dict[str, object] = {}
    exec(code.replace("/srv/packages", str(folder)).replace('"tcp:8081"', '"tcp:0:interface=127.0.0.1"'), names)
    daemon = names["daemon"]
    assert isinstance(daemon, MultiService)
    return daemon


async def test_the_example_of_the_readme_serves_and_stops_cleanly(tmp_path):
    before = watched()
    with no_failures():
        daemon = readme_example(tmp_path)
        ready = daemon.getServiceNamed("pkgrepo").when_ready()
        daemon.startService()
        (url,) = await ready
        answer = await deferToThread(requests.get, url, timeout=TIMEOUT_S)
        assert answer.headers["Server"].startswith("pkgrepo/")
        await maybeDeferred(daemon.stopService)
        await assert_reactor_rests(before)


async def test_two_servers_live_in_one_process(make_server, tmp_path):
    first = await make_server()
    second = await make_server(data__dir=str(tmp_path / "second"))
    assert first.url != second.url
    for each in (first, second):
        answer = await deferToThread(requests.get, each.url + "/", timeout=TIMEOUT_S)
        assert answer.headers["Server"].startswith("pkgrepo/")


async def test_a_server_that_was_never_started_stops(tmp_path):
    daemon = readme_example(tmp_path)
    await maybeDeferred(daemon.stopService)
