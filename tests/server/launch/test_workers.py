"""Two worker processes behind one address, which are one server to clients."""

from __future__ import annotations

import hashlib
import os
import signal
import socket
import stat
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from time import sleep
from urllib.parse import urlsplit

import pytest
import requests

from pkgrepo.process.resources import usable_processors
from tests.support.exchanges import check_exchanges
from tests.support.http_client import Reply
from tests.support.issuer import Issuer, issuer_lines, listening
from tests.support.npm_packages import make_publish
from tests.support.python_packages import make_wheel
from tests.support.server_process import ServerProcess, twistd_process
from tests.support.timeouts import TIMEOUT_S, polled
from tests.support.workers import (
    Connection,
    connect_to_each,
    kill,
    wait_for_holder,
    wait_for_workers,
    wait_until_ended,
    workers_of,
)

pytestmark = pytest.mark.server

Run = Callable[..., ServerProcess]
Pair = list[Connection]

TWO = {"PKGREPO_SERVER__WORKERS": "2"}
CONFIGURATION = """
[server]
cache_memory = "64 MiB"
[limits]
login_failures = 4
[[bootstrap.repositories]]
name = "py"
format = "python"
[[bootstrap.repositories]]
name = "npm"
format = "npm"
[[bootstrap.repositories]]
name = "images"
format = "docker"
"""
JSON = {"Content-Type": "application/json"}


def wait_for(found: Callable[[], object]) -> None:
    polled(found)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("workers")


@pytest.fixture(scope="module")
def issuer() -> Iterator[Issuer]:
    """An issuer of identity tokens that the server accepts."""
    with listening() as found:
        yield found


@pytest.fixture(scope="module")
def server(folder: Path, issuer: Issuer) -> Iterator[ServerProcess]:
    """A server for tests that stop none of its processes."""
    (folder / "pkgrepo.toml").write_text(issuer_lines(issuer) + CONFIGURATION)
    process = twistd_process(folder, "--config", "pkgrepo.toml", environ=TWO)
    process.wait_ready()
    yield process
    workers = workers_of(process.pid)
    assert process.stop() in (0, -signal.SIGTERM)
    wait_until_ended(workers)
    assert "Traceback" not in process.output, process.output


@pytest.fixture
def pair(server: ServerProcess) -> Iterator[Pair]:
    """A connection to each worker."""
    found = connect_to_each(server.url)
    yield found
    for each in found:
        each.close()


def publish(connection: Connection, name: str, version: str) -> Reply:
    return connection.ask("PUT", f"/repositories/main/npm/{name}", make_publish(name, version), headers=JSON)


def test_what_one_worker_publishes_the_other_one_serves_at_once(pair: Pair) -> None:
    for n in range(20):
        one, other = pair[n % 2], pair[(n + 1) % 2]
        assert publish(one, "shared", f"1.0.{n}").status in (200, 201)
        assert f"1.0.{n}" in other.ask("GET", "/repositories/main/npm/shared").json["versions"]


def test_a_repository_made_at_one_is_served_and_removed_at_the_other(pair: Pair) -> None:
    one, other = pair
    made = one.ask_json(
        "POST", "/api/repository", {"name": "new", "storage": "main", "format": "python", "config": {"type": "Hosted"}}
    )
    assert other.ask("GET", "/repositories/main/new/simple/").status == 200
    assert other.ask("DELETE", f"/api/repository/{made['id']}?confirm=new").status == 200
    assert one.ask("GET", "/repositories/main/new/simple/").status == 404


def test_a_revoked_token_is_dead_everywhere_at_once(pair: Pair) -> None:
    one, other = pair
    made = one.ask_json("POST", "/api/user/token", {"name": "ci", "scopes": ["api:read"]})
    bearer = {"Authorization": f"Bearer {made['token']}"}
    for each in pair:  # both have it in memory now
        assert each.ask("GET", "/api/user/me", auth=None, headers=bearer).status == 200
    assert other.ask("DELETE", f"/api/user/token/{made['id']}").status == 204
    for each in pair:
        assert each.ask("GET", "/api/user/me", auth=None, headers=bearer).status == 401


