"""What of a conda package runs when it is linked, or when its environment is activated."""

from __future__ import annotations

import pytest

from pkgrepo.formats.conda.inside import look
from tests.support.conda_packages import make_conda


@pytest.mark.parametrize(
    ("file", "found"),
    [
        ("share/x", set()),
        ("bin/.demo-post-link.sh", {"install_script", "executable"}),
        ("Scripts/.demo-pre-unlink.bat", {"install_script", "executable"}),
        ("etc/conda/activate.d/x", {"install_script"}),
        ("lib/python3.12/site-packages/x.pth", {"pth"}),
        ("Lib/site-packages/sitecustomize.py", {"pth"}),
        ("lib/python3.12/site-packages/demo/x.pth", set()),
    ],
)
def test_scripts_and_what_python_starts_are_found(file: str, found: set[str]) -> None:
    assert look(make_conda("demo", "1.0", "0", payload=[(file, b"x")]), "demo-1.0-0.conda").words == found


def test_licences_are_those_of_the_index_and_the_texts_in_the_package() -> None:
    mit = b"Permission is hereby granted, free of charge, to any person obtaining a copy"
    files = [("share/LICENSE", b"another"), ("info/licenses/LICENSE.txt", mit)]
    data = make_conda("demo", "1.0", "0", license="BUSL-1.1", payload=files)
    assert look(data, "demo-1.0-0.conda").shape.licences == ("BUSL-1.1", "MIT")
