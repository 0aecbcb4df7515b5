"""Uploads of anaconda-client when the server is killed between their requests, or the disk is full."""

import os

import pytest

from tests.support.anaconda_uploads import AnacondaUpload
from tests.support.conda_packages import make_conda
from tests.support.configurations import hosted
from tests.support.data_folder import DataFolder, wait_for
from tests.support.full_disk import file_system, filled
from tests.support.http_client import BOUNDARY, HttpClient
from tests.support.python_index import PASSWORD, USER
from tests.support.server_process import restarts

pytestmark = pytest.mark.faults

PACKAGE = "/noarch/demo-1.0-py_0.conda"
SMALL = """
[[bootstrap.storages]]
name = "small"
path = "{path}"

[[bootstrap.repositories]]
name = "ch"
storage = "small"
format = "conda"
"""


def channel_of(server, storage="main"):
    return HttpClient(f"{server.url}/repositories/{storage}/ch", (USER, PASSWORD))


def test_a_file_that_has_arrived_is_committed_after_a_kill_and_its_ticket_stays_used(tmp_path):
    with restarts(tmp_path, hosted("conda", "ch")) as start:
        server = start()
        upload = AnacondaUpload(server.url, channel_of(server))
        waiting = AnacondaUpload(server.url, channel_of(server), "waiting")
        assert upload.post().status == 201
        server.kill()
        server = start()
        upload.where = waiting.where = channel = channel_of(server)
        upload.strangers = waiting.strangers = HttpClient(server.url)
        assert channel.get(PACKAGE).status == 404
        assert upload.commit().status == 200
        assert channel.get(PACKAGE).body == upload.data
        assert upload.post().status == 403
        assert [waiting.post().status, waiting.commit().status] == [201, 200]
        assert b"demo-1.0" in channel.get("/noarch/repodata.json").body


def test_a_kill_while_the_file_arrives_leaves_nothing_and_uses_the_ticket(tmp_path):
    with restarts(tmp_path, hosted("conda", "ch")) as start:
        server = start()
        upload = AnacondaUpload(server.url, channel_of(server), data=os.urandom(1 << 20))
        head = upload.strangers.head_lines(
            "POST", upload.path, Content_Type=f"multipart/form-data; boundary={BOUNDARY}", Content_Length="2000000"
        )
        ticket = upload.staged.json["form_data"]["ticket"]
        field = f'--{BOUNDARY}\r\nContent-Disposition: form-data; name="ticket"\r\n\r\n{ticket}\r\n'
        file = f'--{BOUNDARY}\r\nContent-Disposition: form-data; name="file"; filename="x"\r\n\r\n'
        with upload.strangers.connect() as connection:
            connection.sendall(head + field.encode() + file.encode() + upload.data)
            states = DataFolder(tmp_path / "data")
            wait_for(lambda: states.rows("SELECT state FROM deployment") == [("VALIDATING",)], server)
            server.kill()
        server = start()
        path = upload.path
        upload.where, upload.strangers = channel_of(server), HttpClient(server.url)
        assert upload.commit().status == 409
        assert channel_of(server).get(PACKAGE).status == 404
        form = [("ticket", ticket), ("file", "x", upload.data)]
        assert HttpClient(server.url).post_form(path, form).status == 403
        again = AnacondaUpload(server.url, channel_of(server))
        assert [again.post().status, again.commit().status] == [201, 200]


def test_a_full_disk_refuses_the_file_in_xml_and_leaves_nothing(tmp_path):
    with (
        file_system(tmp_path / "small", "16m") as small,
        restarts(tmp_path, SMALL.format(path=small / "store")) as start,
    ):
        server = start()
        channel = channel_of(server, "small")
        upload = AnacondaUpload(server.url, channel)
        refused = upload.post(os.urandom(20 << 20))
        assert (refused.status, "<Error><Code>storage_full</Code>" in refused.text) == (507, True)
        assert "no room left" in refused.reason
        assert upload.commit().status == 404
        second = AnacondaUpload(server.url, channel)
        with filled(small):
            assert second.post().status == 507
        third = AnacondaUpload(server.url, channel, data=make_conda("demo"))
        assert [third.post().status, third.commit().status] == [201, 200]
        assert list((small / "store" / "uploads").iterdir()) == []
