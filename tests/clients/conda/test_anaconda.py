"""anaconda-client: uploads, what it shows, downloads, removals and logins."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from pkgrepo.auth.tokens.text import make_token
from pkgrepo.model import TokenKind
from tests.support.client_programs import client, client_environment, run_client
from tests.support.conda_packages import make_conda, make_installable, make_tar_bz2
from tests.support.configurations import PRIVATE, config, hosted, tokens, virtual
from tests.support.container_clients import ADMIN

pytestmark = pytest.mark.clients

TOKEN, READER = make_token(TokenKind.CI), make_token(TokenKind.CI)
SCOPES = {"builder": ("main/*", ["read", "write", "delete"], []), "reader": ("main/*", ["read"], [])}
DEMO = "demo-1.0-h0_0.conda"


@pytest.fixture(scope="module")
def configuration():
    lax = config(policy="reuse_deleted_names = true")
    return (
        hosted("conda", ch="", own="", private=PRIVATE, lax=lax)
        + hosted("python", "py")
        + virtual("conda", "all", "main/own", "main/ch", publish_to="main/own")
        + tokens(ADMIN[0], {"builder": TOKEN, "reader": READER}, SCOPES)
    )


@pytest.fixture
def anaconda(server, tmp_path) -> Callable[..., str]:
    """Run anaconda-client on a channel of the server. Returns what it printed."""
    home = tmp_path / "home"

    def run(channel: str, *arguments: object, token: str = TOKEN, status: int | None = 0) -> str:
        folder = home / ".continuum" / "anaconda-client"
        folder.mkdir(parents=True, exist_ok=True)
        (folder / "config.yaml").write_text(f"url: {server.url}/repositories/main/{channel}\n")
        environ = client_environment(
            home,
            ANACONDA_CLIENT_FORCE_STANDALONE="1",
            OTEL_SDK_DISABLED="true",  # it reports to its makers otherwise
            XDG_CONFIG_DIRS=str(home / "none"),
            COLUMNS="200",
            **({"ANACONDA_API_TOKEN": token} if token else {}),
        )
        words = [str(each) for each in arguments]
        return run_client([client("anaconda"), *words], environ=environ, folder=tmp_path, status=status).stdout

    return run


@pytest.fixture
def packages(tmp_path):
    """Write a package to a file; returns its path."""

    def write(name, data):
        (tmp_path / name).write_bytes(data)
        return tmp_path / name

    return write


@pytest.mark.shows("publish", "install", by=("anaconda",))
def test_an_uploaded_package_is_shown_downloaded_installed_and_removed(anaconda, packages, rattler, server, tmp_path):
    data = make_installable("demo", "1.0", "h0_0", {"share/demo.txt": b"x"}, depends=[])
    printed = anaconda("ch", "upload", packages(DEMO, data))
    assert "Upload complete" in printed
    assert f"{server.url}/repositories/main/ch/noarch/{DEMO}" in printed
    older = make_tar_bz2("demo", "0.9", "h0_0", subdir="linux-64", noarch=None)
    assert "Upload complete" in anaconda("ch", "upload", packages("demo-0.9-h0_0.tar.bz2", older))
    place = {"prefix": str(tmp_path / "env"), "cache": str(tmp_path / "cache")}
    assert DEMO in rattler(channel=f"{server.url}/repositories/main/ch", specs=["demo"], **place)
    shown = anaconda("ch", "show", "any/demo")
    assert ("+ 1.0" in shown, "+ 0.9" in shown) == (True, True)
    assert f"+ noarch/{DEMO}" in anaconda("ch", "show", "any/demo/1.0")
    assert "sha256" in anaconda("ch", "show", f"any/demo/1.0/noarch/{DEMO}")
    assert "admin" in anaconda("ch", "whoami")
    anaconda("ch", "download", "any/demo")
    assert (tmp_path / "noarch" / DEMO).read_bytes() == data
    anaconda("ch", "remove", "--force", f"any/demo/1.0/noarch/{DEMO}")
    shown = anaconda("ch", "show", "any/demo")
    assert ("+ 1.0" in shown, "+ 0.9" in shown) == (False, True)
    anaconda("ch", "remove", "--force", "any/demo/0.9")
    assert "does not exist" in anaconda("ch", "show", "any/demo", status=1)
    assert TOKEN[7:] not in server.output


def test_what_exists_is_skipped_refused_or_replaced(anaconda, packages):
    file = packages(DEMO, make_conda("demo", "1.0", "h0_0"))
    anaconda("lax", "upload", file)
    assert "already exists" in anaconda("lax", "upload", "--skip-existing", file)
    assert "already exists" in anaconda("lax", "upload", file, status=1)
    changed = packages(DEMO, make_conda("demo", "1.0", "h0_0", license="BSD"))
    assert "Upload complete" in anaconda("lax", "upload", "--force", changed)
    assert "BSD" in anaconda("lax", "show", f"any/demo/1.0/noarch/{DEMO}")


@pytest.mark.parametrize("channel", ["all", "py/conda", "private"])
def test_uploads_to_virtual_private_and_companion_channels(anaconda, packages, channel):
    assert "Upload complete" in anaconda(channel, "upload", packages(DEMO, make_conda("demo", "1.0", "h0_0")))
    assert "+ 1.0" in anaconda(channel, "show", "any/demo")


@pytest.mark.shows("refusal", by=("anaconda",))
def test_refusals_are_printed(anaconda, packages):
    file = packages("refused-1.0-h0_0.conda", make_conda("refused", "1.0", "h0_0"))
    assert "may not publish" in anaconda("ch", "upload", file, token=READER, status=1)
    assert "401" in anaconda("private", "upload", file, token="", status=1)
    damaged = packages("refused-1.1-h0_0.conda", make_conda("refused", "1.1", "h0_0", timestamp="late"))
    printed = anaconda("ch", "upload", damaged, status=1)
    assert "timestamp" in printed
    assert "Traceback" not in printed
    assert "does not exist" in anaconda("ch", "show", "any/refused", status=1)


@pytest.mark.shows("login", by=("anaconda",))
@pytest.mark.parametrize("channel", ["ch", "py/conda"])
def test_a_login_gives_a_token_until_the_logout(anaconda, packages, channel):
    user, password = ADMIN
    anaconda(channel, "login", "--username", user, "--password", password, token="")
    name = "logged-1.0-h0_0.conda"
    assert "Upload complete" in anaconda(
        channel, "upload", packages(name, make_conda("logged", "1.0", "h0_0")), token=""
    )
    anaconda(channel, "logout", token="")
    assert "Anonymous" in anaconda(channel, "whoami", token="", status=None)
