"""Specifications in YAML, as all generations of RubyGems wrote them, and as attackers may."""

from __future__ import annotations

from datetime import date

import pytest

from pkgrepo.archives.source import Source
from pkgrepo.errors import Invalid
from pkgrepo.formats.rubygems.gemspec import ANY, Dependency, GemSpec
from pkgrepo.formats.rubygems.limits import LONGEST_BINARY
from pkgrepo.formats.rubygems.push import yaml_documents
from pkgrepo.formats.rubygems.push.gemspec_yaml import parse_gemspec
from tests.support.gems import make_gemspec

SOURCE = Source(b"", "the file")


def parse(text: str | bytes) -> GemSpec:
    return parse_gemspec(SOURCE, text if isinstance(text, bytes) else text.encode())[0]


def refused(text: str | bytes) -> str:
    with pytest.raises(Invalid) as caught:
        parse(text)
    return caught.value.message


def test_numbers_and_words_stay_texts() -> None:
    spec = parse(make_gemspec(version="1.10", extra="homepage: yes\nlicenses: [1.0, no, null, 2024-01-01]\n"))
    assert spec.number == "1.10"
    assert spec.homepage == "yes"
    assert spec.licenses == ("1.0", "no", "2024-01-01")


def test_platforms_are_texts_or_objects() -> None:
    assert parse(make_gemspec(platform="java")).platform == "java"
    mapping = "!ruby/object:Gem::Platform\n  cpu: universal\n  os: darwin\n  version: '8'"
    assert parse(make_gemspec(platform=mapping)).platform == "universal-darwin-8"
    assert parse(make_gemspec(platform="!ruby/object:Gem::Platform\n  cpu:\n  os: java\n  version:")).platform == "java"
    assert parse(make_gemspec(platform="''")).platform == "ruby"
    spec = parse(make_gemspec(platform="x86-mswin32-60", extra="original_platform: mswin32\n"))
    assert spec.original_platform == "mswin32"


@pytest.mark.parametrize("operator", ['"="', "'='", "=", "! '='", "!ruby/object:YAML::Syck::DefaultKey {}"])
def test_every_way_to_write_an_operator(operator: str) -> None:
    dependency = f"""\
dependencies:
- !ruby/object:Gem::Dependency
  name: b
  requirement: &id001 !ruby/object:Gem::Requirement
    none: false
    requirements:
    - - {operator}
      - !ruby/object:Gem::Version
        version: 1.0
  type: :runtime
  prerelease: false
  version_requirements: *id001
"""
    spec = parse(make_gemspec().replace("dependencies: []\n", dependency))
    assert spec.dependencies == (Dependency("b", "runtime", (("=", "1.0"),)),)


def test_dependencies_of_very_old_gems() -> None:
    old = """\
dependencies:
- !ruby/object:Gem::Dependency
  name: b
  version_requirement:
  version_requirements: !ruby/object:Gem::Version::Requirement
    requirements:
    - - ">"
      - !ruby/object:Gem::Version
        version: 0.0.0
    version:
- !ruby/object:Gem::Dependency
  name: c
  type: !ruby/symbol development
  requirement: !ruby/object:Gem::Requirement {}
- !ruby/object:Gem::Dependency
  name: d
"""
    spec = parse(make_gemspec().replace("dependencies: []\n", old))
    assert spec.dependencies == (
        Dependency("b", "runtime", ((">", "0.0.0"),)),
        Dependency("c", "development", ANY),
        Dependency("d", "runtime", ANY),
    )


def test_binary_texts_are_decoded() -> None:
    spec = parse(make_gemspec(extra="homepage: !binary |\n  Wm/Dqw==\nlicenses:\n- !binary Wm/r\n"))
    assert spec.homepage == "Zoë"
    assert spec.licenses == ("Zoë",)


@pytest.mark.parametrize("written", ["", "date: nonsense\n", "date: 2024-13-40\n", "date: 1600-01-01\n"])
def test_dates_that_are_none(written: str) -> None:
    text = make_gemspec().replace("date: 2024-05-06 00:00:00.000000000 Z\n", written)
    assert parse(text).date == date(1980, 1, 2)


