"""
Where the files of tools are.

Each place has the environment variables that name the file or its folder, and its path below a base for each system.
A path begins with the name of a base in braces: the home, or on Windows the folders of applications.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path, PurePath, PurePosixPath, PureWindowsPath
from typing import Final

from attrs import frozen

LINUX: Final = "linux"
MACOS: Final = "darwin"
WINDOWS: Final = "win32"


@frozen
class Place:
    """
    Where a file is: at the value of the first of ``variables`` that is set, or at the path for the system.

    A variable may name the folder of the file: it is then written with the name of the file after a slash. ``macos`` is
    empty where it is the same as on Linux. On macOS the ``older`` path counts if its folder is there.
    """

    linux: str
    windows: str
    macos: str = ""
    variables: tuple[str, ...] = ()
    older: str = ""


PLACES: Final[Mapping[str, Place]] = {
    ".npmrc": Place("{home}/.npmrc", "{home}/.npmrc", variables=("NPM_CONFIG_USERCONFIG", "npm_config_userconfig")),
    ".yarnrc.yml": Place("{home}/.yarnrc.yml", "{home}/.yarnrc.yml"),
    "docker/config.json": Place(
        "{home}/.docker/config.json", "{home}/.docker/config.json", variables=("DOCKER_CONFIG/config.json",)
    ),
    "registries.conf.d/pkgrepo.conf": Place(
        "{config}/containers/registries.conf.d/pkgrepo.conf", "{roaming}/containers/registries.conf.d/pkgrepo.conf"
    ),
    "cargo/config.toml": Place(
        "{home}/.cargo/config.toml", "{home}/.cargo/config.toml", variables=("CARGO_HOME/config.toml",)
    ),
    "cargo/credentials.toml": Place(
        "{home}/.cargo/credentials.toml", "{home}/.cargo/credentials.toml", variables=("CARGO_HOME/credentials.toml",)
    ),
    ".gemrc": Place("{home}/.gemrc", "{home}/.gemrc"),
    "gem/credentials": Place("{home}/.gem/credentials", "{home}/.gem/credentials"),
    "bundle/config": Place(
        "{home}/.bundle/config", "{home}/.bundle/config", variables=("BUNDLE_USER_CONFIG", "BUNDLE_USER_HOME/config")
    ),
    "maven/settings.xml": Place("{home}/.m2/settings.xml", "{home}/.m2/settings.xml"),
    "gradle/init.gradle": Place(
        "{home}/.gradle/init.d/pkgrepo.gradle",
        "{home}/.gradle/init.d/pkgrepo.gradle",
        variables=("GRADLE_USER_HOME/init.d/pkgrepo.gradle",),
    ),
    ".condarc": Place("{home}/.condarc", "{home}/.condarc", variables=("CONDARC",)),
    "go/env": Place("{config}/go/env", "{roaming}/go/env", "{home}/Library/Application Support/go/env", ("GOENV",)),
    ".netrc": Place("{home}/.netrc", "{home}/_netrc", variables=("NETRC",)),
    "helm/repositories.yaml": Place(
        "{config}/helm/repositories.yaml",
        "{roaming}/helm/repositories.yaml",
        "{home}/Library/Preferences/helm/repositories.yaml",
        ("HELM_REPOSITORY_CONFIG", "HELM_CONFIG_HOME/repositories.yaml"),
    ),
    "pip.conf": Place(
        "{config}/pip/pip.conf",
        "{roaming}/pip/pip.ini",
        variables=("PIP_CONFIG_FILE",),
        older="{home}/Library/Application Support/pip/pip.conf",
    ),
    "uv.toml": Place("{config}/uv/uv.toml", "{roaming}/uv/uv.toml", variables=("UV_CONFIG_FILE",)),
    ".pypirc": Place("{home}/.pypirc", "{home}/.pypirc"),
    "poetry/config.toml": Place(
        "{config}/pypoetry/config.toml",
        "{roaming}/pypoetry/config.toml",
        "{home}/Library/Application Support/pypoetry/config.toml",
        ("POETRY_CONFIG_DIR/config.toml",),
    ),
    "poetry/auth.toml": Place(
        "{config}/pypoetry/auth.toml",
        "{roaming}/pypoetry/auth.toml",
        "{home}/Library/Application Support/pypoetry/auth.toml",
        ("POETRY_CONFIG_DIR/auth.toml",),
    ),
}


def find_file(place: str, environ: Mapping[str, str], platform: str) -> PurePath:
    """
    The path of a place on a ``platform`` of ``sys.platform``, whether the file exists or not.

    :raises KeyError: there is no such place
    """
    found = PLACES[place]
    kind = PureWindowsPath if platform == WINDOWS else PurePosixPath
    for each in found.variables:
        variable, _, name = each.partition("/")
        if value := environ.get(variable, ""):
            return kind(value) / name if name else kind(value)
    text = {WINDOWS: found.windows, MACOS: found.macos or found.linux}.get(platform, found.linux)
    base, _, below = text.partition("/")
    return kind(_base(base, environ, platform)) / below


def local_file(place: str, environ: Mapping[str, str], platform: str) -> Path:
    """The path of a place on this machine."""
    found, older = Path(find_file(place, environ, platform)), PLACES[place].older
    if platform == MACOS and older and not any(environ.get(each) for each in PLACES[place].variables):
        path = Path(older.replace("{home}", _base("{home}", environ, platform)))
        return path if path.parent.is_dir() else found
    return found


def _base(base: str, environ: Mapping[str, str], platform: str) -> str:
    home = environ.get("USERPROFILE" if platform == WINDOWS else "HOME", "") or str(Path.home())
    if base == "{home}":
        return home
    if base == "{roaming}":
        return environ.get("APPDATA", "") or str(PureWindowsPath(home, "AppData", "Roaming"))
    if base == "{local}":
        return environ.get("LOCALAPPDATA", "") or str(PureWindowsPath(home, "AppData", "Local"))
    folder = environ.get("XDG_CONFIG_HOME", "")
    return folder if folder.startswith("/") else f"{home}/.config"
