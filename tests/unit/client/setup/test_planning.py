"""Files of tools are written, written again, and undone; what is not ours stays as it is."""

from __future__ import annotations

import os
import stat
import sys
from pathlib import Path

import pytest
from attrs import evolve

from pkgrepo.client.printer import Printer
from pkgrepo.client.setup.planning import BACKUP, apply, merged, plan_undo, plan_write, show
from pkgrepo.client.setup.state import State
from pkgrepo.client.setup.tools import TOOLS, Tool, Wish
from pkgrepo.errors import Conflict, Invalid
from pkgrepo.tool_files.places import local_file
from tests.support.tool_programs import FOREIGN, StandIns

SERVER, REPOSITORY = "http://host.example:8081", "main/things"
WISH = Wish(
    url=f"{SERVER}/repositories/{REPOSITORY}",
    server=SERVER,
    host="host.example:8081",
    token="tok-one",
    publishes=True,
)


class Machine:
    """A home on which tools are set up."""

    def __init__(self, home: Path, platform: str = "linux") -> None:
        self.home, self.platform, self.state = home, platform, State()
        self.environ = {"HOME": str(home)}

    def paths(self, tool: Tool) -> dict[str, Path]:
        return {file.place: local_file(file.place, self.environ, sys.platform) for file in tool.files(WISH, StandIns())}

    def write(self, tool: Tool, wish: Wish = WISH, repository: str = REPOSITORY) -> bool:
        found = [
            (local_file(file.place, self.environ, sys.platform), tool.name, file)
            for file in tool.files(wish, StandIns())
        ]
        planned = plan_write(self.state, SERVER, repository, merged(found))
        for each in planned:
            if each.is_change:
                apply(each)
            self.state.changes = [one for one in self.state.changes if one.path != str(each.path)]
            self.state.changes += each.changes
        return any(each.is_change for each in planned)

    def undo(self, repository: str = REPOSITORY) -> list[str]:
        planned, told = plan_undo(self.state, SERVER, repository, ())
        for each in planned:
            if each.is_change:
                apply(each)
            self.state.changes = [one for one in self.state.changes if one.path != str(each.path)]
            self.state.changes += each.changes
        return told

    def files(self) -> dict[str, bytes]:
        return {str(each.relative_to(self.home)): each.read_bytes() for each in self.home.rglob("*") if each.is_file()}


@pytest.fixture
def machine(tmp_path: Path) -> Machine:
    return Machine(tmp_path)


every_tool = pytest.mark.parametrize("tool", TOOLS, ids=lambda each: each.name)


@every_tool
def test_files_that_were_not_there_are_made_and_removed(machine: Machine, tool: Tool) -> None:
    assert machine.write(tool)
    made = machine.files()
    assert made
    assert not any(BACKUP in name for name in made)
    for each in tool.files(WISH, StandIns()):
        mode = stat.S_IMODE(local_file(each.place, machine.environ, sys.platform).stat().st_mode)
        assert not each.private or mode == 0o600
    assert not machine.write(tool)
    assert machine.files() == made
    assert machine.undo() == []
    assert (machine.files(), machine.state.changes) == ({}, [])


@every_tool
@pytest.mark.parametrize("newline", ["\n", "\r\n"], ids=["unix", "windows"])
def test_the_rest_of_a_file_stays_and_undo_gives_the_bytes_from_before(
    machine: Machine, tool: Tool, newline: str
) -> None:
    before = {}
    for place, path in machine.paths(tool).items():
        if FOREIGN[place] is not None:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(FOREIGN[place].replace("\n", newline).encode())
            path.chmod(0o644)
            before[path] = path.read_bytes()
    assert machine.write(tool)
    for path, data in before.items():
        lines = path.read_bytes().splitlines(keepends=True)
        stripped = [line.rstrip(b"\r\n,") for line in lines]
        missing = [line for line in data.splitlines() if line.strip() and line.rstrip(b",") not in stripped]
        assert [line for line in missing if b"replaced" not in line] == []
        assert newline != "\r\n" or all(line.endswith(b"\r\n") for line in lines)
        assert path.with_name(path.name + BACKUP).read_bytes() == data
    written = machine.files()
    assert not machine.write(tool)
    assert machine.files() == written
    assert machine.undo() == []
    assert {path: path.read_bytes() for path in before} == before
    assert machine.files().keys() == {str(path.relative_to(machine.home)) for path in before}
    assert all(stat.S_IMODE(path.stat().st_mode) == 0o644 for path in before)


@every_tool
def test_a_diff_shows_no_secret(machine: Machine, tool: Tool, capsys: pytest.CaptureFixture[str]) -> None:
    for place, path in machine.paths(tool).items():
        if FOREIGN[place] is not None:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(FOREIGN[place])
    found = [
        (local_file(file.place, machine.environ, sys.platform), tool.name, file)
        for file in tool.files(WISH, StandIns())
    ]
    show(Printer(as_json=False), plan_write(State(), SERVER, REPOSITORY, merged(found)), WISH.token)
    shown = capsys.readouterr().out
    assert "+++" in shown
    assert "tok-one" not in shown
    assert "hidden-" not in shown  # how the secrets in the foreign files begin


