"""The tools that can be set up: the programs by which they are found, their files, and how they are tried."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Final

from attrs import frozen

from pkgrepo.client.setup.programs import Programs
from pkgrepo.errors import Invalid
from pkgrepo.tool_files.tools import authorities, cargo, containers, java, node, others, python, ruby
from pkgrepo.tool_files.values import ToolFile

KEYRING_BACKEND: Final = "pkgrepo.client.credentials"


@frozen
class Wish:
    """
    What tools are set up for: a repository by its ``url``, of the server at ``server``.

    ``host`` is the name of the server for clients of images, if the repository ``has_images``. Without a ``token`` they
    are anonymous. ``scope`` is that of the packages of npm that come from there, empty for all. ``ca_file`` is the path
    of certificates of a private authority, empty for none. ``package`` and ``version`` are one that the repository has,
    or empty.
    """

    url: str
    server: str
    host: str = ""
    has_images: bool = False
    token: str = ""
    publishes: bool = False
    scope: str = ""
    ca_file: str = ""
    package: str = ""
    version: str = ""


Files = Callable[[Wish, Programs], Sequence[ToolFile]]
Commands = Callable[[Wish, Programs], Sequence[Sequence[str]]]


@frozen
class Tool:
    """
    A tool; it is there if one of its ``programs`` is.

    ``client`` is how the server calls the tool, or the one whose repositories it uses. ``check`` are commands that end
    with 0 if the tool can use the repository; they run in a folder with the files of ``project``, by path. ``hint``
    says what else a person does to use it, if anything. ``trust`` are files for certificates of a private authority.
    """

    name: str
    client: str
    programs: tuple[str, ...]
    files: Files
    check: Commands
    project: Callable[[Wish], Mapping[str, str]] = lambda _wish: {}
    hint: Callable[[Wish], str] = lambda _wish: ""
    trust: Files = lambda _wish, _programs: ()

    def all_files(self, wish: Wish, programs: Programs) -> list[ToolFile]:
        """The files of the tool, with those that make it trust the server. :raises Invalid: it cannot be set up"""
        return [*self.files(wish, programs), *(self.trust(wish, programs) if wish.ca_file else ())]

    def hints(self, wish: Wish) -> list[str]:
        """What else a person does to use the tool."""
        told = authorities.HINTS.get(self.name, "") if wish.ca_file else ""
        return [each for each in (self.hint(wish), told.format(ca=wish.ca_file, host=wish.host)) if each]


def chosen_tools(named: str, clients: Iterable[str], programs: Programs) -> list[Tool]:
    """
    The tools that are ``named``, with commas, or else those of ``clients`` that this machine has.

    :raises Invalid: none is known or found, or one is for repositories of another format
    """
    fitting = [each for each in TOOLS if each.client in set(clients)]
    known = ", ".join(each.name for each in fitting) or "none"
    if not named:
        if found := [each for each in fitting if any(map(programs.find, each.programs))]:
            return found
        raise Invalid(f"no tool for this repository is on the PATH ({known}); --tool names one nevertheless")
    names = [each.strip() for each in named.split(",") if each.strip()]
    for name in names:
        if not any(each.name == name for each in fitting):
            raise Invalid(f"{name} cannot be set up for this repository; these can: {known}")
    return [each for each in fitting if each.name in names]


def _npm(wish: Wish, _programs: Programs) -> Sequence[ToolFile]:
    return [node.npmrc(wish.url, wish.token, scope=wish.scope)]


def _yarn(wish: Wish, programs: Programs) -> Sequence[ToolFile]:
    """Return the file of npm for yarn 1, and that of its successors for them."""
    if programs.output("yarn", "--version").startswith("1."):
        return [node.npmrc(wish.url, wish.token, scope=wish.scope, always=True)]
    return [node.scoped_yarnrc(wish.url, wish.token, wish.scope) if wish.scope else node.yarnrc(wish.url, wish.token)]


def _npm_check(wish: Wish, programs: Programs) -> Sequence[Sequence[str]]:
    whoami = ["npm", "whoami", *([f"--registry={wish.url}/"] if wish.scope else [])]
    return [*_view("npm", "view")(wish, programs), *([whoami] if wish.token else [])]


def _yarn_check(wish: Wish, programs: Programs) -> Sequence[Sequence[str]]:
    # yarn info of yarn 1 ends with 0 whatever the server says
    words = ("tag", "list") if programs.output("yarn", "--version").startswith("1.") else ("npm", "info")
    return _view("yarn", *words)(wish, programs)


def _view(*words: str) -> Commands:
    """Ask for a package of the repository: one of the scope, if there is a scope."""

    def check(wish: Wish, _programs: Programs) -> Sequence[Sequence[str]]:
        return [[*words, wish.package, *(["version"] if words[-1] == "view" else [])]] if wish.package else []

    return check


def _nothing(_wish: Wish, _programs: Programs) -> Sequence[Sequence[str]]:
    """No command: the tool has none that asks a server and changes nothing."""
    return []


def _poetry_hint(wish: Wish) -> str:
    source = f"in each project: poetry source add --priority=primary pkgrepo {wish.url}/simple/"
    return f"{source}; to publish: poetry publish --build -r pkgrepo" if wish.publishes else source


def _docker(wish: Wish, programs: Programs) -> Sequence[ToolFile]:
    """Return the credential helper for the host; without a login there is nothing to set up."""
    if wish.token and programs.find(f"docker-credential-{containers.HELPER}") is None:
        raise Invalid(f"docker-credential-{containers.HELPER}, which is installed with pkgrepo, is not on the PATH")
    return [containers.docker_config(wish.host)] if wish.token else []


def _podman(wish: Wish, programs: Programs) -> Sequence[ToolFile]:
    """Return the same, and that the host has no TLS, if that is so."""
    is_plain = wish.server.startswith("http://")
    return [*_docker(wish, programs), *([containers.plain_registry(wish.host)] if is_plain else [])]


def _image(wish: Wish) -> str:
    place = wish.url.removeprefix(wish.server).removeprefix("/repositories/").strip("/")
    return "/".join(each for each in (wish.host, place, wish.package) if each)


def _docker_check(wish: Wish, _programs: Programs) -> Sequence[Sequence[str]]:
    insecure = ["--insecure"] if wish.server.startswith("http://") else []
    inspect = ["docker", "manifest", "inspect", *insecure, f"{_image(wish)}:{wish.version}"]
    return [inspect] if wish.package and wish.version else []


def _image_check(*words: str, scheme: str = "") -> Commands:
    """List the tags of an image."""
    return lambda wish, _programs: [[*words, f"{scheme}{_image(wish)}"]] if wish.package else []


def _cargo(wish: Wish, programs: Programs) -> Sequence[ToolFile]:
    if wish.token and programs.find(cargo.HELPER) is None:
        return [cargo.config(wish.url, cargo.TOKENS, is_default=True), cargo.credentials(wish.token)]
    return [cargo.config(wish.url, cargo.HELPER if wish.token else "", is_default=True)]


def _cargo_check(wish: Wish, _programs: Programs) -> Sequence[Sequence[str]]:
    return [["cargo", "info", "--registry", cargo.NAME, wish.package]] if wish.package else []


def _maven(wish: Wish, _programs: Programs) -> Sequence[ToolFile]:
    return [java.maven_settings(wish.url, others.USER, wish.token)]


def _maven_hint(wish: Wish) -> str:
    place = f"a <distributionManagement> with the id {java.ID} and {wish.url}"
    return f"to publish: mvn deploy, in a project that has {place}" if wish.publishes else ""


def _gradle(wish: Wish, _programs: Programs) -> Sequence[ToolFile]:
    return [java.gradle_init(wish.url, others.USER, wish.token)]


def _gem(wish: Wish, _programs: Programs) -> Sequence[ToolFile]:
    publishes = wish.publishes and bool(wish.token)
    found = [ruby.gemrc(wish.url, wish.token, publishes=publishes)]
    return [*found, *([ruby.credentials(wish.url, wish.token)] if publishes else [])]


def _gem_check(wish: Wish, _programs: Programs) -> Sequence[Sequence[str]]:
    return [["gem", "list", "--remote", "--exact", wish.package]] if wish.package else []


def _bundler(wish: Wish, _programs: Programs) -> Sequence[ToolFile]:
    return [ruby.bundle_config(wish.url, wish.token)] if wish.token else []


def _bundler_hint(wish: Wish) -> str:
    return f'in each Gemfile: source "{wish.url}/"'


def _conda(wish: Wish, _programs: Programs) -> Sequence[ToolFile]:
    return [others.condarc(wish.url, wish.token)]


def _go(wish: Wish, _programs: Programs) -> Sequence[ToolFile]:
    return [others.go_env(wish.url), *([others.netrc(wish.url, wish.token)] if wish.token else [])]


def _go_check(wish: Wish, _programs: Programs) -> Sequence[Sequence[str]]:
    return [["go", "list", "-m", "-versions", wish.package]] if wish.package else []


def _go_hint(wish: Wish) -> str:
    sums = "for modules that no checksum database knows: go env -w GONOSUMDB=PREFIX/*"
    return f"go sends the token over https only; {sums}" if wish.server.startswith("http://") else sums


def _helm(wish: Wish, programs: Programs) -> Sequence[ToolFile]:
    """Return the repository of charts, or of images that hold them: helm reads the file of docker."""
    if wish.has_images:
        return _docker(wish, programs)
    return [others.helm_repositories(wish.url, wish.token)]


def _helm_hint(wish: Wish) -> str:
    return f"helm push CHART.tgz oci://{_image(wish)}" if wish.has_images else f"helm install NAME {others.NAME}/CHART"


def _helm_check(wish: Wish, _programs: Programs) -> Sequence[Sequence[str]]:
    if wish.has_images:
        return []
    update = ["helm", "repo", "update", others.NAME]
    return [update, ["helm", "show", "chart", f"{others.NAME}/{wish.package}"]] if wish.package else [update]


def _conda_check(wish: Wish, _programs: Programs) -> Sequence[Sequence[str]]:
    return [["conda", "search", wish.package]] if wish.package else []


def _has_keyring(programs: Programs, program: str = "keyring") -> bool:
    """Whether the program ``keyring``, on the path or by its own path, knows the backend of pkgrepo."""
    return KEYRING_BACKEND in programs.output(program, "--list-backends")


def _pip(wish: Wish, programs: Programs) -> Sequence[ToolFile]:
    return [python.pip_conf(wish.url, wish.token, keyring=_has_keyring(programs))]


def _uv(wish: Wish, programs: Programs) -> Sequence[ToolFile]:
    return [python.uv_toml(wish.url, wish.token, publishes=wish.publishes, keyring=_has_keyring(programs))]


def _twine(wish: Wish, programs: Programs) -> Sequence[ToolFile]:
    # twine asks the library of its own environment
    program = os.path.realpath(programs.find("twine") or "twine")
    beside = os.path.join(os.path.dirname(program), "keyring")
    return [python.pypirc(wish.url, wish.token, keyring=_has_keyring(programs, beside))]


def _poetry(wish: Wish, _programs: Programs) -> Sequence[ToolFile]:
    found = [python.poetry_config(wish.url)] if wish.publishes else []
    return [*found, *([python.poetry_auth(wish.token)] if wish.token else [])]


def _pip_versions(wish: Wish, programs: Programs) -> Sequence[Sequence[str]]:
    """Ask for the versions of a package: nothing is downloaded."""
    program = "pip" if programs.find("pip") else "pip3"
    return [[program, "index", "versions", wish.package]] if wish.package else []


def _uv_tree(wish: Wish, _programs: Programs) -> Sequence[Sequence[str]]:
    """Have uv resolve a package, without installing it."""
    if not wish.package:
        return []
    return [["uv", "pip", "compile", "--no-deps", "--quiet", "--no-header", "requirements.in"]]


def _trusting(file: Callable[[str], ToolFile]) -> Files:
    return lambda wish, _programs: [file(wish.ca_file)]


def _yarn_trust(wish: Wish, programs: Programs) -> Sequence[ToolFile]:
    if programs.output("yarn", "--version").startswith("1."):
        return [authorities.npmrc(wish.ca_file)]
    return [authorities.yarnrc(wish.ca_file, wish.url)]


_NPM_TRUST: Final = _trusting(authorities.npmrc)
_CONDA_TRUST: Final = _trusting(authorities.condarc)
_BUNDLE_TRUST: Final = _trusting(authorities.bundle_config)

TOOLS: Final = (
    Tool("npm", "npm", ("npm",), _npm, _npm_check, trust=_NPM_TRUST),
    Tool("pnpm", "npm", ("pnpm",), _npm, _view("pnpm", "view"), trust=_NPM_TRUST),
    Tool(
        "yarn",
        "yarn",
        ("yarn",),
        _yarn,
        _yarn_check,
        lambda _wish: {"package.json": "{}", "yarn.lock": ""},
        trust=_yarn_trust,
    ),
    Tool("bun", "bun", ("bun",), _npm, _view("bun", "pm", "view"), trust=_NPM_TRUST),
    Tool("pip", "pip", ("pip", "pip3"), _pip, _pip_versions, trust=_trusting(authorities.pip_conf)),
    Tool("uv", "uv", ("uv",), _uv, _uv_tree, lambda wish: {"requirements.in": f"{wish.package}\n"}),
    Tool(
        "twine",
        "twine",
        ("twine",),
        _twine,
        _nothing,
        hint=lambda _wish: "to publish: twine upload -r pkgrepo dist/*",
        trust=_trusting(authorities.pypirc),
    ),
    Tool(
        "poetry",
        "poetry",
        ("poetry",),
        _poetry,
        _nothing,
        hint=_poetry_hint,
        trust=_trusting(authorities.poetry_config),
    ),
    Tool("docker", "docker", ("docker",), _docker, _docker_check),
    Tool("podman", "podman", ("podman",), _podman, _image_check("podman", "search", "--list-tags")),
    Tool("skopeo", "skopeo", ("skopeo",), _podman, _image_check("skopeo", "list-tags", scheme="docker://")),
    Tool("cargo", "cargo", ("cargo",), _cargo, _cargo_check, trust=_trusting(authorities.cargo_config)),
    Tool("maven", "maven", ("mvn",), _maven, _nothing, hint=_maven_hint),
    Tool("gradle", "gradle", ("gradle",), _gradle, _nothing),
    Tool("gem", "gem", ("gem",), _gem, _gem_check, trust=_trusting(authorities.gemrc)),
    Tool(
        "bundler",
        "bundler",
        ("bundle", "bundler"),
        _bundler,
        _nothing,
        hint=_bundler_hint,
        trust=_trusting(authorities.bundle_config),
    ),
    Tool("conda", "conda", ("conda",), _conda, _conda_check, trust=_CONDA_TRUST),
    Tool("mamba", "mamba", ("mamba", "micromamba"), _conda, _nothing, trust=_CONDA_TRUST),
    Tool("go", "go", ("go",), _go, _go_check, lambda _wish: {"go.mod": "module example\n"}, _go_hint),
    Tool("helm", "helm", ("helm",), _helm, _helm_check, hint=_helm_hint),
)
