"""Parts of what a release consists of: pinned dependencies, units and settings of packages, manual pages."""

from __future__ import annotations

import gzip
import re
import subprocess
import tomllib
from pathlib import Path

import pytest
import yaml
from packaging.requirements import Requirement

from pkgrepo import __version__
from pkgrepo.build import normal
from pkgrepo.config import read_config, template
from pkgrepo.packaging import debian, image
from pkgrepo.packaging.manuals import make_manuals
from pkgrepo.packaging.tree import REQUIREMENTS, locked
from tests.support.unit_filters import confinement

ROOT = Path(__file__).parents[3]
PACKAGING = ROOT / "pkgrepo" / "packaging"


def test_the_pinned_dependencies_are_those_of_the_project() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    extras = project["optional-dependencies"]
    pinned = {normal(each.name): each for each in locked(REQUIREMENTS.read_text())}
    assert len(pinned) > 40
    assert all(each.hashes for each in pinned.values())
    for text in project["dependencies"] + extras["postgresql"] + extras["s3"]:
        wanted = Requirement(text)
        found = pinned[normal(wanted.name)]  # bin/release --lock writes the file anew
        assert wanted.specifier.contains(found.version), f"{text}: {found.version} is pinned"


def test_the_page_about_the_installation_names_this_version() -> None:
    text = (ROOT / "pkgrepo" / "docs" / "install.md").read_text()
    assert set(re.findall(r"pkgrepo[-_:](\d+\.\d+\.\d+)", text)) == {__version__}


def test_the_unit_of_the_package_is_confined_like_that_of_other_installations(tmp_path: Path) -> None:
    original = ROOT / "pkgrepo" / "systemd" / "pkgrepo.service"
    text = debian.unit(original.read_text())
    assert "\nUser=pkgrepo\n" in text
    assert "/opt/" not in text
    assert text.startswith("[Unit]\n")
    (tmp_path / "pkgrepo.service").write_text(text)
    assert confinement(tmp_path / "pkgrepo.service") == confinement(original)


def test_the_settings_of_the_package_are_valid(tmp_path: Path) -> None:
    (tmp_path / "pkgrepo.toml").write_text(debian.settings())
    config = read_config(tmp_path / "pkgrepo.toml", environ={})
    assert config.data.dir == Path("/var/lib/pkgrepo")
    assert set(config.origins) == {"data.dir"}


def test_no_new_version_changes_the_settings_file_of_the_package() -> None:
    lines = debian.settings().splitlines()
    assert [each for each in lines if not each.startswith("#")] == ["", "[data]", 'dir = "/var/lib/pkgrepo"']
    assert not {*filter(None, lines)} & {*template().splitlines()} - {"[data]"}, "defaults and meanings change"


@pytest.mark.parametrize("name", ["postinst", "prerm", "postrm", "pkgrepo"])
def test_scripts_of_the_package_are_valid(name: str) -> None:
    subprocess.run(["sh", "-n", PACKAGING / "debian" / name], check=True)


def test_files_of_programs_that_install_packages_are_not_in_the_image() -> None:
    assert image._UNUSED.match("usr/share/doc/libssl3/changelog.gz")
    assert not image._UNUSED.match("usr/share/doc/libssl3/copyright")
    assert image._UNUSED.match("usr/lib/python3.11/sqlite3")
    assert image._UNUSED.match("usr/lib/python3.11/lib-dynload/_dbm.cpython-311-x86_64-linux-gnu.so")
    assert not image._UNUSED.match("usr/lib/python3.11/lib-dynload/_bz2.cpython-311-x86_64-linux-gnu.so")
    assert not image._UNUSED.match("usr/lib/python3.11/xml/etree/ElementTree.py")
    assert image._merged("lib/x86_64-linux-gnu/libc.so.6") == "usr/lib/x86_64-linux-gnu/libc.so.6"
    assert image._merged("etc/passwd") == "etc/passwd"


def test_every_command_has_a_manual_page() -> None:
    files = make_manuals(__version__)
    pages = {Path(name).name: gzip.decompress(data).decode() for name, data in files.items() if "/man1/" in name}
    assert {
        "pkgrepo.1.gz",
        "pkgrepo-verify.1.gz",
        "pkgrepo-repo-create.1.gz",
        "pkgrepo-import-maven.1.gz",
    } <= pages.keys()
    for name, text in pages.items():
        assert text.startswith(f'.TH "{name.removesuffix(".1.gz").upper()}" 1'), name
        assert ".SH NAME\n" in text
        assert "\b" not in text
        unknown = [line for line in text.splitlines() if re.match(r"[.'](?!TH |SH |PP$|TP$|B |nf$|fi$)", line)]
        assert unknown == [], name
    assert "_PKGREPO_COMPLETE=bash_complete" in files["usr/share/bash-completion/completions/pkgrepo"].decode()
    assert make_manuals(__version__) == files


def test_compose_runs_the_image_without_rights() -> None:
    (service,) = yaml.safe_load((PACKAGING / "compose.yaml").read_text())["services"].values()
    assert service["read_only"]
    assert service["cap_drop"] == ["ALL"]
    # None is the value of the shell. podman-compose 1.0.3 does not know a default that is empty.
    assert service["environment"]["PKGREPO_SERVER__PUBLIC_URL"] is None
    assert ":-}" not in (PACKAGING / "compose.yaml").read_text()
    assert service["volumes"] == [f"data:/{image.DATA}"]
    assert f":{image.PORT}" in service["ports"][0]