@every_tool
def test_another_token_takes_the_place_of_the_first(machine: Machine, tool: Tool) -> None:
    machine.write(tool)
    machine.write(tool, evolve(WISH, token="tok-two"))
    assert not any(b"tok-one" in data for data in machine.files().values())
    assert machine.undo() == []
    assert machine.files() == {}


NPM = TOOLS[0]


def test_what_a_person_adds_later_stays(machine: Machine) -> None:
    path = machine.home / ".npmrc"
    path.write_text("fund=false\n")
    machine.write(NPM)
    path.write_text("first=1\n" + path.read_text() + "last=1\n")
    assert machine.undo() == []
    assert path.read_text() == "first=1\nfund=false\nlast=1\n"
    assert machine.state.changes == []


def test_lines_that_were_changed_since_are_left_and_named(machine: Machine) -> None:
    machine.write(NPM)
    path = machine.home / ".npmrc"
    path.write_text(path.read_text().replace("tok-one", "mine"))
    [told] = machine.undo()
    assert str(path) in told
    assert "changed since" in told
    assert "_authToken=mine" in path.read_text()
    assert len(machine.state.changes) == 1
    path.write_text("fund=false\n")
    assert machine.undo() == []
    assert (path.read_text(), machine.state.changes) == ("fund=false\n", [])


def test_what_is_no_file_is_refused(machine: Machine) -> None:
    found = [(Path(os.devnull), "npm", file) for file in NPM.files(WISH, StandIns())]
    with pytest.raises(Invalid, match="no file"):
        plan_write(State(), SERVER, REPOSITORY, merged(found))


def test_two_repositories_are_undone_in_the_order_of_their_names_only_backwards(machine: Machine) -> None:
    path = machine.home / ".npmrc"
    path.write_text("registry=http://other.example/\n")
    other = Wish(url=f"{SERVER}/repositories/main/b", server=SERVER, token="tok-b")
    machine.write(NPM)
    machine.write(NPM, other, "main/b")
    [told] = machine.undo()
    assert "undo main/b first" in told
    assert machine.undo("main/b") == []
    assert machine.undo() == []
    assert path.read_text() == "registry=http://other.example/\n"
    assert not path.with_name(".npmrc" + BACKUP).exists()


def test_a_link_stays_one(tmp_path: Path) -> None:
    target = tmp_path / "dotfiles" / "npmrc"
    target.parent.mkdir()
    target.write_text("fund=false\n")
    (tmp_path / ".npmrc").symlink_to(target)
    real = Path(os.path.realpath(tmp_path / ".npmrc"))
    found = [(real, "npm", file) for file in NPM.files(WISH, StandIns())]
    [planned] = plan_write(State(), SERVER, REPOSITORY, merged(found))
    apply(planned)
    assert (tmp_path / ".npmrc").is_symlink()
    assert "tok-one" in target.read_text()


def test_a_file_that_changes_while_one_is_asked_is_not_written(machine: Machine) -> None:
    path = machine.home / ".npmrc"
    found = [(path, "npm", file) for file in NPM.files(WISH, StandIns())]
    [planned] = plan_write(State(), SERVER, REPOSITORY, merged(found))
    path.write_text("other=1\n")
    with pytest.raises(Conflict, match="changed while you were asked"):
        apply(planned)
    assert path.read_text() == "other=1\n"


def test_a_file_stays_private_until_no_token_is_left_in_it(machine: Machine) -> None:
    [npm] = [each for each in TOOLS if each.name == "npm"]
    path = machine.home / ".npmrc"
    path.write_text("audit=false\n")
    path.chmod(0o644)
    machine.write(npm, evolve(WISH, scope="@one"))
    other = evolve(WISH, url=f"{SERVER}/repositories/main/other", scope="@two", token="tok-two")
    machine.write(npm, other, "main/other")
    assert machine.undo() == []
    assert "tok-one" not in path.read_text()
    assert "tok-two" in path.read_text()
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert machine.undo("main/other") == []
    assert (path.read_text(), stat.S_IMODE(path.stat().st_mode)) == ("audit=false\n", 0o644)


def test_a_file_that_was_made_for_two_repositories_is_removed_with_the_last(machine: Machine) -> None:
    [npm] = [each for each in TOOLS if each.name == "npm"]
    machine.write(npm, evolve(WISH, scope="@one"))
    machine.write(npm, evolve(WISH, url=f"{SERVER}/repositories/main/other", scope="@two"), "main/other")
    assert machine.undo() == []
    assert machine.undo("main/other") == []
    assert (machine.files(), machine.state.changes) == ({}, [])
