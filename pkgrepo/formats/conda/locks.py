"""Lock files of conda, which may also name wheels of a Python index."""

from __future__ import annotations

from typing import Final

from pkgrepo.errors import Invalid
from pkgrepo.gateway.mirrored.locks import Lock, Wanted, parse_hashes, path_of, table_of, tables_of, text_of
from pkgrepo.untrusted.yaml_text import read_yaml

NAME: Final = "conda"
WHEELS: Final = "python"  # the format of repositories that have wheels
_BY_LENGTH: Final = {32: "md5", 40: "sha1", 64: "sha256"}


def read_explicit(text: str) -> Lock:
    """A list of URLs of conda packages with digests (``conda list --explicit``). :raises Invalid: it is another file"""
    lock = Lock()
    if "@EXPLICIT" not in text:
        raise Invalid("it has no line @EXPLICIT: is it of conda list --explicit?")
    for line in text.splitlines():
        url, _, digest = line.strip().partition("#")
        if "://" in url:
            hashes = digest if ":" in digest else f"{_BY_LENGTH.get(len(digest), '')}:{digest}"
            _add_conda(lock, url, [hashes])
    return lock


def read_conda_lock(text: str) -> Lock:
    """``conda-lock.yml``, with what it takes from a Python index. :raises Invalid: it is another file"""
    document, lock = table_of(read_yaml(text)), Lock()
    if "package" not in document:
        raise Invalid("it has no package: is it a conda-lock.yml?")
    for each in tables_of(document["package"]):
        hashes = [f"{name}:{value}" for name, value in table_of(each.get("hash")).items()]
        if each.get("manager") == "pip":
            _add_wheel(lock, text_of(each.get("name")), text_of(each.get("version")), text_of(each.get("url")), hashes)
        else:
            _add_conda(lock, text_of(each.get("url")), hashes)
    return lock


def read_pixi(text: str) -> Lock:
    """``pixi.lock``, with what it takes from a Python index. :raises Invalid: it is another file"""
    document, lock = table_of(read_yaml(text)), Lock()
    if "environments" not in document:
        raise Invalid("it has no environments: is it a pixi.lock?")
    for each in tables_of(document.get("packages")):
        hashes = [f"{name}:{text_of(each.get(name))}" for name in ("sha256", "md5")]
        kind = text_of(each.get("kind"))
        conda = text_of(each.get("conda")) or (text_of(each.get("url")) if kind == "conda" else "")
        pypi = text_of(each.get("pypi")) or (text_of(each.get("url")) if kind == "pypi" else "")
        if conda:
            _add_conda(lock, conda, hashes)
        elif "://" in pypi:
            _add_wheel(lock, text_of(each.get("name")), text_of(each.get("version")), pypi, hashes)
    return lock


def _add_conda(lock: Lock, url: str, hashes: list[str]) -> None:
    subdir, _, file = path_of(url).rpartition("/")
    subdir = subdir.rpartition("/")[2]
    if not subdir or not file:
        lock.leave_out(url, "it is no address of a conda package")
        return
    name = file.rsplit("-", 2)[0]
    lock.want(Wanted(format=NAME, name=name, file=f"{subdir}/{file}", digests=parse_hashes(hashes)))


def _add_wheel(lock: Lock, name: str, version: str, url: str, hashes: list[str]) -> None:
    file = path_of(url).rpartition("/")[2]
    name = name or (file.partition("-")[0] if file.endswith(".whl") else file.rpartition("-")[0])
    lock.want(Wanted(format=WHEELS, name=name, version=version, file=file, digests=parse_hashes(hashes)))
