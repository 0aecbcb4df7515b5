"""The default storage is a bucket that the settings declare, as those of the chart with PostgreSQL do."""

from __future__ import annotations

from pathlib import Path

import pytest

from pkgrepo.storage.secret_box import SecretBox
from tests.support.data_folder import wait_for
from tests.support.first_publishes import Published, Publisher
from tests.support.postgresql import as_url
from tests.support.postgresql_catalogs import Databases
from tests.support.s3_servers import S3Server, s3_server
from tests.support.server_process import twistd_process

pytestmark = [pytest.mark.server, pytest.mark.sqlite("has data of its own"), pytest.mark.folder("has its own bucket")]

ADMIN = ("admin", "correct horse battery")


def declare(s3: S3Server, folder: Path, prefix: str) -> dict[str, str]:
    """Write the settings; returns the variables with the access key."""
    found = s3.settings(prefix)
    names = {"AWS_ACCESS_KEY_ID": "access_key_id", "AWS_SECRET_ACCESS_KEY": "secret_access_key"}
    environ = {name: found.pop(key) for name, key in names.items()}
    settings = ", ".join(f'{name} = "{value}"' for name, value in found.items())
    text = f'[[bootstrap.storages]]\nname = "main"\ntype = "S3"\nsettings = {{ {settings} }}\n'
    (folder / "pkgrepo.toml").write_text(text)
    return environ


def is_served(client: Publisher, package: Published) -> bool:
    try:
        client.check(package)
    except AssertionError:
        return False
    return True


def test_two_nodes_that_start_at_a_time_share_it_and_find_it_again(tmp_path: Path, databases: Databases) -> None:
    with s3_server(None, None) as s3, databases.another(empty=True) as url:
        folders = [tmp_path / "a", tmp_path / "b"]
        SecretBox.load(tmp_path / "credentials.key")
        servers = []
        try:
            for folder in folders:
                (folder / "data").mkdir(parents=True)
                (folder / "data" / "credentials.key").symlink_to(tmp_path / "credentials.key")
                environ = declare(s3, folder, "two") | {"PKGREPO_DATABASE__URL": as_url(url)}
                servers.append(twistd_process(folder, "--config", "pkgrepo.toml", environ=environ))
            first, second = (Publisher(each.wait_ready(), ADMIN) for each in servers)
            published = list(first.publish_all())
            for each in published:  # which the other node sees a moment later
                wait_for(lambda each=each: is_served(second, each), servers[1])
        finally:
            for each in servers:
                each.stop()
        again = twistd_process(folders[0], "--config", "pkgrepo.toml", environ=environ)
        try:
            client = Publisher(again.wait_ready(), ADMIN)
            for each in published:
                client.check(each)
            (storage,) = client.ask("GET", "api/storage").json()["items"]
            assert (storage["name"], storage["type"]) == ("main", "S3")
        finally:
            again.stop()
        assert not (folders[0] / "data" / "storages").exists()
