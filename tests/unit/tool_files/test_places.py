"""Where the files of tools are on each system."""

from __future__ import annotations

import pytest

from pkgrepo.tool_files.places import PLACES, find_file

WINDOWS = {"USERPROFILE": r"C:\Users\ann", "APPDATA": r"C:\Users\ann\AppData\Roaming"}
WINDOWS |= {"LOCALAPPDATA": r"C:\Users\ann\AppData\Local"}

ON_WINDOWS = {
    ".npmrc": r"C:\Users\ann\.npmrc",
    ".yarnrc.yml": r"C:\Users\ann\.yarnrc.yml",
}
ON_LINUX = {
    ".npmrc": "/home/ann/.npmrc",
    ".yarnrc.yml": "/home/ann/.yarnrc.yml",
}
VARIABLES = [
    (".npmrc", {"NPM_CONFIG_USERCONFIG": "/x/npmrc"}, "/x/npmrc"),
]


def test_every_place_is_here() -> None:
    assert set(ON_WINDOWS) == set(ON_LINUX) == set(PLACES)


@pytest.mark.parametrize("place", ON_WINDOWS)
def test_places_on_windows(place: str) -> None:
    assert str(find_file(place, WINDOWS, "win32")) == ON_WINDOWS[place]


@pytest.mark.parametrize("place", ON_LINUX)
def test_places_on_linux(place: str) -> None:
    assert str(find_file(place, {"HOME": "/home/ann"}, "linux")) == ON_LINUX[place]


@pytest.mark.parametrize(("place", "environ", "path"), VARIABLES)
def test_variables_of_the_tools_count_first(place: str, environ: dict[str, str], path: str) -> None:
    assert str(find_file(place, {"HOME": "/home/ann", **environ}, "linux")) == path
