"""Slips of bin/slips: which ones there are, that they are tried in a copy only, and what is told of them."""

from __future__ import annotations

import ast
import subprocess
from collections.abc import Iterator
from pathlib import Path
from unittest.mock import ANY

import pytest

from tests.lab.copies import Copy, Outcome, copied
from tests.lab.sites import defaults, slips
from tests.lab.slips import Place, chosen, difference, files_of, nearest, tried
from tests.support.server_process import ROOT

OUTSIDE = '''"""Not a == b."""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    X = a == b

class Seam(Interface):
    def of(a, b):
        return a == b

def f(a: "b == c"):
    """Whether a == b."""
    assert a == 1
    log.info("text", a == b)
    raise Problem(f"{a == 1}", a == b)

class C:
    def __str__(self):
        return "a" if self.a == 1 else "b"
'''


def made_of(text: str) -> set[tuple[str, str]]:
    """The kinds of slips of a text, and what each makes of it."""
    source = text.encode()
    return {(each.kind, each.apply(source).decode()) for each in slips(source, defaults([ast.parse(source)]))}


@pytest.mark.parametrize(
    ("text", "kind", "expected"),
    [
        ("a == b", "compare negated", "a != b"),
        ("(a) is  not (b)", "compare negated", "(a) is (b)"),
        ("a not in b", "compare negated", "a in b"),
        ("ä < b", "compare negated", "ä >= b"),
        ("ä < b", "boundary", "ä <= b"),
        ("a <= (\n    b)", "boundary", "a < (\n    b)"),
        ("a > 1", "one more", "a > 2"),
        ("a[1:]", "one less", "a[0:]"),
        ("a + 1", "one more", "a + 2"),
        ("x = (a or b) and c", "and/or", "x = (a or b) or c"),
        ("if (a or b) and c: d()", "condition dropped", "if (True) and c: d()"),
        ("if a or b: d()", "condition dropped", "if a or False: d()"),
        ("def f() -> bool:\n    return a and b", "condition dropped", "def f() -> bool:\n    return a and True"),
        ("[a for a in b if c]", "filter dropped", "[a for a in b if True]"),
        ("not (a or b)", "not removed", "(a or b)"),
        ("def f():\n    return True", "returns the opposite", "def f():\n    return False"),
        ("if a:\n    raise Problem(\n        a)", "raise removed", "if a:\n    pass"),
        ("async def f():\n    await a.check_read(b)", "check removed", "async def f():\n    pass"),
        ("_check(b)", "check removed", "pass"),
        ("any(a)", "any/all", "all(a)"),
        ("min(a, b)", "min/max", "max(a, b)"),
        ("def f(a, b=1): pass\nf(1, b=(2))", "argument dropped", "def f(a, b=1): pass\nf(1)"),
        ("def f(*, a=1, b): pass\nf(a=2, b=3)", "argument dropped", "def f(*, a=1, b): pass\nf(b=3)"),
        ("class A:\n    b: int = 1\nA(b=2)", "argument dropped", "class A:\n    b: int = 1\nA()"),
    ],
)
def test_what_a_slip_makes_of_a_text(text: str, kind: str, expected: str) -> None:
    assert (kind, expected) in made_of(text)


@pytest.mark.parametrize(
    "text",
    [
        "x: 'a == b'",
        "def f(a): pass\nf(a=1)",
        "def f(a=1): pass\nclass A:\n    def f(a): pass\nf(a=1)",
        "x = 404 + 500",
        "raise NotImplementedError",
        "send(b)",
    ],
)
def test_no_slip(text: str) -> None:
    assert made_of(text) == set()


def test_texts_logs_annotations_and_interfaces_have_none() -> None:
    assert {kind for kind, _ in made_of(OUTSIDE)} == {"raise removed"}


def test_all_slips_of_a_room_are_python_and_a_seed_chooses_the_same_ones() -> None:
    optional = defaults(ast.parse((ROOT / file).read_bytes()) for file in files_of("replication"))
    places = [
        Place(file, each) for file in files_of("replication") for each in slips((ROOT / file).read_bytes(), optional)
    ]
    some = chosen(places, 20, seed=7)
    assert some == chosen(places, 20, seed=7) != chosen(places, 20, seed=8)
    assert len({(each.file, each.slip.line) for each in some}) == 20
    assert len({each.slip.kind for each in some}) > 5
    for each in some:
        source = (ROOT / each.file).read_bytes()
        ast.parse(each.slip.apply(source))
        assert each.slip.apply(source) != source
        assert difference(each, source).count("\n+") >= 2


