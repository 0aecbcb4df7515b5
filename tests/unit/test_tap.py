"""What twistd's part of the program does before the server is made."""

from __future__ import annotations

import socket
import stat
import subprocess
import sys
from pathlib import Path

import pytest

from pkgrepo.config import read_config
from pkgrepo.process.resources import usable_processors
from pkgrepo.tap import _automatic_count, _log_file

RAISED = """
import resource
from pkgrepo.tap import raise_descriptor_limit
_, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
resource.setrlimit(resource.RLIMIT_NOFILE, (64, min(hard, 1000)))
raise_descriptor_limit()
print(*resource.getrlimit(resource.RLIMIT_NOFILE))
"""

# Libraries that a server imports when the first request needs them: each takes some MB and 10 ms of a start or more.
LAZY = """
botocore docutils jinja2 ldaptor markdown_it nh3 opentelemetry psycopg pygments pysequoia segno yaml
pkgrepo.storage.catalog.postgresql
"""

SETTLED = """
import gc
from pkgrepo.process.resources import settle
before = len(gc.get_objects())
settle()
print(before, len(gc.get_objects()))
"""


def test_the_server_may_open_as_many_files_as_the_system_allows() -> None:
    done = subprocess.run([sys.executable, "-c", RAISED], capture_output=True, text=True, check=True)
    soft, hard = done.stdout.split()
    assert soft == hard


def test_full_collections_do_not_look_at_what_the_program_consists_of() -> None:
    done = subprocess.run([sys.executable, "-c", SETTLED], capture_output=True, text=True, check=True)
    before, after = map(int, done.stdout.split())
    assert after < before / 10


def test_a_log_in_a_file_is_read_by_its_owner_only(tmp_path: Path) -> None:
    old, new = tmp_path / "old.log", tmp_path / "new.log"
    old.write_text("of an earlier release\n")
    old.chmod(0o644)
    for path in (old, new):
        file = _log_file({"logger": None, "logfile": str(path), "nodaemon": False})
        assert file is not None
        file.close()
        assert stat.S_IMODE(path.stat().st_mode) == 0o600


@pytest.mark.parametrize(
    ("listen", "twistd", "several"),
    [
        ("tcp:8081", {}, True),
        ("unix:/run/socket", {"chroot": None}, True),
        ("tcp:8081", {"chroot": "/srv"}, False),
        ("ssl:8081", {}, False),
    ],
    ids=["tcp", "unix", "chroot", "unsupported"],
)
def test_the_default_is_a_worker_on_each_processor_where_that_is_possible(
    listen: str, twistd: dict[str, str | None], several: bool
) -> None:
    config = read_config(overrides={"server.listen": [listen]})
    assert _automatic_count(config, twistd) == (usable_processors() if several else 1)


def test_the_default_is_one_process_where_sockets_cannot_share_an_address(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delattr(socket, "SO_REUSEPORT")
    config = read_config(overrides={"server.listen": ["tcp:8081"]})
    assert _automatic_count(config, None) == 1


def test_a_start_imports_no_library_that_few_servers_need() -> None:
    program = (
        "import sys; from pkgrepo.web.rendering.pages import Assets, PageRenderer;"
        "import pkgrepo.service, pkgrepo.web.app;"
        "PageRenderer(Assets()); print(*sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    loaded = done.stdout.split()
    assert "pkgrepo.web.rendering.readme" in loaded
    assert not set(LAZY.split()) & set(loaded)


def test_a_master_imports_the_formats_of_its_repositories(tmp_path: Path) -> None:
    program = (
        "import sys; from pathlib import Path; from pkgrepo.config import read_config;"
        "from pkgrepo.worker import preload;"
        "preload(read_config(Path(sys.argv[1]), environ={}, overrides={})); print(*sys.modules)"
    )
    (tmp_path / "pkgrepo.toml").write_text(
        f'[data]\ndir = "{tmp_path}"\n[[bootstrap.repositories]]\nname = "js"\nformat = "npm"\n'
    )
    done = subprocess.run(
        [sys.executable, "-c", program, tmp_path / "pkgrepo.toml"], capture_output=True, text=True, check=True
    )
    loaded = set(done.stdout.split())
    assert "pkgrepo.formats.npm.routes" in loaded
    assert "pkgrepo.formats.maven.routes" not in loaded


def test_a_master_imports_what_its_configuration_needs() -> None:
    program = (
        "import sys; from pkgrepo.config import read_config; from pkgrepo.worker import preload;"
        "preload(read_config(overrides={'database.url': sys.argv[1]})); print(*sys.modules)"
    )

    def loaded(url: str) -> set[str]:
        done = subprocess.run([sys.executable, "-c", program, url], capture_output=True, text=True, check=True)
        return {"psycopg", "botocore"} & set(done.stdout.split())

    assert loaded("postgresql:///pkgrepo") == {"psycopg"}
    assert loaded("sqlite:///pkgrepo.db") == set()


def test_the_options_need_no_server() -> None:
    found = "import sys; import pkgrepo.tap; print(*(name for name in sys.modules if name.startswith('pkgrepo.')))"
    done = subprocess.run([sys.executable, "-c", found], capture_output=True, text=True, check=True)
    names = done.stdout.split()
    assert "pkgrepo.process.workers.master" in names
    assert not [name for name in names if name.startswith(("pkgrepo.formats", "pkgrepo.web", "pkgrepo.http"))]
