"""A server that moves from the database in its data folder to PostgreSQL, and back."""

import pytest

from tests.support import server_databases
from tests.support.configurations import hosted
from tests.support.data_folder import DataFolder, pkgrepo
from tests.support.http_client import HttpClient
from tests.support.npm_packages import make_publish
from tests.support.postgresql import as_url
from tests.support.python_index import PASSWORD, USER
from tests.support.server_process import restarts

pytestmark = [
    pytest.mark.server,
    pytest.mark.skipif("config.getoption('--postgresql')", reason="it chooses its databases itself"),
]


def test_a_catalog_moves_to_postgresql_and_back(tmp_path, databases):
    settings = hosted("npm", "npm")
    data = DataFolder(tmp_path / "data")
    assert not server_databases.SERVER
    with databases.another(empty=True) as database, restarts(tmp_path, settings) as start:
        url = as_url(database)

        def client(server):
            return HttpClient(f"{server.url}/repositories/main/npm", (USER, PASSWORD))

        server = start()
        assert client(server).put("/demo", make_publish("demo", "1.0.0")).status == 201
        refused = pkgrepo(data, "migrate-catalog", url)
        assert (refused.returncode, refused.stderr) == (5, "pkgrepo: a server uses storage main: stop it first\n")
        server.stop()

        moved = pkgrepo(data, "migrate-catalog", url)
        assert moved.returncode == 0, moved.stderr
        assert moved.stdout.endswith(f"rows in all; set database.url to {url}\n")
        again = pkgrepo(data, "migrate-catalog", url)
        assert (again.returncode, "has tables already" in again.stderr) == (1, True)

        server = start(f'database.url = "{url}"\n{settings}')
        assert list(client(server).get("/demo").json["versions"]) == ["1.0.0"]
        assert client(server).put("/demo", make_publish("demo", "2.0.0")).status == 201
        server.stop()

        back = f"sqlite:///{tmp_path / 'back.db'}"
        returned = pkgrepo(data, "migrate-catalog", back, environ={"PKGREPO_DATABASE__URL": url})
        assert returned.returncode == 0, returned.stderr
        server = start(f'database.url = "{back}"\n{settings}')
        assert list(client(server).get("/demo").json["versions"]) == ["1.0.0", "2.0.0"]
        assert client(server).put("/demo", make_publish("demo", "3.0.0")).status == 201
        server.stop()


def test_a_catalog_is_not_copied_to_another_file(tmp_path):
    with restarts(tmp_path, hosted("npm", "npm")) as start:
        start().stop()
    refused = pkgrepo(DataFolder(tmp_path / "data"), "migrate-catalog", f"sqlite:///{tmp_path}/other.db")
    assert refused.returncode == 5
    assert "from a file to PostgreSQL, or from PostgreSQL to a file" in refused.stderr
    assert not (tmp_path / "other.db").exists()


def test_a_password_in_the_address_is_refused_and_not_repeated(tmp_path):
    refused = pkgrepo(DataFolder(tmp_path / "data"), "migrate-catalog", "postgresql://me:hunter2@127.0.0.1:1/x")
    assert refused.returncode == 2
    assert "database.password" in refused.stderr
    assert "hunter2" not in refused.stderr