def test_a_room_is_a_folder_or_a_file_with_or_without_the_name_of_the_package() -> None:
    assert files_of("replication/files.py") == files_of("pkgrepo/replication/files") == ["pkgrepo/replication/files.py"]
    assert "pkgrepo/importing/servers/nexus.py" in files_of("importing/")
    with pytest.raises(FileNotFoundError, match="pkgrepo/nowhere"):
        files_of("nowhere")


def test_the_test_of_the_same_name_is_the_nearest_and_without_one_those_that_import_the_file_follow_its_room() -> None:
    room = sorted(str(each.relative_to(ROOT)) for each in (ROOT / "tests/unit/repositories/policy").glob("test_*.py"))
    rules, contracts = "tests/unit/repositories/policy/test_rules.py", "tests/contracts/test_policy.py"
    others = [each for each in room if each != rules]
    assert nearest("pkgrepo/repositories/policy/rules.py") == [rules, *others, contracts]
    found = nearest("pkgrepo/repositories/policy/conditions.py")
    assert found[: len(room) + 1] == [*room, contracts]
    assert "tests/unit/proxy/resolving/test_rules.py" in found[len(room) + 1 :]
    around = nearest("pkgrepo/formats/container/imported/registry.py")  # whose room has none
    assert around
    assert {Path(each).parent for each in around} == {Path("tests/unit/formats/container")}


@pytest.fixture
def copy(tmp_path: Path) -> Iterator[Copy]:
    """A copy of a checkout of one file and its test, which notices what it does but not what it returns for 3."""
    root = tmp_path / "checkout"
    files = {
        "pyproject.toml": '[tool.pytest.ini_options]\npythonpath = ["."]\naddopts = ["--import-mode=importlib"]\n',
        "pkgrepo/__init__.py": "",
        "pkgrepo/room/small.py": "def small(a):\n    if a < 3:\n        return True\n    return False\n",
        "tests/unit/room/test_small.py": "from pkgrepo.room.small import small\n\n"
        "def test_small():\n    assert small(2)\n    assert not small(4)\n",
        "ignored": "not copied",
        ".gitignore": "ignored\n",
    }
    for name, text in files.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(text)
    subprocess.run(["git", "init", "-q", root], check=True)
    with copied(root) as made:
        yield made


def test_slips_are_caught_or_survive_and_the_file_is_as_before(copy: Copy, capsys: pytest.CaptureFixture[str]) -> None:
    file = "pkgrepo/room/small.py"
    source = (copy.folder / file).read_bytes()
    wanted = [("boundary", 2), ("returns the opposite", 3)]
    places = [Place(file, each) for each in slips(source, {}) if (each.kind, each.line) in wanted]
    assert copy.run(nearest(file, copy.folder), 120) == Outcome(passed=True, seconds=ANY)
    assert [(each.slip.kind, each.slip.line) for each in tried(copy, places, [], 120)] == wanted[:1]
    told = capsys.readouterr().out
    assert f"{file}:3 returns the opposite: caught by tests/unit/room/test_small.py::test_small (" in told
    assert "-    if a < 3:\n+    if a <= 3:\n" in told
    assert (copy.folder / file).read_bytes() == source
    assert not (copy.folder / "ignored").exists()


def test_a_slip_after_which_the_tests_do_not_end_is_caught(copy: Copy) -> None:
    file = "pkgrepo/room/small.py"
    with copy.changed(file, b"while True: pass\n"):
        assert copy.run(nearest(file, copy.folder), 3) == Outcome(passed=False, seconds=3, by="the limit of time")


def test_that_there_is_no_test_is_told(copy: Copy) -> None:
    (copy.folder / "tests/unit/room/test_small.py").write_text("")
    assert copy.run(nearest("pkgrepo/room/small.py", copy.folder), 120) == Outcome(
        passed=True, seconds=ANY, by="no tests"
    )
    assert copy.run([], 120) == Outcome(passed=True, seconds=0, by="no tests"), "others have run"
