"""Example files for operators."""

from __future__ import annotations

import base64
import os
import subprocess
from pathlib import Path

import pytest
import yaml

import pkgrepo
from pkgrepo.config import read_config
from pkgrepo.storage.secret_box import KEY_BYTES, SecretBox

NODES = Path(pkgrepo.__file__).parent / "examples" / "nodes"


def test_the_settings_of_nodes_are_valid() -> None:
    config = read_config(NODES / "pkgrepo.toml", environ={})
    assert config.data.storages == Path("/srv/pkgrepo/storages")
    assert config.database_path is None


@pytest.mark.parametrize("times", [1, 2])
def test_the_containers_share_one_key(tmp_path: Path, times: int) -> None:
    services = yaml.safe_load((NODES / "compose.yaml").read_text())["services"]
    *shell, script = services["key"]["command"]
    script = script.replace("/node", f"{tmp_path}/node").replace("chown -R pkgrepo", "true")
    for number in (1, 2):
        (tmp_path / f"node{number}").mkdir()
    for _ in range(times):
        subprocess.run([*shell, script], check=True, env={"PATH": os.environ["PATH"]})
    keys = [tmp_path / f"node{number}" / "credentials.key" for number in (1, 2)]
    assert keys[0].read_bytes() == keys[1].read_bytes()
    assert len(base64.urlsafe_b64decode(keys[0].read_bytes())) == KEY_BYTES
    sealed = SecretBox.load(keys[0]).seal("secret", "upstream")
    assert SecretBox.load(keys[1]).open(sealed, "upstream") == "secret"
