"""Files that one process at a time writes, such as bundles."""

from pathlib import Path

import pytest

from pkgrepo.client.transfers.files import Draft
from pkgrepo.errors import Conflict


@pytest.mark.parametrize("replace", [True, False])
def test_one_process_writes_a_file_at_a_time(tmp_path: Path, *, replace: bool) -> None:
    path = tmp_path / "july.tar"
    with Draft(path, replace=replace, alone=True) as first:
        first.write(b"first")
        with pytest.raises(Conflict, match=f"another process writes {path} now: try again when it has ended"):
            Draft(path, replace=replace, alone=True)
        first.keep_durably(None)
        assert path.read_bytes() == b"first"
    assert [each.name for each in tmp_path.iterdir()] == ["july.tar"]
    with Draft(path, replace=True, alone=True) as second:
        second.write(b"2nd")
    assert path.read_bytes() == b"first", "it was not kept"
    assert [each.name for each in tmp_path.iterdir()] == ["july.tar"]


def test_what_a_killed_process_has_left_is_overwritten(tmp_path: Path) -> None:
    (tmp_path / ".july.tar.part").write_bytes(b"a long beginning")
    with Draft(tmp_path / "july.tar", replace=False, alone=True) as draft:
        draft.write(b"short")
        draft.keep_durably(None)
    assert {each.name: each.read_bytes() for each in tmp_path.iterdir()} == {"july.tar": b"short"}


def test_a_file_that_a_killed_process_has_finished_loses_its_second_name(tmp_path: Path) -> None:
    path, part = tmp_path / "july.tar", tmp_path / ".july.tar.part"
    part.write_bytes(b"july")
    path.hardlink_to(part)
    with pytest.raises(Conflict, match="there already"):
        Draft(path, replace=False, alone=True)
    assert {each.name: each.read_bytes() for each in tmp_path.iterdir()} == {"july.tar": b"july"}


@pytest.mark.parametrize("moved", [True, False])
def test_what_a_killed_process_has_finished_is_not_overwritten(tmp_path: Path, *, moved: bool) -> None:
    path, part = tmp_path / "july.tar", tmp_path / ".july.tar.part"
    part.write_bytes(b"july")
    path.hardlink_to(part)
    kept = path.rename(tmp_path / "kept.tar") if moved else path
    with Draft(path, replace=True, alone=True) as draft:
        draft.write(b"aug")
        assert kept.read_bytes() == b"july"
    assert {each.name for each in tmp_path.iterdir()} == {kept.name}
    assert kept.read_bytes() == b"july", "the new one was not kept"


def test_a_link_in_place_of_the_draft_is_not_followed(tmp_path: Path) -> None:
    (tmp_path / "other").write_bytes(b"other")
    (tmp_path / ".july.tar.part").symlink_to(tmp_path / "other")
    with pytest.raises(OSError, match="symbolic links"):
        Draft(tmp_path / "july.tar", replace=False, alone=True)
    assert (tmp_path / "other").read_bytes() == b"other"
