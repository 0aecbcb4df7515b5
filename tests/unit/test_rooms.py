"""What the docstring of a room names is there: modules, rooms, classes and functions."""

from __future__ import annotations

import ast
import re
from keyword import iskeyword
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
ROOMS = sorted(
    each for each in (ROOT / "pkgrepo").rglob("__init__.py") if ast.get_docstring(ast.parse(each.read_text()))
)
NAME = re.compile(r"``([a-zA-Z_]\w*(?:\.[a-z_]\w*)*)``")


def defined(file: Path) -> set[str]:
    """The names that a module defines or imports, those in its classes and its parameters too."""
    found: set[str] = set()
    for node in ast.walk(ast.parse(file.read_text())):
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
            found.add(node.name)
        elif isinstance(node, (ast.Name, ast.arg)):
            found.add(node.id if isinstance(node, ast.Name) else node.arg)
        elif isinstance(node, ast.Attribute):
            found.add(node.attr)
        elif isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name):
            found.add(node.target.id)
    return found


@pytest.mark.parametrize("room", ROOMS, ids=lambda each: str(each.parent.relative_to(ROOT)))
def test_names_in_the_docstring_of_a_room_exist(room: Path) -> None:
    docstring = ast.get_docstring(ast.parse(room.read_text())) or ""
    folders = (room.parent, room.parent.parent, ROOT)
    in_code: set[str] = set()
    for name in NAME.findall(docstring):
        path = name.replace(".", "/")
        if (
            name.isupper()
            or iskeyword(name)
            or any((folder / f"{path}.py").exists() or (folder / path).is_dir() for folder in folders)
        ):
            continue
        in_code = in_code or set().union(*(defined(each) for each in room.parent.rglob("*.py")))
        assert name.rpartition(".")[2] in in_code, f"{room} names {name}, which is not there"
