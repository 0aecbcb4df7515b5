"""What of a distribution runs before anybody calls it."""

from __future__ import annotations

import pytest

from pkgrepo.formats.python.inside import OF_SOURCE, look, shape_of
from tests.support.python_packages import make_sdist, make_wheel


@pytest.mark.parametrize(
    ("name", "found"),
    [
        ("demo/evil.pth", set()),
        ("evil.pth", {"pth"}),
        ("evil.PTH", {"pth"}),
        ("demo-1.0.data/purelib/evil.pth", {"pth"}),
        ("demo-1.0.data/data/lib/python3.12/site-packages/evil.pth", {"pth"}),
        ("sitecustomize.py", {"pth"}),
        ("usercustomize/__init__.py", {"pth"}),
        ("demo-1.0.data/platlib/sitecustomize.cpython-312.so", {"pth"}),
        ("demo-1.0.data/scripts/pip", {"executable"}),
        ("demo/sitecustomize.py", set()),
    ],
)
def test_what_a_wheel_brings_to_each_start_of_python(name: str, found: set[str]) -> None:
    filename, data = make_wheel("demo", "1.0", extra_files={name: b"import evil\n"})
    assert look(data, filename).words == found


def test_a_source_distribution_runs_when_it_is_built() -> None:
    filename, data = make_sdist("demo", "1.0")
    assert look(data, filename).words == {"install_script"}


MIT = b"Permission is hereby granted, free of charge, to any person obtaining a copy"


@pytest.mark.parametrize(
    ("fields", "said"),
    [
        ([], ("MIT",)),
        ([("License", "UNKNOWN")], ("MIT",)),
        ([("License-Expression", "MIT OR Apache-2.0")], ("Apache-2.0", "MIT")),
        ([("License", "Business Source License 1.1")], ("Business Source License 1.1", "MIT")),
        ([("Classifier", "License :: OSI Approved :: BSD License")], ("MIT",)),
    ],
)
def test_licences_are_those_that_the_metadata_declare_and_the_texts_beside_them(
    fields: list[tuple[str, str]], said: tuple[str, ...]
) -> None:
    files = {"demo-1.0.dist-info/licenses/LICENSE.txt": MIT, "demo/LICENSE": b"another"}
    filename, data = make_wheel("demo", "1.0", fields=fields, extra_files=files)
    assert look(data, filename).shape.licences == said
    filename, data = make_sdist("demo", "1.0", fields=fields)
    assert look(data, filename).shape.licences == tuple(each for each in said if fields and each in str(fields))


@pytest.mark.parametrize(
    ("marker", "needed"),
    [
        ('extra == "x"', False),
        ("extra=='x'", False),
        ('"x" == extra', False),
        ('python_version < "3" and extra == "x"', False),
        ('(python_version < "3" or os_name == "nt") and extra == "x"', False),
        ('extra == "x" or extra == "y"', False),
        ('((extra == "x"))', False),
        ('python_version < "3"', True),
        # pip asks for an extra without a name
        ('extra == ""', True),
        ('extra != "x"', True),
        ('extra == "x" or python_version > "2"', True),
        ('python_version > "2" or os_name == "posix" and (extra == "x")', True),
        ('(extra == "x" or os_name == "posix") and (extra == "x" or python_version > "2")', True),
        ("os_name != \"; extra == 'x'\"", True),
        ('os_name != "and extra == 1"', True),
        ('extra == "x")', True),
        (f'{"(" * 2000}extra == "x"', True),
    ],
)
def test_what_is_required_for_extras_alone_is_no_dependency(marker: str, needed: bool) -> None:
    found = shape_of({"requires_dist": ["demo", f"evil; {marker}"]})
    assert found.dependencies == (("demo", "evil") if needed else ("demo",))


def test_paths_of_files_are_the_same_in_each_version() -> None:
    found = []
    for version in ("1.0", "1.1"):
        files = [*("data/scripts/tool", "data/data/share/x", "data/purelib/demo/b.py", "dist-info/more")]
        name, data = make_wheel("demo", version, extra_files={f"demo-{version}.{each}": b"#!python" for each in files})
        found.append({*OF_SOURCE.digests(data, name)})
    assert found == [{"demo/__init__.py", ".data/scripts/tool", ".data/data/share/x", "demo/b.py"}] * 2
    name, data = make_wheel("demo", "1.0", extra_files={"demo-1.0.data/scripts/x.py": b"x" * 5000})
    shape = look(data, name).shape
    assert shape is not None
    assert shape.unreadable == ((".data/scripts", "x.py", 5000),)
