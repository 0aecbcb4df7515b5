"""Repositories that the settings declare are created at the start."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from pkgrepo.client.apply.definitions import Definition
from pkgrepo.config.sections.bootstrap import BootstrapRepository
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
RULE = {"name": "old", "match": {"versions": "1.*"}, "keep": {"last": 1}}
OWN = {"type": "Hosted", "retention": {"rules": [RULE]}}
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


async def test_what_is_declared_is_made_as_by_the_api(tmp_path: Path) -> None:
    more = {"visibility": "private", "description": "our own", "config": OWN}
    async with running_stacks(tmp_path) as make:
        stack = await make(bootstrap__repositories=[{"name": "ours", "format": "npm", **more}])
        await stack.ok("POST", "/repository", {"name": "same", "format": "npm", "storage": "main", **more})
        found = [await stack.ok("GET", f"/repository/main%2F{name}") for name in ("ours", "same")]
        for each in found:
            for field in ("id", "name", "repository_id", "repository_name", "path", "url", "created_at", "updated_at"):
                each.pop(field, None)
        assert found[0] == found[1]
        configs = [await stack.ok("GET", f"/repository/main%2F{name}/config") for name in ("ours", "same")]
        assert configs[0] == configs[1]


def test_what_the_settings_declare_may_stand_in_a_file_for_repo_apply() -> None:
    assert set(BootstrapRepository.__struct_fields__) <= set(Definition.__struct_fields__)


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
