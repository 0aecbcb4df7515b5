"""Names of a server become names of files, on Linux and on Windows."""

import pytest

from pkgrepo.client.transfers.local_names import check_name
from pkgrepo.errors import Invalid

FINE = [
    "demo-1.0.tgz",
    ".hidden",
    "console.log",
    "com10.txt",
    "a b",
    "übung.whl",
    "conda.yaml",
    "nul-1.0.tar.gz",
    "@scope",
]
NOWHERE = ["", ".", "..", "...", "a/b", "a\\b", "..\\..\\x", "a\x00b", "a\nb"]
NOT_ON_WINDOWS = [
    *("a:b", "C:", "x?.txt", "x*", 'a"b', "a<b", "a>b", "a|b", "end.", "end "),
    *("con", "NUL", "nul.txt", "Com1.tar.gz", "LPT9", "aux .txt", "com¹", "CONIN$"),
]


@pytest.mark.parametrize("name", FINE)
@pytest.mark.parametrize("windows", [False, True])
def test_names_stay_as_they_are(name, windows):
    assert check_name(name, windows=windows) == name


@pytest.mark.parametrize("name", NOWHERE)
@pytest.mark.parametrize("windows", [False, True])
def test_what_leaves_the_folder_is_refused(name, windows):
    with pytest.raises(Invalid, match="is no name of a file"):
        check_name(name, windows=windows)


@pytest.mark.parametrize("name", NOT_ON_WINDOWS)
def test_devices_and_streams_of_windows_are_refused_there(name):
    assert check_name(name, windows=False) == name
    with pytest.raises(Invalid, match="is no name of a file on Windows"):
        check_name(name, windows=True)