def test_identity_tokens_are_exchanged_once_by_all(pair: Pair, issuer: Issuer) -> None:
    check_exchanges(pair, issuer)


def test_an_upload_that_one_began_the_other_one_continues(pair: Pair) -> None:
    one, other = pair
    chunks = [os.urandom(70_000) for _ in range(4)]
    digest = hashlib.sha256(b"".join(chunks)).hexdigest()
    place = one.ask("POST", "/v2/main/images/app/blobs/uploads/").headers["location"]
    place = place[place.index("/v2/") :]
    offset = 0
    for n, chunk in enumerate(chunks):
        fields = {"Content-Type": "application/octet-stream", "Content-Range": f"{offset}-{offset + len(chunk) - 1}"}
        reply = pair[n % 2].ask("PATCH", place, chunk, headers=fields)
        assert reply.status == 202, reply.text
        place = reply.headers["location"]
        place = place[place.index("/v2/") :]
        offset += len(chunk)
    assert one.ask("PUT", f"{place}{'&' if '?' in place else '?'}digest=sha256:{digest}", b"").status == 201
    found = other.ask("GET", f"/v2/main/images/app/blobs/sha256:{digest}")
    assert (found.status, found.body) == (200, b"".join(chunks))


def test_wrong_passwords_are_counted_together(pair: Pair) -> None:
    guess = ("somebody", "wrong wrong wrong")
    statuses = []
    for n in range(4):
        statuses.append(pair[n % 2].ask("GET", "/api/user/me", auth=guess).status)
        sleep(0.05)
    assert statuses == [401] * 4
    wait_for(lambda: pair[0].ask("GET", "/api/user/me", auth=guess).status == 429)
    wait_for(lambda: pair[1].ask("GET", "/api/user/me", auth=guess).status == 429)


def metric(connection: Connection, line: str) -> float:
    text = connection.ask("GET", "/metrics").text
    return sum(float(each.rpartition(" ")[2]) for each in text.splitlines() if each.startswith(line))


def test_each_worker_answers_with_the_metrics_of_both(pair: Pair) -> None:
    line = 'pkgrepo_http_requests_total{area="healthz"'
    before = metric(pair[0], line)
    for each, count in zip(pair, (3, 5), strict=True):
        for _ in range(count):
            each.ask("GET", "/healthz")
    assert [metric(each, line) for each in pair] == [before + 8] * 2
    assert [metric(each, "pkgrepo_workers") for each in pair] == [2, 2]


def test_both_share_the_memory_for_caches(pair: Pair) -> None:
    for each in pair:
        assert 63 * 2**20 < metric(each, "pkgrepo_cache_limit_bytes") <= 64 * 2**20


def test_the_audit_log_has_the_rows_of_both(pair: Pair) -> None:
    for each in pair:
        each.ask("GET", "/api/user/me", auth=("nobody", "wrong wrong wrong"))
    rows = pair[0].ask_json("GET", "/api/audit?limit=50")["items"]
    counted = sum(row["detail"].get("count", 1) for row in rows if row["action"] == "login")
    assert counted >= 2, rows


def test_one_worker_at_a_time_shows_what_both_publish(pair: Pair, server: ServerProcess, folder: Path) -> None:
    holder = wait_for_holder(folder / "data")
    assert holder in workers_of(server.pid)
    layout = folder / "data" / "storages" / "main"
    for n, each in enumerate(pair):
        filename, body = make_wheel("shown", f"{n}.0")
        assert each.ask("PUT", f"/repositories/main/py/shown/{n}.0/{filename}", body).status == 201
        wait_for(lambda filename=filename: list(layout.rglob(filename)))
    assert wait_for_holder(folder / "data") == holder


