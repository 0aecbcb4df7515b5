"""Logging in keeps a token in a private file; no token is on a command line, in an error or sent elsewhere."""

import json
import stat
import subprocess
import sys
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread

import pytest

from tests.support.certificates import write_certificate
from tests.support.command_line import PROGRAM
from tests.support.python_index import PASSWORD
from tests.support.server_process import running
from tests.support.timeouts import TIMEOUT_S

pytestmark = pytest.mark.server


def profiles(program):
    path = program.folder / "config" / "pkgrepo" / "profiles.json"
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    return json.loads(path.read_text())


def test_a_login_makes_a_token_and_a_logout_revokes_it(stranger, api):
    assert stranger.log_in() == f"logged in to {stranger.url} as admin (profile default)\n"
    token = profiles(stranger)["profiles"]["default"]["token"]
    assert stranger.json("whoami")["via"] == "token"
    listed = stranger("profile", "list")
    assert listed.splitlines()[1].split() == ["*", "default", stranger.url, "admin"]
    assert token not in listed
    assert stranger("logout") == f"logged out of {stranger.url}\n"
    assert profiles(stranger) == {}
    assert api.ask("GET", "/user/me", headers={"Authorization": f"Bearer {token}"}).status == 401
    assert stranger.refused(3, "logout") == "pkgrepo: there is no profile"


def browser_of(stranger, *, approve=True):
    """A browser as the variable BROWSER names it: it logs in, and approves what it is shown, or denies it."""
    script = stranger.folder / "browser.py"
    script.write_text(
        f"""import re, sys, requests
base, browser = re.match("https?://[^/]+", sys.argv[1])[0], requests.Session()
browser.headers.update({{"Sec-Fetch-Mode": "navigate", "Origin": base}})
target = re.search('name="next" value="([^"]*)"', browser.get(sys.argv[1]).text)[1].replace("&amp;", "&")
form = {{"username": "admin", "password": {PASSWORD!r}, "next": target}}
page = browser.post(base + "/ui/login", form)
fields = dict(re.findall('name="(csrf|user_code)" value="([^"]*)"', page.text))
page = browser.post(base + "/ui/device", {{**fields, "approve": "{"1" if approve else ""}"}})
if "refresh" in page.headers:
    requests.get(page.headers["refresh"].partition("url=")[2])
"""
    )
    return f"{sys.executable} {script} %s"


def test_a_browser_on_this_machine_logs_in(stranger):
    said = stranger("login", stranger.url, "--scope", "api:read", BROWSER=browser_of(stranger))
    assert said == f"logged in to {stranger.url} as admin (profile default)\n"
    assert stranger.json("whoami")["scopes"] == ["api:read"]


def test_a_denied_login_keeps_nothing(stranger):
    result = stranger.run("login", stranger.url, BROWSER=browser_of(stranger, approve=False))
    assert result.returncode == 1
    assert result.stderr.splitlines()[-1] == "pkgrepo: the login was denied"
    assert not (stranger.folder / "config").exists()


