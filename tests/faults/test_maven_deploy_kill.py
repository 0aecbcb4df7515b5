"""A server that is killed while it works on bundles goes on with them; of each all files are visible, or none."""

import random
import threading
from contextlib import suppress
from http.client import HTTPException

import pytest
import requests

from tests.support.configurations import hosted
from tests.support.data_folder import DataFolder, pkgrepo, wait_for
from tests.support.http_client import HttpClient
from tests.support.maven_bundles import make_pom, make_zip
from tests.support.python_index import PASSWORD, USER
from tests.support.timeouts import TIMEOUT_S

pytestmark = pytest.mark.faults

REPOSITORIES = hosted("maven", "mvn")
BASE = "/repositories/main/mvn"
ZIP = {"Content-Type": "application/zip", "Accept": "application/json"}
COMPONENTS = 30
PIECE = 64 * 1024
STATES = ("PENDING", "VALIDATING", "VALIDATED", "PUBLISHING", "PUBLISHED")


def build(rng, version, components=COMPONENTS):
    """The files of one build of many modules, some of them large."""
    found = {}
    for number in range(components):
        stem = f"com/example/m{number}/{version}/m{number}-{version}"
        found[f"{stem}.pom"] = make_pom("com.example", f"m{number}", version)
        found[f"{stem}.jar"] = rng.randbytes(rng.choice([100, 5000, 70_000, 300_000]))
    return found


def client_of(server):
    return HttpClient(f"{server.url}{BASE}", (USER, PASSWORD))


def visible(where, members):
    """Whether a build is visible; it fails if only a part of it is, or with other content."""
    found = {path: where.get(f"/{path}") for path in members}
    statuses = {reply.status for reply in found.values()}
    assert statuses in ({200}, {404})
    if statuses == {200}:
        assert {path: reply.body for path, reply in found.items()} == members
    return statuses == {200}


def rows(data):
    return dict(data.rows("SELECT uid, state FROM deployment"))


def kill_in(server, data, state):
    """Kill the server as soon as a deployment has this state or a later one."""
    wanted = STATES.index(state)
    while not any(each in STATES and STATES.index(each) >= wanted for each in rows(data).values()):
        pass
    server.kill()


def wait_for_end(where, server, uid, *ends):
    """The status of a deployment once it has ended, or has one of these states."""
    ends = ends or ("PUBLISHED", "FAILED")
    wait_for(lambda: where.get(f"/deploy/{uid}").json["state"] in ends, server)
    return where.get(f"/deploy/{uid}").json


def kill_after_files(server, data, count):
    """Kill the server as soon as a deployment has so many stored files besides its archive."""
    while data.rows("SELECT COUNT(*) FROM deployment_file WHERE path <> ''")[0][0] < count:
        pass
    server.kill()


def stored(data):
    """The digests of the stored files, and their generations."""
    return {row[0] for row in data.rows("SELECT locator FROM blob")}


def pieces_until_kill(bundle, cut, server):
    """Yield a bundle in pieces, and kill the server after some of them."""
    for number, at in enumerate(range(0, len(bundle), PIECE)):
        yield bundle[at : at + PIECE]
        if number == cut:
            server.kill()


@pytest.mark.parametrize("state", STATES)
def test_a_kill_in_any_state_leaves_a_bundle_whole_or_absent(run, tmp_path, state):
    data = DataFolder(tmp_path / "data")
    seed = random.randrange(2**32)
    members = build(random.Random(seed), "1.0")
    server = run()
    where = client_of(server)
    bundle = make_zip(members)

    def send():
        with suppress(OSError, HTTPException):
            where.ask("POST", "/deploy?wait=true", bundle, ZIP)

    sending = threading.Thread(target=send)
    sending.start()
    kill_in(server, data, state)
    sending.join()
    [uid] = rows(data)

    server = run()
    where = client_of(server)
    status = wait_for_end(where, server, uid)
    assert visible(where, members) == (status["state"] == "PUBLISHED"), (seed, status)
    if status["state"] == "FAILED":
        assert state == "PENDING", (seed, status)  # later its archive is durable
        assert "the server was stopped" in status["errors"][""][0]
    else:
        assert status["component_count"] == COMPONENTS
    assert data.rows("SELECT COUNT(*) FROM deployment_file") == [(0,)]
    again = where.ask("POST", "/deploy?wait=true", bundle, ZIP)
    assert (again.status, again.json["state"]) == (201, "PUBLISHED")
    assert visible(where, members)
    assert data.damaged() == []
    wait_for(data.is_in_step, server)
    server.stop()
    checked = pkgrepo(data, "verify")
    assert (checked.returncode, checked.stderr.count("differs")) == (0, 0), (seed, checked.stderr)


def test_a_validated_deployment_survives_a_kill_and_is_published_later(run, tmp_path):
    data = DataFolder(tmp_path / "data")
    members = build(random.Random(1), "1.0")
    server = run()
    where = client_of(server)
    reply = where.ask("POST", "/deploy?wait=true&publishing_type=USER_MANAGED", make_zip(members), ZIP)
    uid = reply.json["deployment_id"]
    assert reply.json["state"] == "VALIDATED"
    server.kill()
    server = run()
    where = client_of(server)
    assert where.get(f"/deploy/{uid}").json["state"] == "VALIDATED"
    pkgrepo(data, "gc")  # may not take files that wait
    assert not visible(where, members)
    assert where.post(f"/deploy/{uid}/publish").status == 200
    assert visible(where, members)
    assert data.damaged() == []


