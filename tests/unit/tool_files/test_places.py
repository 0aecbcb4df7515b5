"""Where the files of tools are on each system."""

from __future__ import annotations

from pathlib import Path

import pytest

from pkgrepo.tool_files.places import PLACES, find_file, local_file

WINDOWS = {"USERPROFILE": r"C:\Users\ann", "APPDATA": r"C:\Users\ann\AppData\Roaming"}
WINDOWS |= {"LOCALAPPDATA": r"C:\Users\ann\AppData\Local"}

ON_WINDOWS = {
    ".npmrc": r"C:\Users\ann\.npmrc",
    ".yarnrc.yml": r"C:\Users\ann\.yarnrc.yml",
    "pip.conf": r"C:\Users\ann\AppData\Roaming\pip\pip.ini",
    "uv.toml": r"C:\Users\ann\AppData\Roaming\uv\uv.toml",
    ".pypirc": r"C:\Users\ann\.pypirc",
    "docker/config.json": r"C:\Users\ann\.docker\config.json",
    "registries.conf.d/pkgrepo.conf": r"C:\Users\ann\AppData\Roaming\containers\registries.conf.d\pkgrepo.conf",
    "cargo/config.toml": r"C:\Users\ann\.cargo\config.toml",
    "cargo/credentials.toml": r"C:\Users\ann\.cargo\credentials.toml",
    ".gemrc": r"C:\Users\ann\.gemrc",
    "gem/credentials": r"C:\Users\ann\.gem\credentials",
    "bundle/config": r"C:\Users\ann\.bundle\config",
    "maven/settings.xml": r"C:\Users\ann\.m2\settings.xml",
    "gradle/init.gradle": r"C:\Users\ann\.gradle\init.d\pkgrepo.gradle",
    ".condarc": r"C:\Users\ann\.condarc",
    "go/env": r"C:\Users\ann\AppData\Roaming\go\env",
    ".netrc": r"C:\Users\ann\_netrc",
    "helm/repositories.yaml": r"C:\Users\ann\AppData\Roaming\helm\repositories.yaml",
    "poetry/config.toml": r"C:\Users\ann\AppData\Roaming\pypoetry\config.toml",
    "poetry/auth.toml": r"C:\Users\ann\AppData\Roaming\pypoetry\auth.toml",
}
ON_LINUX = {
    ".npmrc": "/home/ann/.npmrc",
    ".yarnrc.yml": "/home/ann/.yarnrc.yml",
    "pip.conf": "/home/ann/.config/pip/pip.conf",
    "uv.toml": "/home/ann/.config/uv/uv.toml",
    ".pypirc": "/home/ann/.pypirc",
    "docker/config.json": "/home/ann/.docker/config.json",
    "registries.conf.d/pkgrepo.conf": "/home/ann/.config/containers/registries.conf.d/pkgrepo.conf",
    "cargo/config.toml": "/home/ann/.cargo/config.toml",
    "cargo/credentials.toml": "/home/ann/.cargo/credentials.toml",
    ".gemrc": "/home/ann/.gemrc",
    "gem/credentials": "/home/ann/.gem/credentials",
    "bundle/config": "/home/ann/.bundle/config",
    "maven/settings.xml": "/home/ann/.m2/settings.xml",
    "gradle/init.gradle": "/home/ann/.gradle/init.d/pkgrepo.gradle",
    ".condarc": "/home/ann/.condarc",
    "go/env": "/home/ann/.config/go/env",
    ".netrc": "/home/ann/.netrc",
    "helm/repositories.yaml": "/home/ann/.config/helm/repositories.yaml",
    "poetry/config.toml": "/home/ann/.config/pypoetry/config.toml",
    "poetry/auth.toml": "/home/ann/.config/pypoetry/auth.toml",
}
VARIABLES = [
    (".npmrc", {"NPM_CONFIG_USERCONFIG": "/x/npmrc"}, "/x/npmrc"),
    ("pip.conf", {"PIP_CONFIG_FILE": "/x/pip.conf", "XDG_CONFIG_HOME": "/y"}, "/x/pip.conf"),
    ("pip.conf", {"XDG_CONFIG_HOME": "/y"}, "/y/pip/pip.conf"),
    ("docker/config.json", {"DOCKER_CONFIG": "/x"}, "/x/config.json"),
    ("cargo/config.toml", {"CARGO_HOME": "/x"}, "/x/config.toml"),
    ("helm/repositories.yaml", {"HELM_CONFIG_HOME": "/x"}, "/x/repositories.yaml"),
    ("gradle/init.gradle", {"GRADLE_USER_HOME": "/x"}, "/x/init.d/pkgrepo.gradle"),
    ("pip.conf", {"XDG_CONFIG_HOME": "relative"}, "/home/ann/.config/pip/pip.conf"),
    ("poetry/auth.toml", {"POETRY_CONFIG_DIR": "/x"}, "/x/auth.toml"),
]


def test_every_place_is_here() -> None:
    assert set(ON_WINDOWS) == set(ON_LINUX) == set(PLACES)


@pytest.mark.parametrize("place", ON_WINDOWS)
def test_places_on_windows(place: str) -> None:
    assert str(find_file(place, WINDOWS, "win32")) == ON_WINDOWS[place]


@pytest.mark.parametrize(
    ("place", "path"),
    [
        ("go/env", "Library/Application Support/go/env"),
        ("helm/repositories.yaml", "Library/Preferences/helm/repositories.yaml"),
        ("poetry/auth.toml", "Library/Application Support/pypoetry/auth.toml"),
        (".npmrc", ".npmrc"),
    ],
)
def test_places_on_macos(place: str, path: str) -> None:
    assert str(find_file(place, {"HOME": "/Users/ann"}, "darwin")) == f"/Users/ann/{path}"


@pytest.mark.parametrize("place", ON_LINUX)
def test_places_on_linux(place: str) -> None:
    assert str(find_file(place, {"HOME": "/home/ann"}, "linux")) == ON_LINUX[place]


def test_pip_on_macos_reads_its_older_folder_if_it_is_there(tmp_path: Path) -> None:
    environ = {"HOME": str(tmp_path)}
    usual, older = tmp_path / ".config/pip/pip.conf", tmp_path / "Library/Application Support/pip/pip.conf"
    assert local_file("pip.conf", environ, "darwin") == usual
    older.parent.mkdir(parents=True)
    assert local_file("pip.conf", environ, "darwin") == older
    assert local_file("pip.conf", environ, "linux") == usual
    assert local_file("pip.conf", {**environ, "PIP_CONFIG_FILE": "/x"}, "darwin") == Path("/x")


@pytest.mark.parametrize(("place", "environ", "path"), VARIABLES)
def test_variables_of_the_tools_count_first(place: str, environ: dict[str, str], path: str) -> None:
    assert str(find_file(place, {"HOME": "/home/ann", **environ}, "linux")) == path
