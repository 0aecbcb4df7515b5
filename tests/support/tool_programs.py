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
    "docker/config.json": (
        '{\n\t"auths": {\n\t\t"other.example": {\n\t\t\t"auth": "hidden-docker"\n\t\t}\n\t},\n'
        '\t"credHelpers": {\n\t\t"third.example": "pass",\n\t\t"host.example:8081": "replaced"\n\t}\n}'
    ),
    "registries.conf.d/pkgrepo.conf": '[[registry]]\nlocation = "other.example"\ninsecure = true\n',
    "cargo/config.toml": (
        '# mine\n[net]\ngit-fetch-with-cli = true # yes\n\n[registry]\ndefault = "replaced"\n\n'
        '[registries.other]\nindex = "sparse+https://other.example/"\ntoken = "hidden-cargo"\n'
    ),
    "cargo/credentials.toml": '[registries.other]\ntoken = "hidden-cargo"\n',
    "maven/settings.xml": (
        '<?xml version="1.0" encoding="UTF-8"?>\n<settings xmlns="http://maven.apache.org/SETTINGS/1.0.0">\n'
        "  <!-- <servers> of before -->\n  <servers>\n    <server>\n      <id>other</id>\n"
        "      <password>hidden-maven</password>\n    </server>\n  </servers>\n  <!-- the end -->\n</settings>\n"
    ),
    "gradle/init.gradle": None,
    ".gemrc": (
        "---\n# mine\n:backtrace: false\n:sources:\n- https://u:hidden-gem@other.example/\n:update_sources: true\n"
    ),
    "gem/credentials": "---\n:rubygems_api_key: hidden-gem\n",
    "bundle/config": '---\nBUNDLE_JOBS: "4"\nBUNDLE_OTHER__EXAMPLE: "token:hidden-bundler"\n',
    ".condarc": (
        "# mine\nchannels:\n  - conda-forge # all\n  - https://u:hidden-conda@other.example/c\n"
        "auto_activate_base: false\n"
    ),
    "go/env": "GOFLAGS=-mod=mod\nGOPROXY=https://replaced.example\n",
    ".netrc": (
        "# mine\nmachine other.example\n  login me\n  password hidden-netrc\n\n"
        "default login anonymous password hidden-default\n"
    ),
    "helm/repositories.yaml": (
        'apiVersion: ""\ngenerated: "0001-01-01T00:00:00Z"\nrepositories:\n- caFile: ""\n  name: other\n'
        "  password: hidden-helm\n  url: https://other.example\n"
    ),
    "poetry/auth.toml": '[http-basic.other]\nusername = "me"\npassword = "hidden-poetry"\n',
}
