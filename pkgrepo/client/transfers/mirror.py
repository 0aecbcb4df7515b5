"""``pkgrepo mirror``: have a repository fetch what lock files name."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Final, Self

import click
from attrs import frozen

from pkgrepo.client.api import Client, at
from pkgrepo.client.printer import Printer
from pkgrepo.client.session import Session, checked, remote
from pkgrepo.client.terminal import Unsound
from pkgrepo.client.transfers.files import sha256_of
from pkgrepo.display import plural, size
from pkgrepo.errors import Invalid

WORDS: Final = {
    "refused": "refused",
    "not_found": "not found",
    "digest_differs": "with another digest",
    "failed": "failed",
    "left_out": "not of a registry",
}

FOLDER_LIST: Final = "list of a local Maven repository"  # the name by which the server knows the list of a folder
_OWN: Final = re.compile(  # of Maven itself, beside the files of repositories
    r"_remote\.repositories|.*\.lastUpdated|.*\.lock|resolver-status\.properties|m2e-.*|.*\.(md5|sha1|sha256|sha512|part)"
)
_METADATA: Final = re.compile(r"maven-metadata-(?!local\.xml).*\.xml")


@click.command("mirror")
@click.argument("repository", metavar="STORAGE/REPOSITORY")
@click.option(
    "--lock",
    "locks",
    multiple=True,
    type=click.Path(exists=True, path_type=Path),
    help="A lock file, or the folder of a local Maven repository; may be repeated.",
)
@click.option("--only", multiple=True, metavar="GLOB", help="Only files whose names match; may be repeated.")
@remote
async def mirror(session: Session, repository: str, locks: tuple[Path, ...], only: tuple[str, ...]) -> None:
    """
    Have a proxy, or the proxies of a virtual repository, fetch and keep what lock files name.

    A site without internet then builds from this server. Of a hosted repository it is checked that all is there. The
    exit code is 1 if anything is missing; what is there already is not fetched again, so that this can be repeated.

    Lock files: package-lock.json, npm-shrinkwrap.json, yarn.lock, pnpm-lock.yaml, bun.lock; uv.lock, poetry.lock,
    pdm.lock, pylock.toml, Pipfile.lock, requirements with pins; Gemfile.lock; Cargo.lock; lists of conda
    (--explicit), conda-lock.yml, pixi.lock; a local Maven repository, the output of dependency:list or dependency:tree,
    gradle.lockfile; a list of images, one a line, with platforms after a blank if not all are wanted.
    """
    given = [checked(lambda each=each: read_given(each)) for each in locks]  # type: ignore[misc]
    body = {"locks": [{"name": name, "text": text} for name, text in given], "only": list(only)}
    path = at("repository", repository, "mirror")
    job = (await session.client.call("POST", path, value=body, query={"wait": 0})).value
    show_mirrored(session.printer, await session.wait_for(job))


def show_mirrored(printer: Printer, found: dict[str, Any]) -> None:
    """Print what was fetched. :raises Unsound: something is missing"""
    missing = [f"{found[kind]} {word}" for kind, word in WORDS.items() if found[kind]]
    printer.done(
        f"fetched {plural(found['fetched'], 'file')} ({size(found['fetched_bytes'])}) of "
        f"{plural(found['packages'], 'package')}; {found['present']} there already"
        + (f"; missing: {', '.join(missing)}" if missing else ""),
        found,
    )
    for each in found["problems"]:
        name = " ".join(filter(None, (each["package"], each["item"])))
        printer.note(f"{WORDS[each['kind']]}: {name}: {each['reason']}")
    more = found["problems_count"] - len(found["problems"])
    if more > 0:
        printer.note(f"and {more} more")
    if found["problems_count"]:
        raise Unsound(found["problems_count"])


@frozen
class GivenLock:
    """A lock file with its name and text; ``repository`` is the one that it is for, empty if that is not said."""

    repository: str
    name: str
    text: str

    @classmethod
    def read(cls, given: str, repositories: Sequence[str]) -> Self:
        """
        A lock file that is given as FILE or REPOSITORY=FILE.

        :raises Invalid: there is none, or it is no text; :raises OSError: it cannot be read
        """
        before, equals, after = given.partition("=")
        repository, place = (before, after) if equals and before in repositories else ("", given)
        if not Path(place).exists():
            raise Invalid(f"there is no lock file {place}")
        return cls(repository, *read_given(Path(place)))


async def assign_locks(
    client: Client, given: Sequence[GivenLock], formats: Mapping[str, str]
) -> dict[str, list[GivenLock]]:
    """The lock files that are for each repository. :raises Invalid: one is for none, or it is not clear for which"""
    found: dict[str, list[GivenLock]] = {name: [] for name in formats}
    for each in given:
        asked = {"name": each.name, "text": each.text}
        place = at("repository", next(iter(formats)), "lock-formats")
        possible = (await client.call("POST", place, value=asked)).value["formats"]
        fitting = [each.repository] if each.repository else [name for name in formats if formats[name] in possible]
        if not fitting:
            raise Invalid(f"none of these repositories has the format of {each.name}")
        if not each.repository and len({formats[name] for name in fitting}) > 1 and len(possible) > 2:
            raise Invalid(f"say for which repository {each.name} is: --lock {fitting[0]}={each.name}")
        for name in fitting:
            found[name].append(each)
    return found


def read_given(path: Path) -> tuple[str, str]:
    """
    The name and the text of a lock file, or of the list of a folder.

    :raises Invalid: it is no text, or the folder has no files; :raises OSError: it cannot be read
    """
    if path.is_dir():
        lines = list(_list_folder(path))
        if not lines:
            raise Invalid(f"{path} has no files of a Maven repository")
        return FOLDER_LIST, "\n".join(lines)
    try:
        return path.name, path.read_text("utf-8")
    except UnicodeDecodeError:
        raise Invalid(f"{path} is no text") from None


def _list_folder(root: Path) -> Iterator[str]:
    """A line for each file of a local Maven repository that comes from a repository, with its digest."""
    for folder, folders, names in os.walk(root):
        folders[:] = sorted(each for each in folders if not each.startswith("."))
        for name in sorted(_downloaded(Path(folder), names)):
            file = Path(folder, name)
            path = file.relative_to(root)
            if _METADATA.fullmatch(name):
                yield path.with_name("maven-metadata.xml").as_posix()
            elif " " not in str(path):
                yield f"{sha256_of(file)} {path.as_posix()}"


def _downloaded(folder: Path, names: Sequence[str]) -> Iterator[str]:
    """The names of the files that Maven has not made itself; it notes those that ``install`` has put there."""
    noted = folder / "_remote.repositories"
    installed = (
        set(re.findall(r"^(.+)>=$", noted.read_text("utf-8", "replace"), re.MULTILINE)) if noted.is_file() else ()
    )
    for name in names:
        if not _OWN.fullmatch(name) and name not in installed and not name.startswith("maven-metadata-local"):
            yield name
