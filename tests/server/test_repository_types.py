"""Proxy and virtual repositories of a running server: stored, read again after a restart, and restored."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import requests
from twisted.internet.threads import deferToThread

from pkgrepo.errors import UpstreamFailed
from pkgrepo.formats.python import format as python_format
from pkgrepo.proxy.configuration import proxy_config_of
from pkgrepo.proxy.definitions import authorization_of
from pkgrepo.proxy.schema import ProxyConfig, VirtualConfig
from pkgrepo.repositories.configuration import Configurations, HostedConfig
from tests.support.data_folder import DataFolder, pkgrepo
from tests.support.inprocess_server import RunningServer
from tests.support.timeouts import TIMEOUT_S

pytestmark = pytest.mark.server

ROUTE = {"url": "http://a.example", "name": "a", "priority": 5, "auth": {"username": "ci", "password": "hidden-word"}}
SHOWN = {**ROUTE, "auth": {"username": "ci", "password": "***"}}
VIRTUAL = {"type": "Virtual", "members": ["main/py", "main/mirror"], "publish_to": "main/py", "resolution": "first"}


@pytest.fixture(autouse=True)
def _all_types(monkeypatch: pytest.MonkeyPatch) -> None:
    every = Configurations("Python", HostedConfig | ProxyConfig | VirtualConfig)
    monkeypatch.setattr(python_format, "CONFIGURATIONS", every)


class Api:
    """The management API of a running server, called in a thread."""

    def __init__(self, server: RunningServer) -> None:
        self._server = server

    async def __call__(self, method: str, path: str, body: Any = None) -> requests.Response:
        return await deferToThread(
            requests.request,
            method,
            self._server.url + path,
            json=body,
            auth=self._server.admin,
            timeout=TIMEOUT_S,
        )


def authorization(server: RunningServer) -> str | None:
    core = server.service.assembly.core
    mirror = core.registry.find("main", "mirror")
    return authorization_of(proxy_config_of(mirror).routes[0], core.secrets)


@pytest.mark.folder("restores repositories from the readable layout")
async def test_types_survive_a_restart_and_a_lost_database(make_server: Any, tmp_path: Path) -> None:
    server = await make_server()
    api = Api(server)
    for name, config in (
        ("py", {"type": "Hosted"}),
        ("mirror", {"type": "Proxy", "proxy": {"routes": [ROUTE]}, "cache_ttl": "1h"}),
        ("all", VIRTUAL),
    ):
        body = {"name": name, "storage": "main", "format": "python", "visibility": "public", "config": config}
        made = await api("POST", "/api/repository", body)
        assert made.status_code == 201, made.text
    await server.stop()
    data = DataFolder(tmp_path / "data")
    for lost in (False, True):
        if lost:
            data.delete_catalog()
            done = await deferToThread(pkgrepo, data, "reindex")
            assert done.returncode == 0, done.stderr
        server = await make_server()
        api = Api(server)
        mirror = await api("GET", "/api/repository/main%2Fmirror/config")
        assert mirror.json() == {"type": "Proxy", "proxy": {"routes": [SHOWN]}, "cache_ttl": "1h"}
        assert (await api("GET", "/api/repository/main%2Fall/config")).json() == VIRTUAL
        assert authorization(server) == "Basic Y2k6aGlkZGVuLXdvcmQ="
        refused = await api("PUT", "/repositories/main/mirror/demo/1.0/demo-1.0.tar.gz")
        assert refused.status_code == 405
        assert refused.reason.startswith("repository main/mirror is a proxy")
        await server.stop()
    for file in tmp_path.rglob("*"):
        assert not file.is_file() or b"hidden-word" not in file.read_bytes(), file


@pytest.mark.folder("the access key of a bucket would be lost as well")
async def test_without_its_key_a_server_starts_and_takes_new_credentials(make_server: Any, tmp_path: Path) -> None:
    proxy = {"name": "mirror", "format": "python", "config": {"type": "Proxy", "proxy": {"routes": [ROUTE]}}}
    first = await make_server(bootstrap__repositories=[proxy])
    await first.stop()
    (tmp_path / "data" / "credentials.key").unlink()
    server = await make_server()
    with pytest.raises(UpstreamFailed, match="set them again"):
        authorization(server)
    reply = await Api(server)("PUT", "/api/repository/main%2Fmirror/config/proxy", {"routes": [ROUTE]})
    assert reply.status_code == 200
    await server.service.assembly.core.registry.refresh()
    assert authorization(server) == "Basic Y2k6aGlkZGVuLXdvcmQ="
