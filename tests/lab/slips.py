"""
The command behind ``bin/slips``: which slips in a room would no test notice?

The tests are those that mirror the room in tests/unit, or without any those of the room around it, and those of
tests/contracts that are named after it; for a file that has none of its own name, also those of both layers that import
it; and last those given by hand. They have to pass first without any slip.
"""

from __future__ import annotations

import argparse
import ast
import difflib
import random
import signal
import sys
from collections.abc import Sequence
from functools import cache
from pathlib import Path

from attrs import frozen

from tests.support.server_process import ROOT

from .copies import Copy, copied
from .sites import Slip, defaults, slips

PACKAGE = "pkgrepo"
LAYERS = ("tests/unit", "tests/contracts")


@frozen
class Place:
    """A slip of one file, which is named from the root of the checkout."""

    file: str
    slip: Slip


def files_of(room: str, root: Path = ROOT) -> Sequence[str]:
    """
    The files of a room, named from the root: ``replication``, ``pkgrepo/replication`` or a file of it.

    :raises FileNotFoundError: there is no such room
    """
    place = root / PACKAGE / room.removeprefix(f"{PACKAGE}/").rstrip("/")
    found = sorted(place.rglob("*.py")) if place.is_dir() else [place.with_suffix(".py")]
    if not found or not found[0].is_file():
        raise FileNotFoundError(f"{place.relative_to(root)} has no files of Python")
    return [str(each.relative_to(root)) for each in found]


def chosen(places: Sequence[Place], count: int, seed: int) -> Sequence[Place]:
    """So many of them by chance, as many of each kind as there are; at most one of each line."""
    draw = random.Random(seed)
    kinds: dict[str, list[Place]] = {}
    for each in places:
        kinds.setdefault(each.slip.kind, []).append(each)
    for of_kind in kinds.values():
        draw.shuffle(of_kind)
    result: list[Place] = []
    lines: set[tuple[str, int]] = set()
    while len(result) < count and kinds:
        kind = draw.choice(sorted(kinds))
        each = kinds[kind].pop()
        if not kinds[kind]:
            del kinds[kind]
        if (each.file, each.slip.line) not in lines:
            lines.add((each.file, each.slip.line))
            result.append(each)
    return result


@cache
def nearest(file: str, root: Path = ROOT) -> Sequence[str]:
    """The files of tests that are nearest to this file, the one of the same name first."""
    inside = Path(file).relative_to(PACKAGE).with_suffix("")
    module = ".".join((PACKAGE, *inside.parts))
    mirror = root / "tests" / "unit" / inside.parent
    own = [mirror / f"test_{inside.name}.py", *sorted((root / "tests" / "unit" / inside).rglob("test_*.py"))]
    rooms_around = (root / "tests" / "unit" / each for each in inside.parents if each.parts)
    room = next((found for each in rooms_around if (found := sorted(each.glob("test_*.py")))), [])
    rooms = {f"test_{part}.py" for part in inside.parts}
    layers = [path for layer in LAYERS for path in sorted((root / layer).rglob("test_*.py"))]
    named = [path for path in layers if path.parent.name == "contracts" and path.name in rooms]
    importing = [path for path in layers if not own[0].is_file() and _imports(path.read_text(), module)]
    found = [path for path in (*own, *room, *named, *importing) if path.is_file()]
    return [str(path.relative_to(root)) for path in dict.fromkeys(found)]


def _imports(text: str, module: str) -> bool:
    parent, _, name = module.rpartition(".")
    return parent in text and any(
        (isinstance(node, ast.ImportFrom) and (node.module == module or (node.module == parent and _has(node, name))))
        or (isinstance(node, ast.Import) and _has(node, module))
        for node in ast.walk(ast.parse(text))
    )


def _has(node: ast.Import | ast.ImportFrom, name: str) -> bool:
    return any(each.name == name for each in node.names)


def difference(place: Place, source: bytes) -> str:
    """What the slip changes, as a unified diff."""
    before, after = source.decode().splitlines(), place.slip.apply(source).decode().splitlines()
    return "\n".join(difflib.unified_diff(before, after, place.file, place.file, n=2, lineterm=""))


def tried(copy: Copy, places: Sequence[Place], by_hand: Sequence[str], limit_s: float) -> Sequence[Place]:
    """Try each slip and tell what came of it; those that survived."""
    survived = []
    for at, each in enumerate(places, 1):
        source = (copy.folder / each.file).read_bytes()
        tests = list(dict.fromkeys([*nearest(each.file, copy.folder), *by_hand]))
        with copy.changed(each.file, each.slip.apply(source)):
            outcome = copy.run(tests, limit_s)
        what = f"{at}/{len(places)} {each.file}:{each.slip.line} {each.slip.kind}"
        if outcome.passed:
            survived.append(each)
            _say(f"{what}: survived {outcome.by}\n{difference(each, source)}")
        else:
            _say(f"{what}: caught by {outcome.by} ({outcome.seconds:.0f} s)")
    return survived


def main(arguments: Sequence[str]) -> int:
    """Do what the command line asks for. The exit status: 1 if a slip survived, 2 if the tests fail without any."""
    parser = argparse.ArgumentParser(prog="bin/slips", description="Plausible slips in a room: do its tests notice?")
    parser.add_argument("room", help="such as repositories/policy or replication/files.py")
    parser.add_argument("tests", nargs="*", help="files or folders of tests to run after the nearest ones")
    parser.add_argument("--count", type=int, default=20, help="how many (default 20)")
    parser.add_argument("--seed", type=int, default=None, help="choose the same ones again")
    parser.add_argument("--limit", type=float, default=300, metavar="SECONDS", help="for the tests of one slip (300)")
    options = parser.parse_args(arguments)
    seed = random.SystemRandom().randrange(1_000_000) if options.seed is None else options.seed
    try:
        files = files_of(options.room)
    except FileNotFoundError as error:
        parser.error(str(error))
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(128 + signal.SIGTERM))  # so that the copy is removed
    with copied() as copy:  # from which all is read, as the checkout may go on
        optional = defaults(ast.parse(path.read_bytes()) for path in sorted((copy.folder / PACKAGE).rglob("*.py")))
        places = [Place(file, each) for file in files for each in slips((copy.folder / file).read_bytes(), optional)]
        selected = sorted(chosen(places, options.count, seed), key=lambda each: (each.file, each.slip.line))
        _say(f"{options.room}: {len(selected)} of {len(places)} slips, --seed {seed}")
        changed = dict.fromkeys(each.file for each in selected)
        tests = list(dict.fromkeys(test for file in changed for test in nearest(file, copy.folder)))
        unchanged = copy.run([*tests, *options.tests], limit_s=10 * options.limit)
        if not unchanged.passed or unchanged.by:
            _say(f"without any slip: {unchanged.by}")
            return 2
        _say(f"without any slip all tests pass ({unchanged.seconds:.0f} s)")
        survived = tried(copy, selected, options.tests, options.limit)
    _say(f"{options.room}: {len(selected) - len(survived)} of {len(selected)} slips were caught, --seed {seed}")
    return 1 if survived else 0


def _say(text: str) -> None:
    print(text, flush=True)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