def test_files_that_were_stored_before_a_kill_are_not_stored_again(run, data):
    seed = random.randrange(2**32)
    members = build(random.Random(seed), "1.0", 200)  # 400 files, in groups of 100
    server = run()
    uid = client_of(server).ask("POST", "/deploy", make_zip(members), ZIP).json["deployment_id"]
    before = set()
    for count in (1, 101, 201):
        kill_after_files(server, data, count)
        assert stored(data) >= before, seed
        before = stored(data)
        assert data.rows("SELECT state FROM deployment") == [("VALIDATING",)], seed
        server = run()
    where = client_of(server)
    assert wait_for_end(where, server, uid)["state"] == "PUBLISHED", seed
    assert visible(where, members)
    archive = {each for each in before if each not in stored(data)}
    assert len(archive) == 1, seed
    assert data.damaged() == [], seed
    wait_for(data.is_in_step, server)
    server.stop()
    assert pkgrepo(data, "verify").returncode == 0


def test_what_its_user_publishes_is_validated_after_a_kill_and_waits(run, data):
    members = build(random.Random(2), "1.0")
    server = run()
    reply = client_of(server).ask("POST", "/deploy?publishing_type=USER_MANAGED", make_zip(members), ZIP)
    uid = reply.json["deployment_id"]
    server.kill()
    server = run()
    where = client_of(server)
    assert wait_for_end(where, server, uid, "VALIDATED", "FAILED")["state"] == "VALIDATED"
    assert not visible(where, members)
    assert where.post(f"/deploy/{uid}/publish").status == 200
    assert visible(where, members)


def test_a_wrong_checksum_of_a_file_that_was_stored_before_a_kill_is_found(run, data):
    members = build(random.Random(3), "1.0", 200)
    first = min(path for path in members if path.endswith(".jar"))
    server = run()
    bundle = make_zip({**members, f"{first}.sha1": b"0" * 40})
    uid = client_of(server).ask("POST", "/deploy", bundle, ZIP).json["deployment_id"]
    kill_after_files(server, data, 101)
    server = run()
    where = client_of(server)
    status = wait_for_end(where, server, uid)
    assert (status["state"], list(status["errors"])) == ("FAILED", [first])
    assert not visible(where, members)
    assert data.rows("SELECT COUNT(*) FROM deployment_file") == [(0,)]
    wait_for(lambda: data.copies() == {}, server)  # nobody saw them


def test_credentials_that_are_withdrawn_while_the_server_is_down_publish_nothing(run, data):
    members = build(random.Random(4), "1.0", 200)
    server = run()
    api = HttpClient(f"{server.url}/api", (USER, PASSWORD))
    assert api.post_json("/users", {"username": "ann", "password": PASSWORD}).status == 201
    grant = {"repositories": [{"repository": "main/mvn", "actions": ["read", "write"]}]}
    assert api.post_json("/users/ann/permissions", grant, "PUT").status == 200
    where = client_of(server).as_user("ann", PASSWORD)
    uid = where.ask("POST", "/deploy", make_zip(members), ZIP).json["deployment_id"]
    kill_after_files(server, data, 1)
    data.change("UPDATE account SET active = 0 WHERE username = 'ann'")
    server = run()
    where = client_of(server)
    status = wait_for_end(where, server, uid)
    assert (status["state"], status["status"], list(status["errors"])) == ("FAILED", 403, [""])
    assert "credentials" in status["errors"][""][0]
    assert not visible(where, members)


def test_a_stop_leaves_a_bundle_to_the_next_start(run, data):
    members = build(random.Random(5), "1.0", 200)
    server = run()
    uid = client_of(server).ask("POST", "/deploy", make_zip(members), ZIP).json["deployment_id"]
    server.stop()
    assert data.rows("SELECT state, lease_until FROM deployment")[0] in (("VALIDATING", 0), ("PUBLISHED", None))
    server = run()
    where = client_of(server)
    assert wait_for_end(where, server, uid)["state"] == "PUBLISHED"
    assert visible(where, members)


def test_kills_at_random_moments_never_leave_a_part(run, tmp_path):
    data = DataFolder(tmp_path / "data")
    seed = random.randrange(2**32)
    rng = random.Random(seed)
    builds = [build(rng, f"1.{number}") for number in range(4)]
    for number, members in enumerate(builds):
        server = run()
        where = client_of(server)
        bundle = make_zip(members)
        cut = rng.randrange(len(bundle) // PIECE * 2)

        with suppress(requests.RequestException):
            requests.post(
                f"{where.url}/deploy",
                data=pieces_until_kill(bundle, cut, server),
                headers=ZIP,
                auth=(USER, PASSWORD),
                timeout=TIMEOUT_S,
            )
        if number % 2:
            server.kill()
        else:
            server.stop()
        server = run()
        where = client_of(server)
        wait_for(lambda: set(rows(data).values()) <= {"PUBLISHED", "FAILED"}, server)
        assert [visible(where, each) for each in builds[: number + 1]], seed
        server.stop()
    assert data.damaged() == [], seed
    assert data.rows("SELECT COUNT(*) FROM deployment_file") == [(0,)]
