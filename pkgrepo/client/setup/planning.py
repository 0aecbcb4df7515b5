"""
What writing or undoing changes in the files of tools.

===============================  ==========================================================================
of a repository in a file        what writing it again does
===============================  ==========================================================================
nothing, or only older changes   the entries are put into the file as it is
a change whose lines are there   it is undone in memory, and the entries are put into what was before
a change whose lines are others  the entries are put into the file as it is; both changes are kept
===============================  ==========================================================================
"""

from __future__ import annotations

import os
import stat
from collections.abc import Iterable, Mapping, Sequence
from difflib import unified_diff
from pathlib import Path

import click
import msgspec
from attrs import field, frozen

from pkgrepo.client.printer import Printer
from pkgrepo.client.setup.masking import masked
from pkgrepo.client.setup.state import Change, State, hunks_of, is_gone, undone
from pkgrepo.client.terminal import printable
from pkgrepo.errors import Conflict, Invalid
from pkgrepo.small_files import OWNER_ONLY, replace_file
from pkgrepo.tool_files.editing import edit
from pkgrepo.tool_files.values import Entry, ToolFile

BACKUP = ".before-pkgrepo"
_BOM = "\ufeff"


@frozen
class Planned:
    """
    A file as it is (``found``, None if it does not exist) and as it is to be (None: removed).

    ``changes`` are those of this file that remain, with the new one, if there is one; ``is_first`` is whether that is
    the first one. ``mode`` is what the file is to have, None for the one that it has.
    """

    path: Path
    tools: tuple[str, ...]
    found: str | None = field(repr=False)
    wanted: str | None = field(repr=False)
    private: bool
    mode: int | None
    changes: tuple[Change, ...] = field(repr=False)
    is_first: bool = False

    @property
    def is_change(self) -> bool:
        """Whether something is to be done."""
        return self.found != self.wanted


def plan_write(
    state: State, server: str, repository: str, files: Mapping[Path, tuple[tuple[str, ...], ToolFile]]
) -> list[Planned]:
    """What writing the files does. :raises Conflict: a file cannot be changed; :raises OSError: it cannot be read"""
    return [_planned(state, server, repository, path, *each) for path, each in files.items()]


def merged(files: Iterable[tuple[Path, str, ToolFile]]) -> dict[Path, tuple[tuple[str, ...], ToolFile]]:
    """The files of several tools by their paths, each with the names of its tools."""
    found: dict[Path, tuple[tuple[str, ...], ToolFile]] = {}
    for path, tool, file in files:
        tools, before = found.get(path, ((), None))
        entries: list[Entry] = list(before.entries) if before else []
        entries += [each for each in file.entries if each not in entries]
        private = file.private or (before is not None and before.private)
        names = tools if tool in tools else (*tools, tool)
        found[path] = names, ToolFile(file.place, file.syntax, tuple(entries), private=private)
    return found


def plan_undo(state: State, server: str, repository: str, tools: Sequence[str]) -> tuple[list[Planned], list[str]]:
    """
    What undoing does for the changes of ``tools``, or all; and sentences about files that are no longer as written.

    :raises OSError: a file cannot be read
    """
    paths = dict.fromkeys(each.path for each in state.of(server, repository) if not tools or set(each.tools) & {*tools})
    planned, told = [], []
    for text in paths:
        path, ours = Path(text), [each for each in state.of(server, repository) if each.path == text]
        here = [each for each in state.changes if each.path == text]
        others = [each for each in here if each not in ours]
        now = found = _read(path)
        kept = list(ours)
        names = tuple(dict.fromkeys(tool for each in ours for tool in each.tools))
        if found is None:
            told.append(f"{path} is not there any more")
            kept = []
        else:
            for change in reversed(ours):
                try:
                    now = undone(now or "", change.hunks)
                except Conflict:
                    if is_gone(now or "", change):
                        kept.remove(change)
                        continue
                    later = [each.repository for each in others if here.index(each) > here.index(change)]
                    why = f"undo {', '.join(dict.fromkeys(later))} first" if later else "remove what is left by hand"
                    told.append(f"{path} was changed since, and is left as it is: {why}")
                    break
                kept.remove(change)
        made = bool(ours) and not ours[0].existed and not kept and not others
        wanted = None if made and not (now or "").strip() else now
        mode = ours[0].mode if not kept and not others else None
        remaining = tuple(each for each in here if each in others or each in kept)
        if others and not kept:
            remaining = _inherited(remaining, ours[0], is_first=here[0] in ours)
        planned.append(Planned(path, names, found, wanted, private=False, mode=mode, changes=remaining))
    return planned, told