class Load:
    """Requests of several threads, half of them with connections of their own; ``failures`` are those that failed."""

    def __init__(self, url: str) -> None:
        self.done = 0
        self.failures: list[str] = []
        self._url = url
        self._ended = threading.Event()
        self._threads = [threading.Thread(target=self._run, args=(n % 2 == 0,)) for n in range(4)]
        for each in self._threads:
            each.start()

    def stop(self) -> None:
        self._ended.set()
        for each in self._threads:
            each.join()

    def _run(self, keeps: bool) -> None:
        session = requests.Session()
        fields = {} if keeps else {"Connection": "close"}
        while not self._ended.is_set():
            try:
                answer = session.get(f"{self._url}/repositories/main/npm/kept", headers=fields, timeout=TIMEOUT_S)
                if answer.status_code != 200:
                    self.failures.append(answer.text)
            except requests.RequestException as error:
                self.failures.append(str(error))
            self.done += 1


def start(run: Run, tmp_path: Path, **variables: str) -> ServerProcess:
    (tmp_path / "pkgrepo.toml").write_text(CONFIGURATION)
    server = run("--config", "pkgrepo.toml", environ=TWO | variables)
    server.wait_ready()
    return server


def test_a_reload_replaces_all_workers_and_loses_no_request(run_twistd: Run, tmp_path: Path) -> None:
    server = start(run_twistd, tmp_path)
    before = workers_of(server.pid)
    pair = connect_to_each(server.url)
    assert publish(pair[0], "kept", "1.0.0").status in (200, 201)
    counted = metric(pair[1], "pkgrepo_http_requests_total")
    load = Load(server.url)
    wait_for(lambda: load.done > 100)
    os.kill(server.pid, signal.SIGHUP)
    server.lines("all workers are new", 1)
    wait_until_ended(before)
    done = load.done
    wait_for(lambda: load.done > done + 100)
    load.stop()
    assert load.failures == []
    assert len(wait_for_workers(server.pid)) == 2
    [one, _] = connect_to_each(server.url)
    assert metric(one, "pkgrepo_http_requests_total") >= counted + load.done
    assert server.stop() in (0, -signal.SIGTERM)
    assert "Traceback" not in server.output


def test_a_reload_during_the_start_follows_it(run_twistd: Run) -> None:
    server = run_twistd(environ=TWO)
    wait_for(lambda: workers_of(server.pid))
    os.kill(server.pid, signal.SIGHUP)
    server.lines("all workers are new", 1)
    lines = [line for line in server.output.splitlines() if " serve at " in line or "all workers are new" in line]
    assert "2 workers serve at" in lines[0], server.output
    assert "all workers are new" in lines[1], server.output


def test_a_configuration_with_problems_leaves_the_workers_in_place(run_twistd: Run, tmp_path: Path) -> None:
    server = start(run_twistd, tmp_path)
    before = workers_of(server.pid)
    (tmp_path / "pkgrepo.toml").write_text('[log]\nlevel = "loud"\n')
    os.kill(server.pid, signal.SIGHUP)
    server.lines("the others stay", 1)
    assert "log.level: must be" in server.output
    assert set(before) <= set(wait_for_workers(server.pid))
    (tmp_path / "pkgrepo.toml").write_text(CONFIGURATION)
    os.kill(server.pid, signal.SIGHUP)
    server.lines("all workers are new", 1)
    wait_until_ended(before)


def test_a_worker_that_is_killed_is_replaced_and_another_one_takes_over(run_twistd: Run, tmp_path: Path) -> None:
    server = start(run_twistd, tmp_path)
    holder = wait_for_holder(tmp_path / "data")
    kill(holder)
    wait_for_holder(tmp_path / "data", without=holder)
    server.lines("serves again", 1)
    wait_for_workers(server.pid, without=holder)
    filename, body = make_wheel("late", "1.0")
    [one, _] = connect_to_each(server.url)
    assert one.ask("PUT", f"/repositories/main/py/late/1.0/{filename}", body).status == 201
    wait_for(lambda: list((tmp_path / "data" / "storages").rglob(filename)))


