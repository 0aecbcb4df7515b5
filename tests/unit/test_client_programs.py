from __future__ import annotations

import ast
from pathlib import Path

import pytest

from tests.support.client_programs import CLIENTS, ROOT, client, client_environment, program

# Of the clients that have no program of their own name.
PROGRAMS = {"build": "pyproject-build", "devpi": "devpi-server", "moto": "moto_server", "pypiserver": "pypi-server"}
COLLECTIONS = {
    "java",
    "rubygems-4",
    "axe-core",
    "rattler",
    "standard-webhooks",
    "oidc-provider",
}  # several programs, or libraries without one


def test_a_client_that_is_not_there_is_skipped_with_the_reason(monkeypatch):
    monkeypatch.delenv("PKGREPO_REQUIRE_CLIENTS", raising=False)
    with pytest.raises(pytest.skip.Exception, match="the client nothing is not installed"):
        client("nothing")
    with pytest.raises(pytest.skip.Exception, match="no-such-program-here is not on the path"):
        program("no-such-program-here")


def test_a_client_that_is_required_fails_the_test(monkeypatch):
    monkeypatch.setenv("PKGREPO_REQUIRE_CLIENTS", "1")
    with pytest.raises(pytest.fail.Exception, match="the client nothing is not installed"):
        client("nothing")


def test_clients_see_no_settings_of_this_machine(monkeypatch, tmp_path):
    for name in ("HTTP_PROXY", "https_proxy", "PIP_INDEX_URL", "PIP_FIND_LINKS", "UV_INDEX_URL", "TWINE_PASSWORD"):
        monkeypatch.setenv(name, "x")
    environment = client_environment(tmp_path / "home", TWINE_USERNAME="me")
    assert "x" not in environment.values()
    assert environment["TWINE_USERNAME"] == "me"
    assert environment["HOME"] == str(tmp_path / "home")


def test_every_installed_client_has_the_program_of_its_name():
    for stamp in CLIENTS.glob("*/.installed"):
        name = stamp.parent.name
        if name in COLLECTIONS:
            continue
        assert client(name, PROGRAMS.get(name)).is_file()


def imported(file: Path) -> set[str]:
    """The modules of tests/support that a file imports at its top, by their names."""
    nodes = [node for node in ast.parse(file.read_text()).body if isinstance(node, ast.ImportFrom) and node.module]
    return {node.module.removeprefix("tests.support.") for node in nodes if node.module.startswith("tests.support.")}


def test_fast_layers_use_no_program_that_only_the_whole_suite_installs():
    support = {file.stem: imported(file) for file in (ROOT / "tests" / "support").glob("*.py")}
    servers = {"postgresql", "s3_servers"}  # which bin/test installs for the fast layers too
    programs = {"client_programs"} | {name for name, used in support.items() if "client_programs" in used} - servers
    fast = [file for layer in ("unit", "contracts") for file in (ROOT / "tests" / layer).rglob("test_*.py")]
    assert len(fast) > 100
    users = {str(file.relative_to(ROOT)): used for file in fast if (used := imported(file) & programs)}
    assert users == {"tests/unit/test_client_programs.py": {"client_programs"}}
