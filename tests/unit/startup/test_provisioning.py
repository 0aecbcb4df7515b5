"""Repositories that the settings declare are created at the start."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from pkgrepo.errors import Invalid
from pkgrepo.formats.python import format as python_format
from pkgrepo.proxy.configuration import proxy_config_of
from pkgrepo.proxy.definitions import authorization_of
from pkgrepo.proxy.schema import ProxyConfig, VirtualConfig
from pkgrepo.repositories.configuration import Configurations, HostedConfig
from tests.support.memory_server import Stack, running_stacks

MIRROR = {
    "name": "mirror",
    "format": "python",
    "config": {
        "type": "Proxy",
        "proxy": {"routes": [{"url": "http://a.example", "auth": {"token": "hidden-word"}}]},
    },
}
OURS = {"name": "ours", "format": "python"}
ALL = {
    "name": "all",
    "format": "python",
    "config": {"type": "Virtual", "members": ["main/Ours", "main/mirror"], "publish_to": "main/ours"},
}


@pytest.fixture(autouse=True)
def _all_types(monkeypatch: pytest.MonkeyPatch) -> None:
    every = Configurations("Python", HostedConfig | ProxyConfig | VirtualConfig)
    monkeypatch.setattr(python_format, "CONFIGURATIONS", every)


async def test_proxy_and_virtual_repositories_are_declared(tmp_path: Path) -> None:
    async with running_stacks(tmp_path) as make:
        stack = await make(bootstrap__repositories=[MIRROR, OURS, ALL])
        core = stack.assembly.core
        mirror = core.registry.find("main", "mirror")
        assert mirror is not None
        assert "hidden-word" not in str(mirror.config)
        assert authorization_of(proxy_config_of(mirror).routes[0], core.secrets) == "Bearer hidden-word"
        shown = await stack.ok("GET", "/repository/main%2Fall/config")
        assert shown == {
            "type": "Virtual",
            "members": ["main/ours", "main/mirror"],
            "publish_to": "main/ours",
            "resolution": "first",
        }


@pytest.mark.parametrize(
    ("declared", "sentence"),
    [
        ([ALL, OURS, MIRROR], "main/all: there is no repository 'main/Ours'; declare members before"),
        ([OURS, {**ALL, "config": {**ALL["config"], "members": ["main/ours"] * 2}}], "main/ours is listed twice"),  # type: ignore[dict-item]
    ],
)
async def test_a_wrong_member_prevents_the_start(tmp_path: Path, declared: list[Any], sentence: str) -> None:
    stack = Stack(tmp_path, bootstrap__repositories=declared)
    with pytest.raises(Invalid, match=sentence):
        await stack.start()
    await stack.stop()
