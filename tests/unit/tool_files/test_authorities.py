"""Certificates of a private authority stand where each tool reads them, whatever is in the file already."""

from __future__ import annotations

import pytest

from pkgrepo.tool_files.editing import edit
from pkgrepo.tool_files.tools import authorities
from pkgrepo.tool_files.values import ToolFile

CA = "/etc/ssl/of our own/ca.pem"


@pytest.mark.parametrize(
    ("file", "before", "after"),
    [
        (authorities.npmrc(CA), "registry=x\n", f"registry=x\ncafile={CA}\n"),
        (authorities.npmrc(CA), "cafile=/old\n", f"cafile={CA}\n"),
        (authorities.pip_conf(CA), "[global]\nindex-url = x\n", f"[global]\nindex-url = x\ncert = {CA}\n"),
        (authorities.pypirc(CA), "[pkgrepo]\nusername = u\n", f"[pkgrepo]\nusername = u\nca_cert = {CA}\n"),
        (authorities.poetry_config(CA), "", f'[certificates.pkgrepo]\ncert = "{CA}"\n'),
        (authorities.cargo_config(CA), "[http]\ntimeout = 9\n", f'[http]\ntimeout = 9\ncainfo = "{CA}"\n'),
        (authorities.gemrc(CA), ":sources:\n- x\n", f':sources:\n- x\n:ssl_ca_cert: "{CA}"\n'),
        (authorities.bundle_config(CA), "", f'BUNDLE_SSL_CA_CERT: "{CA}"\n'),
        (authorities.condarc(CA), "channels:\n  - x\n", f'channels:\n  - x\nssl_verify: "{CA}"\n'),
        (
            authorities.yarnrc(CA, "https://packages.example:8443/repositories/main/js"),
            "",
            f'networkSettings:\n  packages.example:\n    httpsCaFilePath: "{CA}"\n',
        ),
    ],
)
def test_the_file_of_certificates_is_named(file: ToolFile, before: str, after: str) -> None:
    assert edit(file, before) == after
    assert not file.private


def test_hints_are_filled_with_the_file_and_the_host() -> None:
    for name, text in authorities.HINTS.items():
        assert CA in text.format(ca=CA, host="packages.example"), name
