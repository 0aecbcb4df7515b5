"""The conda format."""

from __future__ import annotations

from tests.support.conda_packages import make_conda

from .case import OCTETS, Case, sha256

FILE = "/noarch/{name}-{version}-py_0.conda"


def lock(name: str, version: str, data: bytes) -> tuple[str, str]:
    url = f"https://c.example{FILE.format(name=name, version=version)}"
    return "explicit.txt", f"@EXPLICIT\n{url}#sha256:{sha256(data)}\n"


CONDA = Case(
    format="conda",
    versions=("1.0", "1.1"),
    put=lambda send, name, version: send(
        "PUT", FILE.format(name=name, version=version), make_conda(name, version), kind=OCTETS
    ),
    document="/noarch/repodata.json",
    listed="{name}-{version}-",
    file=FILE,
    sent=lambda name, version: (f"{name}-{version}-py_0.conda", make_conda(name, version), {}),
    lock=lock,
)
