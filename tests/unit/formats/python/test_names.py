"""Names, versions and file names."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from packaging.version import InvalidVersion, Version

from pkgrepo.errors import Invalid, NotFound
from pkgrepo.formats.python.names import (
    OLD_SDIST_ENDINGS,
    is_valid_name,
    normalise,
    parse_filename,
    parse_upload,
    project_key,
)
from pkgrepo.formats.python.versions import parse_version

numbers = st.one_of(st.integers(0, 3), st.integers(0, 10**30))


@st.composite
def version_texts(draw: st.DrawFn) -> str:
    """Versions in every shape of PEP 440, close enough to each other to meet."""
    text = draw(st.sampled_from(["", "", "", "1!", "0!", "300!"]))
    text += ".".join(str(n) for n in draw(st.lists(numbers, min_size=1, max_size=4)))
    if draw(st.booleans()):
        text += draw(st.sampled_from(["a", "b", "rc", "alpha", ".c", "-pre"])) + str(draw(numbers))
    if draw(st.booleans()):
        text += draw(st.sampled_from([".post", "-", "rev"])) + str(draw(numbers))
    if draw(st.booleans()):
        text += ".dev" + str(draw(numbers))
    if draw(st.booleans()):
        segments = st.one_of(numbers.map(str), st.text("abz019", min_size=1, max_size=4))
        text += "+" + ".".join(draw(st.lists(segments, min_size=1, max_size=3)))
    return text


@pytest.mark.parametrize(
    ("name", "key"),
    [
        ("demo", "demo"),
        ("Demo.Pkg", "demo-pkg"),
        ("a--b", "a-b"),
        ("a-_.b", "a-b"),
        ("A", "a"),
        ("0", "0"),
        ("zope.interface", "zope-interface"),
        ("simple", "simple"),
    ],
)
def test_spellings_of_a_name_have_one_key(name: str, key: str) -> None:
    assert normalise(name) == key
    assert normalise(key) == key


@pytest.mark.parametrize(
    "name", ["", "-a", "a-", ".a", "a.", "_", "a b", "a/b", "a\n", "ä", "a\u212a", "\u017f", "a\x00b", "..", "a%2fb"]
)
def test_what_is_no_name_is_refused(name: str) -> None:
    assert not is_valid_name(name)
    with pytest.raises(Invalid) as caught:
        normalise(name)
    assert str(caught.value).isprintable()


def test_a_name_is_no_longer_than_that_of_a_file() -> None:
    assert normalise("a" * 255) == "a" * 255
    with pytest.raises(Invalid, match="at most 255"):
        normalise("a" * 256)
    with pytest.raises(NotFound):
        project_key("a" * 256)


@pytest.mark.parametrize(
    ("text", "key"),
    [
        ("1.0", "1"),
        ("1.0.0", "1"),
        ("v1.0", "1"),
        ("1", "1"),
        ("1.10", "1.10"),
        ("1.0-1", "1.post1"),
        ("1.0RC1", "1rc1"),
        ("1.0+CU121", "1+cu121"),
        ("1.0+ubuntu_1", "1+ubuntu.1"),
        ("1!2.0", "1!2"),
        ("0", "0"),
        ("0.0", "0"),
        ("2004d", "2004d"),
        ("not a version", "not a version"),
        ("", ""),
    ],
)
def test_spellings_of_a_version_have_one_key(text: str, key: str) -> None:
    assert parse_version(text)[0] == key


def test_unreadable_versions_sort_first_and_by_text() -> None:
    texts = ["", "2004d", "dev", "zzz", "0.dev0", "0a0", "0", "0.post0", "0.1", "1!0"]
    keys = [parse_version(text)[1] for text in texts]
    assert keys == sorted(keys)
    assert len(set(keys)) == len(keys)


@pytest.mark.parametrize("text", ["1" * 5000, "1." * 200 + "1", "\ud800", "9" * 256])
def test_texts_beyond_reason_are_legacy_versions_and_no_error(text: str) -> None:
    key, sort = parse_version(text)
    assert key == text
    assert sort < parse_version("0.dev0")[1]


def test_longest_number_still_sorts() -> None:
    assert parse_version("9" * 254)[1] < parse_version("9" * 255)[1]


@given(version_texts(), version_texts())
def test_sort_keys_order_as_versions_do(left: str, right: str) -> None:
    a, b = Version(left), Version(right)
    (key_a, sort_a), (key_b, sort_b) = parse_version(left), parse_version(right)
    assert (sort_a < sort_b, sort_a == sort_b) == (a < b, a == b)
    assert (key_a == key_b) == (a == b)


@given(st.text(max_size=30))
def test_any_text_has_a_version_key_that_is_its_own_key(text: str) -> None:
    key, sort = parse_version(text)
    try:
        Version(text)
    except InvalidVersion:
        assert key == text
    else:
        assert parse_version(key) == (key, sort)


@pytest.mark.parametrize(
    ("filename", "project", "version", "python", "build", "tags"),
    [
        ("demo-1.0-py3-none-any.whl", "demo", "1", "py3", "", "py3-none-any"),
        ("Demo.Pkg-1.0-py2.py3-none-any.whl", "demo-pkg", "1", "py2.py3", "", "py2.py3-none-any"),
        ("demo_pkg-1.0-1-cp311-abi3-linux_x86_64.whl", "demo-pkg", "1", "cp311", "1", "cp311-abi3-linux_x86_64"),
        (
            "demo-1.0-2build.3-cp311-cp311-manylinux_2_17_x86_64.manylinux2014_x86_64.whl",
            "demo",
            "1",
            "cp311",
            "2build.3",
            "cp311-cp311-manylinux_2_17_x86_64.manylinux2014_x86_64",
        ),
        ("demo-1.0+cu121-py3-none-any.whl", "demo", "1+cu121", "py3", "", "py3-none-any"),
        ("demo-1!2.0-py3-none-any.whl", "demo", "1!2", "py3", "", "py3-none-any"),
    ],
)
def test_wheel_names_are_read(filename: str, project: str, version: str, python: str, build: str, tags: str) -> None:
    parsed = parse_filename(filename)
    assert (parsed.kind, parsed.project_key, parsed.version_key) == ("bdist_wheel", project, version)
    assert (parsed.python_version, parsed.build, parsed.tags) == (python, build, tags)
    assert parsed.filename == filename == f"{parsed.stem}.whl"
    assert parsed.version_sort == parse_version(parsed.version_text)[1]


@pytest.mark.parametrize(
    ("filename", "name", "version"),
    [
        ("demo_pkg-1.0.tar.gz", "demo_pkg", "1.0"),
        ("Demo.Pkg-1.0.tar.gz", "Demo.Pkg", "1.0"),
        ("demo-pkg-1.0.zip", "demo-pkg", "1.0"),
        ("demo-1.0.post1.tar.gz", "demo", "1.0.post1"),
        ("demo-1.0+local.1.tar.gz", "demo", "1.0+local.1"),
        ("py-3-thing-1.0.tar.gz", "py-3-thing", "1.0"),
        ("foo-2-1.0.tar.gz", "foo-2", "1.0"),
    ],
)
def test_source_distribution_names_are_read(filename: str, name: str, version: str) -> None:
    parsed = parse_filename(filename)
    assert (parsed.name, parsed.version_text) == (name, version)
    assert (parsed.kind, parsed.python_version, parsed.build, parsed.tags) == ("sdist", "source", "", "")
    assert parsed.filename.startswith(parsed.stem + ".")


@pytest.mark.parametrize(
    ("project", "name", "version"), [("demo", "demo", "1.post2"), ("demo-1", "demo-1", "2"), ("Demo_1", "demo-1", "2")]
)
def test_ambiguous_dash_is_split_by_the_known_project(project: str, name: str, version: str) -> None:
    parsed = parse_filename("demo-1-2.tar.gz", project=project)
    assert (parsed.name, parsed.version_key) == (name, version)
    with pytest.raises(Invalid, match="more than one way"):
        parse_filename("demo-1-2.tar.gz")


@pytest.mark.parametrize("filename", ["demo-1.0.tar.gz", "demo-1.0-py3-none-any.whl"])
def test_file_of_another_project_is_refused(filename: str) -> None:
    assert parse_filename(filename, project="DEMO").project_key == "demo"
    with pytest.raises(Invalid, match="'other'"):
        parse_filename(filename, project="other")
    with pytest.raises(Invalid, match="project name"):
        parse_filename(filename, project="../demo")


@pytest.mark.parametrize(
    "filename",
    [
        "",
        "demo",
        "demo.whl",
        ".whl",
        "-.whl",
        ".demo-1.0.tar.gz",
        "demo-1.0.egg",
        "demo-1.0.win32.exe",
        "demo-1.0-1.noarch.rpm",
        "demo-1.0.TAR.GZ",
        "demo.tar.gz",
        "demo-.tar.gz",
        "-1.0.tar.gz",
        "demo-one.tar.gz",
        "demo- 1.0.tar.gz",
        "demo-1.0 .zip",
        "a/demo-1.0.tar.gz",
        "..\\demo-1.0.tar.gz",
        "demo-1.0\x00.tar.gz",
        "demo-1.0\n.tar.gz",
        "demo-1.0\x7f.tar.gz",
        "dëmo-1.0.tar.gz",
        "demo-1.0-py3-none-any.wh\u217c",
        "demo-" + "1" * 260 + ".tar.gz",
        "demo-1.0-py3-any.whl",
        "demo-1.0-1-2-py3-none-any.whl",
        "de__mo-1.0-py3-none-any.whl",
        "demo_-1.0-py3-none-any.whl",
        "demo-one-py3-none-any.whl",
        "demo-1.0-build1-py3-none-any.whl",
        "demo-1.0--py3-none-any.whl",
        "demo-1.0-py3..py2-none-any.whl",
        "demo-1.0-py3-none-.whl",
        "demo-1.0-py3-no+ne-any.whl",
    ],
)
@pytest.mark.parametrize("project", [None, "demo"])
def test_what_is_no_distribution_is_refused_with_a_sentence(filename: str, project: str | None) -> None:
    with pytest.raises(Invalid) as caught:
        parse_filename(filename, project=project)
    assert str(caught.value).isascii()
    assert str(caught.value).isprintable()


@pytest.mark.parametrize("ending", OLD_SDIST_ENDINGS)
def test_old_source_distributions_are_read_but_not_uploaded(ending: str) -> None:
    found = parse_filename(f"demo-pkg-1.0{ending}", project="demo_pkg")
    assert (found.kind, found.project_key, found.version_text) == ("sdist", "demo-pkg", "1.0")
    with pytest.raises(Invalid, match="neither a wheel"):
        parse_upload(f"demo-pkg-1.0{ending}", project="demo_pkg")


@pytest.mark.parametrize(
    "filename",
    [
        "demo_pkg-1.0.tar.gz",
        "demo_pkg-1.0rc1.tar.gz",
        "demo_pkg-1.0-py3-none-any.whl",
        "demo_pkg-1.0-1b-py2.py3-none-any.whl",
        "demo_pkg-1.0+cu121-py3-none-any.whl",
    ],
)
def test_strict_takes_names_of_today(filename: str) -> None:
    assert parse_upload(filename, strict=True) == parse_filename(filename)


@pytest.mark.parametrize(
    ("filename", "expected"),
    [
        ("demo-pkg-1.0.tar.gz", "demo_pkg-1.0.tar.gz"),
        ("Demo_pkg-1.0.tar.gz", "demo_pkg-1.0.tar.gz"),
        ("demo.pkg-v1.0.tar.gz", "demo_pkg-1.0.tar.gz"),
        ("demo_pkg-1.0.zip", "demo_pkg-1.0.tar.gz"),
        ("demo_pkg-1.0-1.tar.gz", "demo_pkg-1.0.post1.tar.gz"),
        ("Demo.Pkg-1.0RC1-py3-none-any.whl", "demo_pkg-1.0rc1-py3-none-any.whl"),
    ],
)
def test_strict_refuses_older_spellings_and_names_the_right_one(filename: str, expected: str) -> None:
    assert parse_filename(filename, project="demo-pkg").filename == filename
    with pytest.raises(Invalid, match=f"'{expected}'.*strict_filenames"):
        parse_upload(filename, project="demo-pkg", strict=True)
