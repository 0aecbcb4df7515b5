"""RubyGems and Bundler as client programs: Debian's, and newer ones that run on Debian's Ruby."""

from __future__ import annotations

import os
import pty
import select
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path

from tests.support.client_programs import CLIENTS, absent, client_environment, program, run_client
from tests.support.timeouts import TIMEOUT_S

DEBIAN, NEWER = "debian", "newer"
TOOLS = (DEBIAN, NEWER)
NEWER_LIBRARY = CLIENTS / "rubygems-4" / "stdlib"  # RubyGems and Bundler

GEMSPEC = """\
Gem::Specification.new do |s|
  s.name = {name!r}
  s.version = {version!r}
  s.platform = {platform!r}
  s.summary = "A gem"
  s.author = "Zo\\u00eb"
  s.homepage = "https://gem.example"
  s.license = "MIT"
  s.files = []
{lines}end
"""


class RubyBench:
    """
    A folder in which ``gem`` and ``bundle`` of one generation run, with gems, caches and configuration of its own.

    ``url`` is the address of a repository without a slash at the end; ``token`` is sent by commands that change it.
    """

    def __init__(self, folder: Path, tools: str, url: str, token: str | None) -> None:
        if tools == NEWER and not NEWER_LIBRARY.with_name(".installed").exists():
            absent("newer RubyGems are not installed (bin/test installs them)")
        self.folder = folder
        self.tools = tools
        self.url = url
        self._ruby = program("ruby")
        self._programs = {name: program(name) for name in ("gem", "bundle")}
        self.environ = client_environment(
            folder / "home",
            GEM_HOME=str(folder / "gems"),
            GEM_PATH=str(folder / "gems"),
            LANG="C.UTF-8",
            BUNDLE_SILENCE_ROOT_WARNING="1",
            BUNDLE_RETRY="1",
        )
        if token is not None:
            self.environ["GEM_HOST_API_KEY"] = token

    def command(self, name: str, *arguments: str | Path) -> list[str | Path]:
        """The words of a command; newer programs are run as scripts with their own library."""
        if self.tools == DEBIAN:
            return [self._programs[name], *arguments]
        library = NEWER_LIBRARY
        start = {
            "gem": 'require "rubygems/gem_runner"; Gem::GemRunner.new.run(ARGV.clone)',
            "bundle": 'require "bundler"; require "bundler/friendly_errors"; require "bundler/cli"; '
            "Bundler.with_friendly_errors { Bundler::CLI.start(ARGV, debug: true) }",
        }[name]
        return [self._ruby, "--disable-gems", "-I", library, "-r", "rubygems", "-e", start, "--", *arguments]

    def gem(self, *arguments: str | Path, status: int | None = 0, environ: Mapping[str, str] | None = None) -> str:
        """Run ``gem``. Returns what it printed."""
        return run_client(
            self.command("gem", *arguments),
            environ={**self.environ, **(environ or {})},
            folder=self.folder,
            status=status,
        ).stdout

    def bundle(self, *arguments: str | Path, status: int | None = 0) -> str:
        """Run ``bundle`` in the project. Returns what it printed."""
        return run_client(
            self.command("bundle", *arguments), environ=self.environ, folder=self.project, status=status
        ).stdout

    @property
    def project(self) -> Path:
        """The folder of the Gemfile."""
        folder = self.folder / "project"
        folder.mkdir(exist_ok=True)
        return folder

    def write_gemfile(self, *gems: str, url: str | None = None) -> None:
        """Write a Gemfile with gems from the repository."""
        lines = [f'source "{url or self.url + "/"}"', *(f'gem "{each}"' for each in gems)]
        (self.project / "Gemfile").write_text("\n".join(lines) + "\n")

    def locked(self) -> str:
        """The lock file of the project."""
        return (self.project / "Gemfile.lock").read_text()

    def build(self, name: str, version: str, *, platform: str = "ruby", lines: Sequence[str] = ()) -> Path:
        """Build a gem; ``lines`` are further ones of its specification. Returns its path."""
        text = GEMSPEC.format(name=name, version=version, platform=platform, lines="".join(f"  {x}\n" for x in lines))
        built = self.folder / "built"  # not where commands run: ``gem install`` would find it there
        built.mkdir(exist_ok=True)
        (built / "gem.gemspec").write_text(text)
        full = f"{name}-{version}" + ("" if platform == "ruby" else f"-{platform}")
        self.gem("build", built / "gem.gemspec", "-o", built / f"{full}.gem")
        return built / f"{full}.gem"

    def push(self, path: Path, *, slash: bool = True, status: int | None = 0) -> str:
        """Push a gem to the repository. Returns what ``gem`` printed."""
        return self.gem("push", "--host", self.url + "/" * slash, path, status=status)

    def publish(self, name: str, version: str, *, platform: str = "ruby", lines: Sequence[str] = ()) -> Path:
        """Build and push a gem. Returns its path."""
        path = self.build(name, version, platform=platform, lines=lines)
        assert "Successfully registered gem: " in self.push(path)
        return path

    def ruby(self, script: str, *arguments: str | Path) -> str:
        """Run Debian's Ruby. Returns what it printed."""
        command = [self._ruby, "-rzlib", "-e", script, *arguments]
        return run_client(command, environ=self.environ, folder=self.folder).stdout

    def converse(self, answers: Mapping[str, str], *arguments: str, environ: Mapping[str, str]) -> str:
        """
        Run ``gem`` in a terminal, and answer each of its questions once. Each yes-or-no question is answered with yes,
        except for a scope that excludes all others.

        Returns what was on the terminal.
        """
        main, terminal = pty.openpty()
        process = subprocess.Popen(
            [str(part) for part in self.command("gem", *arguments)],
            env={**self.environ, **environ},
            cwd=self.folder,
            stdin=terminal,
            stdout=terminal,
            stderr=terminal,
        )
        os.close(terminal)
        try:
            return _answer(main, dict(answers))
        finally:
            os.close(main)
            process.kill()
            process.wait(TIMEOUT_S)


def _answer(terminal: int, answers: dict[str, str]) -> str:
    seen, agreed = "", 0
    while select.select([terminal], [], [], TIMEOUT_S)[0]:
        try:
            piece = os.read(terminal, 4096)
        except OSError:  # the program has ended
            return seen
        if not piece:
            return seen
        seen += piece.decode(errors="replace")
        for question in [each for each in answers if each in seen]:
            os.write(terminal, f"{answers.pop(question)}\n".encode())
        if seen.count("[yN]") > agreed:
            agreed += 1
            os.write(terminal, b"n\n" if "exclusive" in seen.rpartition("\n")[2] else b"y\n")
    raise AssertionError(f"gem waits for an answer:\n{seen}")