def test_connections_of_a_killed_worker_are_answered_by_another_one(run_twistd: Run, tmp_path: Path) -> None:
    server = start(run_twistd, tmp_path)
    before = workers_of(server.pid)
    killed, other = before
    os.kill(killed, signal.SIGSTOP)
    waiting = [send_request(server.url) for _ in range(30)]  # about half of them in the queue of the stopped one
    kill(killed)
    wait_for(lambda: {*workers_of(server.pid)} - {*before})
    [new] = {*workers_of(server.pid)} - {*before}
    os.kill(new, signal.SIGSTOP)  # it would take some time
    waiting += [send_request(server.url) for _ in range(30)]
    assert [read_status(each) for each in waiting] == [200] * 60
    os.kill(new, signal.SIGCONT)
    server.lines("serves again", 1)
    kill(other)  # its sockets are covered by the new one
    server.lines(" ended: ", 2)
    assert [read_status(send_request(server.url)) for _ in range(30)] == [200] * 30
    server.lines("serves again", 2)
    for each in connect_to_each(server.url):
        each.close()
    assert server.stop() in (0, -signal.SIGTERM)
    assert "Traceback" not in server.output, server.output


def send_request(url: str) -> socket.socket:
    parts = urlsplit(url)
    line = socket.create_connection((parts.hostname, parts.port), timeout=TIMEOUT_S)
    line.sendall(b"GET /healthz HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n")
    return line


def read_status(line: socket.socket) -> int:
    with line, line.makefile("rb") as answer:
        return int(answer.readline().split()[1])


def test_workers_do_not_outlive_their_master(run_twistd: Run, tmp_path: Path) -> None:
    server = start(run_twistd, tmp_path)
    workers = workers_of(server.pid)
    assert len(workers) == 2
    server.kill()
    wait_until_ended(workers)


def test_a_generated_password_is_shown_once(run_twistd: Run, tmp_path: Path) -> None:
    server = start(run_twistd, tmp_path, PKGREPO_ADMIN_PASSWORD="")
    server.lines("workers serve at", 1)  # which is logged after the addresses are printed
    assert server.output.count("with the password") == 1
    assert server.output.count("answers at") == 1
    assert server.output.index("with the password") < server.output.index("workers serve at")


def test_a_start_that_fails_says_why_once(run_twistd: Run, tmp_path: Path) -> None:
    (tmp_path / "data").write_text("no folder")
    server = run_twistd("--workers", "2")
    assert server.wait() == 1
    assert server.output.count("pkgrepo could not start") == 1
    assert "Traceback" not in server.output


def test_a_port_that_is_taken_ends_the_start(run_twistd: Run, server: ServerProcess) -> None:
    port = server.url.rpartition(":")[2]
    second = run_twistd("--workers", "2", environ={"PKGREPO_SERVER__LISTEN": f"tcp:{port}:interface=127.0.0.1"})
    assert second.wait() != 0
    assert "in use" in second.output


def test_workers_share_a_unix_socket_which_keeps_its_mode(run_twistd: Run, tmp_path: Path) -> None:
    path = tmp_path / "socket"
    server = start(run_twistd, tmp_path, PKGREPO_SERVER__LISTEN=f"unix:{path}:mode=600")
    os.kill(server.pid, signal.SIGHUP)
    server.lines("all workers are new", 1)
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    with socket.socket(socket.AF_UNIX) as line:
        line.connect(str(path))
        line.sendall(b"GET /healthz HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n")
        assert line.recv(12) == b"HTTP/1.1 200"
    assert server.stop() in (0, -signal.SIGTERM)
    assert not path.exists()
    assert "Traceback" not in server.output


@pytest.mark.sqlite("the database is there before the first start")
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM], ids=["interrupt", "terminate"])
def test_an_automatic_number_is_a_worker_on_each_processor(run_twistd: Run, tmp_path: Path, number: int) -> None:
    count = usable_processors()
    server = run_twistd(environ={"PKGREPO_SERVER__WORKERS": "auto", "PKGREPO_ADMIN_PASSWORD": ""})
    server.wait_ready()
    workers = workers_of(server.pid)
    assert len(workers) == (0 if count == 1 else count)
    server.lines(" serving at " if count == 1 else " workers serve at ", 1)
    for line in ("the catalog was made", "with the password", "answers at"):
        assert server.output.count(line) == 1, server.output
    assert server.output.count(" workers serve at ") == (0 if count == 1 else 1)
    assert server.output.count(" serving at ") == (1 if count == 1 else 0)
    assert server.end(number) in (0, -number)
    wait_until_ended(workers)
    assert "Traceback" not in server.output, server.output
