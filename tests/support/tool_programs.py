"""Programs that stand in for tools, and files of tools as people have them."""

from __future__ import annotations

from collections.abc import Mapping

from pkgrepo.client.setup.programs import Programs


class StandIns(Programs):
    """Each program is there; ``outputs`` is what they print, by name."""

    def __init__(self, outputs: Mapping[str, str] | None = None) -> None:
        super().__init__({})
        object.__setattr__(self, "_outputs", dict(outputs or {}))

    def find(self, name: str) -> str | None:
        return f"/bin/{name}"

    def output(self, name: str, *_arguments: str) -> str:
        return str(self._outputs.get(name, ""))


# By place. A line with "replaced" gives way to one of ours; None is for a file that is ours alone.
FOREIGN: Mapping[str, str | None] = {
    ".npmrc": (
        "; mine\nfund=false\nregistry=http://replaced.example/\n\n//other.example/:_authToken=hidden-npm\n# the end\n"
    ),
    ".yarnrc.yml": (
        '# mine\nnpmScopes:\n  acme:\n    npmAuthToken: "hidden-yarn"\n\nenableTelemetry: false # no\n'
        "unsafeHttpWhitelist:\n  - other.example\n\n# the end\n"
    ),
    "pip.conf": (
        "# mine\n[install]\nuser = true\n\n[global]\n; one\nindex-url = https://u:replaced@other.example/\n"
        "extra-index-url =\n    https://u:hidden-pip@more.example/\n"
    ),
    "uv.toml": (
        '# mine\npublish-url = "https://replaced.example/"\n\n[[index]]\nname = "other"\n'
        'url = "https://u:hidden-uv@other.example/"\n\n[pip]\nno-build = true # no\n'
    ),
    ".pypirc": (
        "[distutils]\nindex-servers =\n    pypi\n    other\n\n[other]\nrepository: https://other.example/\n"
        "password: hidden-twine\n# the end\n"
    ),
    "poetry/config.toml": '# mine\n[virtualenvs]\nin-project = true\n\n[repositories.other]\nurl = "https://other.example"\n',
    "poetry/auth.toml": '[http-basic.other]\nusername = "me"\npassword = "hidden-poetry"\n',
}
