"""A server that is stopped while its readable layout is behind: the catalog can still be rebuilt."""

import pytest
import requests

from tests.support.configurations import config, hosted
from tests.support.data_folder import DataFolder, pkgrepo
from tests.support.images import digest_of, make_image
from tests.support.npm_packages import make_publish, make_tarball
from tests.support.python_index import PASSWORD, USER
from tests.support.python_packages import make_wheel
from tests.support.timeouts import TIMEOUT_S

pytestmark = pytest.mark.faults

REPOSITORIES = (
    hosted("python", py=config(conda="from_wheels = false")) + hosted("npm", "js") + hosted("docker", "images")
)
EACH = 40
COUNTS = "SELECT (SELECT COUNT(*) FROM version), (SELECT COUNT(*) FROM manifest), (SELECT COUNT(*) FROM tag)"


def sender(url):
    """Return a function that sends requests to a server as the admin."""
    session = requests.Session()
    session.auth = (USER, PASSWORD)

    def send(method, path, **options):
        reply = session.request(method, path if "://" in path else url + path, timeout=TIMEOUT_S, **options)
        assert reply.status_code in (200, 201, 202), reply.text
        return reply

    return send


def push_blobs(send, image):
    for blob in image.blobs:
        place = send("POST", "/v2/main/images/app/blobs/uploads/").headers["location"]
        send("PUT", place, params={"digest": digest_of(blob)}, data=blob)


def publish(url):
    """Publish Python and npm versions and image tags without a pause, so that the layout falls behind."""
    send = sender(url)
    image = make_image()
    push_blobs(send, image)
    for number in range(EACH):
        name, data = make_wheel(f"demo{number % 7}", f"1.{number}")
        send("PUT", f"/repositories/main/py/demo{number % 7}/1.{number}/{name}", data=data)
        package, version = f"pack{number % 7}", f"1.0.{number}"
        body = make_publish(package, version, tarball=make_tarball(package, version))
        send("PUT", f"/repositories/main/js/{package}", data=body)
        headers = {"Content-Type": image.media_type}
        send("PUT", f"/v2/main/images/app/manifests/t{number}", data=image.manifest, headers=headers)


def test_after_a_clean_stop_reindex_restores_everything(run, tmp_path):
    data = DataFolder(tmp_path / "data")
    server = run()
    publish(server.url)
    server.stop()
    assert data.is_in_step()
    before = data.rows(COUNTS)
    assert before[0][0] == 2 * EACH
    data.delete_catalog()
    done = pkgrepo(data, "reindex")
    assert done.returncode == 0, done.stderr
    assert data.rows(COUNTS) == before
    checked = pkgrepo(data, "verify")
    assert checked.returncode == 0, checked.stderr


def test_after_a_kill_reindex_reports_what_may_be_missing(run, tmp_path):
    data = DataFolder(tmp_path / "data")
    server = run()
    publish(server.url)
    server.kill()
    (versions,) = data.rows("SELECT COUNT(*) FROM version")[0]
    data.delete_catalog()
    done = pkgrepo(data, "reindex")
    assert done.returncode == 1
    assert "marked no clean stop: its last changes may be missing" in done.stderr
    (back,) = data.rows("SELECT COUNT(*) FROM version")[0]
    assert (back == versions) or ("belong to nothing that was taken in" in done.stderr)


def test_files_removed_by_an_offline_gc_are_not_restored_by_reindex(run, tmp_path):
    data = DataFolder(tmp_path / "data")
    server = run("retention.trash_days = 0\n" + REPOSITORIES)
    send = sender(server.url)
    for tag in ("kept", "gone"):
        image = make_image(tag)
        push_blobs(send, image)
        headers = {"Content-Type": image.media_type}
        send("PUT", f"/v2/main/images/app/manifests/{tag}", data=image.manifest, headers=headers)
    send("DELETE", "/v2/main/images/app/manifests/gone")
    server.stop()
    collected = pkgrepo(data, "gc", "--grace", "0", "--delete-untagged")
    assert (collected.returncode, "1 of 2 manifests" in collected.stdout) == (0, True), collected
    assert data.is_in_step()
    data.delete_catalog()
    done = pkgrepo(data, "reindex")
    assert (done.returncode, "1 images and 1 tags" in done.stdout) == (0, True), done