def test_a_browser_elsewhere_takes_a_code(stranger, api):
    command = [PROGRAM, "login", stranger.url, "--no-browser"]
    process = subprocess.Popen(
        command, env=stranger.environ(), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    try:
        code = process.stderr.readline().split()[-1]
        decided = api.post_json("/user/login/device/decision", {"user_code": code, "approve": True})
        said, _ = process.communicate(timeout=TIMEOUT_S)
    finally:
        process.kill()
    assert decided.status == 200
    assert said == f"logged in to {stranger.url} as admin (profile default)\n"
    assert stranger.json("whoami")["via"] == "token"


def test_a_second_login_replaces_the_first_token(stranger, api):
    stranger.log_in()
    first = profiles(stranger)["profiles"]["default"]["token"]
    stranger.log_in()
    assert api.ask("GET", "/user/me", headers={"Authorization": f"Bearer {first}"}).status == 401
    assert stranger("whoami")


def test_profiles_are_chosen_by_name(stranger):
    stranger.log_in("--profile", "one")
    stranger.log_in("--profile", "two", "--scope", "api:read")
    assert stranger.json("whoami")["scopes"] == ["api:read"]
    assert "system" in stranger.json("whoami", "--profile", "one")["scopes"]
    stranger("profile", "use", "one")
    assert "system" in stranger.json("whoami")["scopes"]
    assert "'three' does not exist" in stranger.refused(3, "whoami", "--profile", "three")
    assert "'three' does not exist" in stranger.refused(3, "profile", "use", "three")


def test_a_wrong_password_is_refused_and_keeps_nothing(stranger):
    result = stranger.run("login", stranger.url, "-u", "admin", "--password-file", "-", told="wrong password")
    assert result.returncode == 4
    assert "wrong password" not in result.stdout + result.stderr
    assert '"pkgrepo login"' not in result.stderr
    assert not (stranger.folder / "config").exists()


def test_without_a_profile_the_reason_says_what_to_do(stranger):
    assert '"pkgrepo login URL"' in stranger.refused(2, "repo", "list")
    assert '"pkgrepo login" gets a token' in stranger.refused(4, "token", "list", "--url", stranger.url)


def test_a_token_comes_from_a_file_or_a_variable(stranger, admin):
    text = admin("token", "create", "other", "--scope", "api:read").strip()
    file = stranger.folder / "token"
    file.write_text(text)
    for arguments, variables in (
        (("--token-file", file), {}),
        ((), {"PKGREPO_TOKEN": text}),
        ((), {"PKGREPO_TOKEN_FILE": str(file)}),
    ):
        assert stranger.json("whoami", "--url", stranger.url, *arguments, **variables)["scopes"] == ["api:read"]
    stranger("login", stranger.url, "--token-file", file)
    assert stranger.json("whoami")["scopes"] == ["api:read"]
    admin("token", "revoke", "other", "--yes")
    refused = stranger.refused(4, "whoami")
    assert text not in refused


def test_no_token_is_in_the_arguments_of_the_program(admin):
    process = subprocess.Popen(
        [PROGRAM, "audit", "--follow"], env=admin.environ(), cwd=admin.folder, stdout=subprocess.PIPE
    )
    try:
        process.stdout.readline()
        arguments = Path(f"/proc/{process.pid}/cmdline").read_bytes()
    finally:
        process.kill()
        process.communicate()
    assert arguments.endswith(b"pkgrepo\0audit\0--follow\0")


def test_a_server_that_is_not_there_is_one_sentence(stranger):
    line = stranger.refused(1, "whoami", "--url", "http://127.0.0.1:1")
    assert line.startswith("pkgrepo: http://127.0.0.1:1 cannot be reached: ")


def test_a_server_without_tls_is_not_taken_for_one_with_a_wrong_certificate(stranger, command_server):
    line = stranger.refused(1, "whoami", "--url", command_server.url.replace("http:", "https:"))
    assert line.endswith("cannot be reached: it does not speak TLS: is its address one with http:?")


class Redirecting(BaseHTTPRequestHandler):
    """Redirects every request to another host, whose name would clear a terminal."""

    def do_GET(self):
        self.send_response(302)
        self.send_header("Location", "http://elsewhere.example/\x9b2J")
        self.send_header("Content-Length", "0")
        self.end_headers()

    def log_message(self, *_):
        """Log nothing."""


def test_a_redirect_is_not_followed_with_the_token(stranger):
    with ThreadingHTTPServer(("127.0.0.1", 0), Redirecting) as server:
        Thread(target=server.serve_forever, daemon=True).start()
        line = stranger.refused(1, "whoami", "--url", f"http://127.0.0.1:{server.server_port}", PKGREPO_TOKEN="secret")
        server.shutdown()
    assert line == "pkgrepo: the server redirects to http://elsewhere.example/?2J; is this its address?"


def test_a_private_authority_is_given_by_a_file(stranger, tmp_path):
    folder = tmp_path / "tls"
    folder.mkdir()
    certificate, key = write_certificate(folder)
    config = f'tls.cert = "{certificate}"\ntls.key = "{key}"\nserver.listen = ["ssl:0:interface=127.0.0.1"]\n'
    with running(folder, config) as server:
        url = server.url
        assert url.startswith("https://")
        assert "its certificate cannot be verified" in stranger.refused(1, "whoami", "--url", url)
        stranger("login", url, "-u", "admin", "--password-file", "-", "--ca-file", certificate, told=PASSWORD)
        assert stranger.json("whoami")["username"] == "admin"
        missing = stranger.refused(2, "whoami", "--ca-file", tmp_path / "none.pem")
        assert "is no readable file of certificates" in missing
