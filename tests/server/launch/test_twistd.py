"""Start by twistd from this checkout."""

from __future__ import annotations

import json
import re
import signal

import pytest
import requests

from tests.support.server_process import ROOT
from tests.support.timeouts import TIMEOUT_S

pytestmark = pytest.mark.server

ENDED_BY_SIGTERM = (0, -signal.SIGTERM)  # twistd re-raises the signal that stopped it


def answers(url: str) -> bool:
    return requests.get(url + "/", timeout=TIMEOUT_S).headers["Server"].startswith("pkgrepo/")


def test_twistd_serves_from_a_file_and_stops_when_asked(run_twistd, tmp_path):
    (tmp_path / "pkgrepo.toml").write_text('[data]\ndir = "elsewhere"\n')
    server = run_twistd("--config", "pkgrepo.toml", "--set", "log.level=warn")
    assert answers(server.wait_ready())
    assert server.stop() in ENDED_BY_SIGTERM
    assert "Traceback" not in server.output


def test_a_run_leaves_only_its_data_folder(run_twistd, tmp_path):
    server = run_twistd()
    server.wait_ready()
    server.stop()
    assert [each.name for each in tmp_path.iterdir()] == ["data"]


def test_a_missing_admin_password_is_generated_and_shown_once(run_twistd):
    first = run_twistd(environ={"PKGREPO_ADMIN_PASSWORD": ""})
    first.wait_ready()
    first.stop()
    assert first.output.count("with the password") == 1
    assert first.output.index("with the password") < first.output.index("serving at ")
    second = run_twistd(environ={"PKGREPO_ADMIN_PASSWORD": ""})
    assert answers(second.wait_ready())
    second.stop()
    assert "password" not in second.output


def test_a_configured_password_is_never_shown(run_twistd):
    server = run_twistd(environ={"PKGREPO_ADMIN_PASSWORD": "s3cret-s3cret-s3cret"})
    server.wait_ready()
    server.stop()
    assert "s3cret" not in server.output


def test_all_configuration_errors_are_reported_and_no_file_is_made(run_twistd, tmp_path):
    server = run_twistd("--set", "server.listn=x", environ={"PKGREPO_LOG__LEVEL": "loud"})
    assert server.wait() == 1
    assert "command line: server.listn is not a setting; did you mean server.listen?" in server.output
    assert "log.level: must be" in server.output
    assert "Traceback" not in server.output
    assert list(tmp_path.iterdir()) == []


def test_an_invalid_certificate_is_reported(run_twistd, tmp_path):
    (tmp_path / "bad.pem").write_text("nothing of the kind")
    server = run_twistd("--set", "tls.cert=bad.pem", "--set", "tls.key=bad.pem")
    assert server.wait() == 1
    assert "bad.pem cannot be used" in server.output
    assert "Traceback" not in server.output


def test_a_port_that_is_taken_ends_the_start(run_twistd):
    first = run_twistd()
    port = first.wait_ready().rpartition(":")[2]
    second = run_twistd(
        environ={"PKGREPO_SERVER__LISTEN": f"tcp:{port}:interface=127.0.0.1", "PKGREPO_DATA__DIR": "other"}
    )
    assert second.wait() != 0
    assert "in use" in second.output


def test_the_log_is_json_where_the_configuration_says_so(run_twistd):
    server = run_twistd(environ={"PKGREPO_LOG__FORMAT": "json"})
    assert answers(server.wait_ready())
    server.stop()
    lines = [json.loads(line) for line in server.output.splitlines() if line.startswith("{")]
    ready = re.compile("serving at|workers serve at")
    assert any(line.get("level") == "info" and ready.search(line.get("message", "")) for line in lines)
    assert any(line.get("status") for line in lines), "no line of the access log"


@pytest.mark.parametrize("workers", ["1", "2"])
def test_a_library_that_is_not_installed_is_named(run_twistd, tmp_path, workers):
    (tmp_path / "absent").mkdir()
    (tmp_path / "absent" / "psycopg.py").write_text("raise ModuleNotFoundError(__name__)")
    environ = {
        "PYTHONPATH": f"{tmp_path / 'absent'}:{ROOT}",
        "PKGREPO_DATABASE__URL": "postgresql://user@127.0.0.1:1/name",
        "PKGREPO_SERVER__WORKERS": workers,
    }
    server = run_twistd(environ=environ, patched=False)
    assert server.wait() == 1
    assert 'psycopg is not installed: pip install "WHEEL[postgresql]"' in server.output
    assert "Traceback" not in server.output
