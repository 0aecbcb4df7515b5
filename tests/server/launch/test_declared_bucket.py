"""The default storage is a bucket that the settings declare."""

from __future__ import annotations

import tomllib
from pathlib import Path

import pytest

from tests.support.first_publishes import Publisher
from tests.support.s3_servers import s3_server
from tests.support.server_process import twistd_process

pytestmark = [pytest.mark.server, pytest.mark.sqlite("has data of its own"), pytest.mark.folder("has its own bucket")]

ADMIN = ("admin", "correct horse battery")


def test_a_declared_bucket_is_made_and_used_again(tmp_path: Path) -> None:
    with s3_server(None, None) as s3:
        found = s3.settings("declared")
        environ = {
            "AWS_ACCESS_KEY_ID": found.pop("access_key_id"),
            "AWS_SECRET_ACCESS_KEY": found.pop("secret_access_key"),
        }
        settings = ", ".join(f'{name} = "{value}"' for name, value in found.items())
        text = f'[[bootstrap.storages]]\nname = "main"\ntype = "S3"\nsettings = {{ {settings} }}\n'
        assert tomllib.loads(text)
        (tmp_path / "pkgrepo.toml").write_text(text)
        published = []
        for _ in range(2):
            server = twistd_process(tmp_path, "--config", "pkgrepo.toml", environ=environ)
            try:
                client = Publisher(server.wait_ready(), ADMIN)
                published = published or list(client.publish_all())
                for each in published:
                    client.check(each)
                (storage,) = client.ask("GET", "api/storage").json()["items"]
                assert (storage["name"], storage["type"]) == ("main", "S3")
            finally:
                server.stop()
        assert not (tmp_path / "data" / "storages").exists()