def test_control_characters_become_blanks() -> None:
    spec = parse(make_gemspec(extra='homepage: "a\\nb\\0c"\ndescription: "a\\nb\\0c"\n'))
    assert spec.homepage == "a b c"
    assert spec.description == "a\nb c"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (make_gemspec("../x"), "name '../x' must"),
        (make_gemspec("[a]"), "name must be a text"),
        (make_gemspec(version="1-2"), "version '1-2' must"),
        (make_gemspec(version="[1]"), "version '' must"),
        (make_gemspec(platform="a/b"), "platform 'a/b' must"),
        (make_gemspec(platform="[a]"), "platform must be"),
        (make_gemspec("x" * 250), "together"),
        (make_gemspec(dependencies={"b c": []}), "a dependency has the name 'b c'"),
        (make_gemspec(dependencies={"b": [("=>", "1")]}), "no operator with a version"),
        (make_gemspec(dependencies={"b": [("=", "1,2")]}), "no operator with a version"),
        (make_gemspec(dependencies={"b": [("=", "1")] * 101}), "at most 100 bounds"),
        (make_gemspec(dependencies={"b": [("=", "1")]}).replace(":runtime", ":other"), "unknown type 'other'"),
        (make_gemspec(dependencies={f"b{i}": [] for i in range(2001)}), "more than 2000 dependencies"),
        (make_gemspec(extra="homepage: " + "x" * 1001), "homepage must have at most 1000 characters"),
        (make_gemspec(extra="description: " + "x" * 600_000), "description must be"),
        (make_gemspec(extra="licenses: [" + "x, " * 1001 + "]"), "licenses must have at most"),
        (make_gemspec(extra="metadata: {a: " + "x" * 1001 + "}"), "metadata has an entry of more than"),
        (make_gemspec(extra="name: other\n"), "has the key 'name' twice"),
        (make_gemspec(extra="files: !ruby/object:Kernel {}\n"), "tag '!ruby/object:Kernel', which no gem needs"),
        (make_gemspec(extra="files: !ruby/hash:Gem::Version {}\n"), "which no gem needs"),
        (make_gemspec(extra="files: !!python/object:os.system {}\n"), "which no gem needs"),
        (make_gemspec(extra="files: !binary '***'\n"), "not base64"),
        (make_gemspec(extra="files: !binary " + "A" * (LONGEST_BINARY + 1) + "\n"), "a binary value of more than"),
        (make_gemspec(extra="files: *nothing\n"), "alias of nothing"),
        (make_gemspec(extra="files: " + "[" * 70 + "]" * 70), "more than 64 collections in each other"),
        (make_gemspec(extra="files: [" + "a, " * 200_001 + "]"), "more than 200000 elements"),
        (make_gemspec(extra="---\na: b\n"), "more than one document"),
        ("".join(f"%TAG !a{i}! x\n" for i in range(17)) + make_gemspec(), "without directives"),
        (make_gemspec().encode("utf-16"), "plain UTF-8"),
        (make_gemspec().replace("Gem::Specification", "Gem::Version"), "no Gem::Specification"),
        ("- a\n", "no Gem::Specification"),
        ("", "no Gem::Specification"),
        (b"\xff\xfe\x00", "plain UTF-8"),
        (b"a: \xff\n", "not valid YAML"),
        (b"a: \x00\n", "not valid YAML"),
        ("a: [", "not valid YAML"),
    ],
)
def test_what_cannot_be_served_is_refused(text: str | bytes, message: str) -> None:
    assert message in refused(text)


def test_the_reactor_is_let_in_while_a_long_text_is_parsed(monkeypatch: pytest.MonkeyPatch) -> None:
    released: list[None] = []
    monkeypatch.setattr(yaml_documents.GilReleaser, "release_if_due", lambda _: released.append(None))
    refused(make_gemspec(extra=f"description: {'x' * 1024 * 1024}\n"))
    assert len(released) > 60


def test_aliases_that_multiply_take_no_memory() -> None:
    levels = "".join(f"x{i}: &x{i} [{f'*x{i - 1}, ' * 9 if i else 'a'}]\n" for i in range(30))
    assert parse(make_gemspec(extra=levels)).name == "alpha"
    assert "no operator" in refused(make_gemspec(extra=f"{levels}required_ruby_version: {{requirements: [*x29]}}\n"))


def test_aliases_do_not_multiply_requirements() -> None:
    bounds = "[" + '[">=", "1"], ' * 100 + "]"
    names = "".join(f"- {{name: b{each}, requirement: {{requirements: *x}}}}\n" for each in range(41))
    text = make_gemspec(extra=f"x: &x {bounds}\n").replace("dependencies: []\n", "") + f"dependencies:\n{names}"
    assert "more than 4000 requirements" in refused(text)


def test_an_alias_of_the_collection_that_it_is_in() -> None:
    assert parse(make_gemspec(extra="files: &f [*f]\n")).name == "alpha"
    assert "no operator" in refused(make_gemspec(extra="required_ruby_version: &r {requirements: [*r]}\n"))


def test_a_second_dependency_on_the_same_gem_is_refused() -> None:
    one = make_gemspec(dependencies={"b": [(">=", "1")]})
    start = one.index("- !ruby/object:Gem::Dependency")
    entry = one[start : one.index("rubygems_version")]
    assert "names a gem twice" in refused(one.replace(entry, entry * 2))