def show(printer: Printer, planned: Iterable[Planned], *secrets: str) -> None:
    """Print what changes as unified diffs without secrets; on standard error, if a program reads the output."""
    for each in planned:
        old = masked(each.found or "", *secrets).splitlines()
        new = masked(each.wanted or "", *secrets).splitlines()
        names = [str(each.path) if text is not None else os.devnull for text in (each.found, each.wanted)]
        for number, line in enumerate(unified_diff(old, new, names[0], names[1], lineterm="", n=2)):
            text = printable(line.rstrip().expandtabs(4))
            if printer.coloured and number > 1:
                text = click.style(text, fg={"+": "green", "-": "red", "@": "cyan"}.get(line[:1]))
            click.echo(text, err=printer.as_json)
        if [masked(line) for line in old] == new and each.is_change:
            click.echo(printable(f"{each.path}: only the token changes"), err=printer.as_json)


def apply(planned: Planned) -> None:
    """
    Write a file, or remove it; what was there before the first change is kept beside it.

    :raises Conflict: it was changed since it was read; :raises OSError: it cannot be written, and is unchanged
    """
    path = planned.path
    if _read(path) != planned.found:
        raise Conflict(f"{path} was changed while you were asked; nothing is done to it")
    backup = path.with_name(path.name + BACKUP)
    if planned.wanted is None:
        path.unlink()
        backup.unlink(missing_ok=True)
        return
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    mode = stat.S_IMODE(path.stat().st_mode) if planned.found is not None else 0o666
    data = planned.wanted.encode("utf-8")
    if planned.found is not None and planned.is_first:
        replace_file(backup, planned.found.encode("utf-8"), OWNER_ONLY)
    replace_file(path, data, OWNER_ONLY if planned.private or mode & 0o077 == 0 else mode)
    wanted_mode = OWNER_ONLY if planned.private else planned.mode
    if planned.found is not None and os.name != "nt":
        path.chmod(mode if wanted_mode is None else wanted_mode)
    if not planned.changes and backup.exists() and backup.read_bytes() == data:
        backup.unlink()


def _planned(state: State, server: str, repository: str, path: Path, tools: tuple[str, ...], file: ToolFile) -> Planned:
    found = _read(path)
    text = str(path)
    ours = [each for each in state.of(server, repository) if each.path == text]
    kept = list(ours)
    base = found
    while kept and base is not None:
        try:
            base = undone(base, kept[-1].hunks)
        except Conflict:
            break
        kept.pop()
    tools = tuple(dict.fromkeys((*(name for each in ours for name in each.tools), *tools)))
    try:
        wanted = _edited(file, base or "", f"pkgrepo setup {repository}")
    except Conflict as error:
        raise Conflict(f"{path}: {error}; put this into it by hand: pkgrepo setup {repository}") from None
    first = ours[0] if ours else None
    mode = first.mode if first else _loose_mode(path) if file.private else None
    change = Change(
        server=server,
        repository=repository,
        tools=list(tools),
        path=text,
        existed=first.existed if first else found is not None,
        hunks=hunks_of(base or "", wanted),
        mode=mode,
    )
    before = [each for each in state.changes if each.path == text]
    remaining = [each for each in before if each not in ours or each in kept]
    changes = (*remaining, *([change] if change.hunks else []))
    is_first = not before
    return Planned(path, tools, found, wanted, private=file.private, mode=None, changes=changes, is_first=is_first)


def _inherited(changes: Sequence[Change], undone_one: Change, *, is_first: bool) -> tuple[Change, ...]:
    """The changes that remain, of which the first knows the mode of the file before, and whether the file was made."""
    first, *rest = changes
    mode = undone_one.mode if first.mode is None else first.mode
    existed = undone_one.existed if is_first else first.existed
    return msgspec.structs.replace(first, mode=mode, existed=existed), *rest


def _edited(file: ToolFile, text: str, mark: str) -> str:
    bom = _BOM if text.startswith(_BOM) else ""
    return bom + edit(file, text.removeprefix(_BOM), mark)


def _loose_mode(path: Path) -> int | None:
    """The mode of a file that others than its owner can read, for when it need not be private any more."""
    try:
        mode = stat.S_IMODE(path.stat().st_mode)
    except FileNotFoundError:
        return None
    return mode if mode & 0o077 else None


def _read(path: Path) -> str | None:
    if path.exists() and not path.is_file():  # such as /dev/null, by which variables turn a file off
        raise Invalid(f"{path} is no file that could be changed")
    try:
        return path.read_bytes().decode("utf-8")
    except FileNotFoundError:
        return None
    except UnicodeDecodeError:
        raise Invalid(f"{path} is not in UTF-8") from None
