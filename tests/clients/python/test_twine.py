"""twine: the current version, and the last one whose ``--skip-existing`` works with every index."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import requests

from tests.support.client_programs import client
from tests.support.python_index import PASSWORD, USER, PythonBench, PythonIndex
from tests.support.timeouts import TIMEOUT_S

LOGIN = ("-u", USER, "-p", PASSWORD)


@pytest.mark.shows("publish", by=("twine",))
def test_uploads_wheel_and_sdist_and_again_without_change(index: PythonIndex, bench: PythonBench) -> None:
    files = [bench.wheel("twine-both", "1.0.0"), bench.sdist("twine-both", "1.0.0")]
    command = [client("twine"), "upload", "--repository-url", index.legacy, *LOGIN, *files]
    bench.run(*command)
    serial = index.page("twine-both")["meta"]["_last-serial"]
    bench.run(*command)
    assert index.files("twine-both") == sorted(file.name for file in files)
    assert index.page("twine-both")["meta"]["_last-serial"] == serial


@pytest.mark.shows("refusal", by=("twine",))
def test_other_content_under_the_same_name_is_refused_with_a_sentence(index: PythonIndex, bench: PythonBench) -> None:
    command = [client("twine"), "upload", "--repository-url", index.legacy, *LOGIN]
    bench.run(*command, bench.wheel("twine-twice", "1.0"))
    printed = bench.run(*command, bench.wheel("twine-twice", "1.0", summary="other"), status=1)
    assert "File already exists" in " ".join(printed.split())


@pytest.mark.shows("publish", by=("twine-6.1",))
def test_older_twine_skips_existing_files(index: PythonIndex, bench: PythonBench) -> None:
    command = [client("twine-6.1"), "upload", "--skip-existing", "--repository-url", index.legacy, *LOGIN]
    bench.run(*command, bench.wheel("twine-skips", "1.0"))
    printed = bench.run(*command, bench.wheel("twine-skips", "1.0", summary="other"))
    assert "appears to already exist" in " ".join(printed.split())


@pytest.mark.parametrize("slash", ["", "/"])
def test_the_root_of_the_repository_takes_uploads_from_pypirc(
    index: PythonIndex, bench: PythonBench, slash: str
) -> None:
    project = f"twine-pypirc{len(slash)}"
    pypirc = bench.folder / ".pypirc"
    pypirc.write_text(
        f"[distutils]\nindex-servers = here\n[here]\nrepository = {index.url}{slash}\n"
        f"username = {USER}\npassword = {PASSWORD}\n"
    )
    bench.run(client("twine"), "upload", "--config-file", pypirc, "-r", "here", bench.wheel(project, "1.0"))
    assert len(index.files(project)) == 1


def test_a_wrong_password_is_printed_in_one_line(index: PythonIndex, bench: PythonBench) -> None:
    printed = bench.run(
        client("twine"),
        "upload",
        "--repository-url",
        index.legacy,
        "-u",
        USER,
        "-p",
        "wrong",
        bench.wheel("t-w", "1"),
        status=1,
    )
    assert "401" in printed
    assert "incorrect username or password" in " ".join(printed.split())


def test_an_upload_to_the_simple_index_is_refused_with_the_right_address(
    index: PythonIndex, bench: PythonBench
) -> None:
    printed = bench.run(
        client("twine"), "upload", "--repository-url", index.simple, *LOGIN, bench.wheel("t-s", "1"), status=1
    )
    assert "405" in printed
    assert "legacy/" in printed


def test_a_signature_is_kept_and_served(index: PythonIndex, bench: PythonBench) -> None:
    wheel = bench.wheel("twine-signed", "1.0")
    signature = wheel.with_name(wheel.name + ".asc")
    signature.write_text("-----BEGIN PGP SIGNATURE-----\nabc\n-----END PGP SIGNATURE-----\n")
    bench.run(client("twine-6.1"), "upload", "--repository-url", index.legacy, *LOGIN, wheel, signature)
    file = index.page("twine-signed")["files"][0]
    assert file["gpg-sig"] is True
    served = requests.get(
        requests.compat.urljoin(f"{index.simple}twine-signed/", file["url"] + ".asc"), timeout=TIMEOUT_S
    )
    assert served.text == signature.read_text()


def test_a_file_is_replaced_only_if_the_repository_allows_it(
    open_index: Callable[[str], PythonIndex], bench: PythonBench
) -> None:
    index = open_index("overwritable")
    command = [client("twine"), "upload", "--repository-url", index.legacy, *LOGIN]
    bench.run(*command, bench.wheel("replaced", "1.0"))
    before = index.page("replaced")["files"][0]["hashes"]
    bench.run(*command, bench.wheel("replaced", "1.0", summary="other"))
    files = index.page("replaced")["files"]
    assert len(files) == 1
    assert files[0]["hashes"] != before
