"""The kinds of setting values: how each is parsed, validated and shown."""

from __future__ import annotations

import ipaddress
import json
import re
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Annotated, Any, Final
from urllib.parse import urlsplit

from attrs import frozen
from twisted.internet.endpoints import serverFromString

from pkgrepo.errors import Invalid
from pkgrepo.outbound.addresses import check_exception
from pkgrepo.repositories.addresses import AddressTable
from pkgrepo.repositories.cron import parse_cron
from pkgrepo.untrusted.text import BYTES, SECONDS, bytes_of, seconds_of

PORT = re.compile(r"tcp6?:(?:.*?:)?(?:port=)?(\d+)(?::|$)")  # of an endpoint
MAX_PORT = 65_535
SECRET_KEYS = frozenset({"password", "token"})  # in tables that are validated elsewhere
NOT_EMPTY: Final = "a text that is not empty"


@frozen
class Kind:
    """
    One type of setting values.

    ``read`` takes a TOML value and the base folder of relative paths; it returns the validated value or raises
    ``SettingError``. With ``bare`` the text of an environment variable is the value itself; otherwise it is parsed as a
    TOML literal. ``show`` formats a value for people; a ``secret`` is never shown. ``automatic``: None is "auto", not
    unset. ``item`` is the class of each table if the value is a list of tables, or if ``named`` tables by their names.
    """

    what: str
    read: Callable[[object, Path], Any]
    bare: bool = True
    secret: bool = False
    show: Callable[[Any], str] = json.dumps
    automatic: bool = False
    item: type | None = None
    named: bool = False


class SettingError(ValueError):
    """A value is invalid. ``inner`` are the problems of keys in a table, each with the rest of its dotted name."""

    def __init__(self, sentence: str = "", inner: tuple[tuple[str, str], ...] = ()) -> None:
        super().__init__(sentence)
        self.sentence = sentence
        self.inner = inner


class Secret:
    """A text that no message, log line or ``repr`` shows."""

    __slots__ = ("_text",)

    def __init__(self, text: str) -> None:
        self._text = text

    def reveal(self) -> str:
        """The text itself."""
        return self._text

    def __repr__(self) -> str:
        return "Secret(...)"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Secret) and other._text == self._text

    def __hash__(self) -> int:
        return hash(self._text)


def _read_boolean(value: object, _folder: Path) -> bool:
    """True or false; no other words are accepted."""
    if not isinstance(value, bool):
        raise SettingError("must be true or false")
    return value


BOOLEAN = Kind("true or false", _read_boolean, bare=False)


def integer(low: int, high: int, *, automatic: bool = False) -> Kind:
    """A whole number from ``low`` to ``high``; with ``automatic`` also the word "auto", which becomes None."""
    what = f"a whole number from {low} to {high}" + (' or "auto"' if automatic else "")

    def read(value: object, _folder: Path) -> int | None:
        if automatic and isinstance(value, str):
            if value == "auto":
                return None
            value = int(value) if value.isascii() and value.isdigit() and len(value) <= 9 else value
        if isinstance(value, bool) or not isinstance(value, int) or not low <= value <= high:
            raise SettingError(f"must be {what}")
        return value

    def show(value: int | None) -> str:
        return json.dumps("auto" if value is None else value)

    return Kind(what, read, bare=automatic, show=show, automatic=automatic)


def text(pattern: str = r".+", what: str = NOT_EMPTY) -> Kind:
    """A text that matches the whole pattern."""
    matcher = re.compile(pattern)

    def read(value: object, _folder: Path) -> str:
        if not isinstance(value, str) or not matcher.fullmatch(value):
            raise SettingError(f"must be {what}")
        return value

    return Kind(what, read)


def secret(what: str = NOT_EMPTY) -> Kind:
    """A text that is never shown."""

    def read(value: object, _folder: Path) -> Secret:
        if not isinstance(value, str) or not value:
            raise SettingError(f"must be {what}")
        return Secret(value)

    return Kind(what, read, secret=True)


def choice(*options: str) -> Kind:
    """One of the given words."""
    what = " or ".join(f'"{option}"' for option in options)

    def read(value: object, _folder: Path) -> str:
        if value not in options:
            raise SettingError(f"must be {what}")
        return str(value)

    return Kind(what, read)


def duration(low: float, high: float) -> Kind:
    """A duration, in seconds."""
    what = "a duration such as 500ms, 60s, 5m, 12h or 7d; a bare number is seconds"

    def read(value: object, _folder: Path) -> float:
        seconds = seconds_of(value)
        if seconds is None:
            raise SettingError(f"must be {what}")
        if not low <= seconds <= high:
            raise SettingError(f"must be from {show_duration(low)} to {show_duration(high)}")
        return seconds

    return Kind(what, read, show=lambda seconds: json.dumps(show_duration(seconds)))


def size(low: int, high: int = 2**63 - 1, *, automatic: bool = False) -> Kind:
    """A number of bytes; with ``automatic`` also the word "auto", which becomes None."""
    what = "a size such as 64KiB, 500MB or 10GiB; a bare number is bytes" + (' or "auto"' if automatic else "")

    def read(value: object, _folder: Path) -> int | None:
        if automatic and value == "auto":
            return None
        count = bytes_of(value)
        if count is None or count != int(count):
            raise SettingError(f"must be {what}")
        if not low <= count <= high:
            raise SettingError(f"must be from {show_size(low)} to {show_size(high)}")
        return int(count)

    def show(count: int | None) -> str:
        return json.dumps("auto" if count is None else show_size(count))

    return Kind(what, read, show=show, automatic=automatic)


def _read_path(value: object, folder: Path) -> Path:
    """An absolute path; a relative one is resolved against the folder of the configuration file."""
    if not isinstance(value, str) or not value or "\0" in value:
        raise SettingError("must be a path")
    try:
        return folder / Path(value).expanduser()
    except RuntimeError:  # the home of a user that does not exist
        raise SettingError("must be a path") from None


PATH = Kind("a path", _read_path, show=lambda found: json.dumps(str(found)))


def _read_file(value: object, folder: Path) -> Path:
    """The path of an existing file."""
    found = _read_path(value, folder)
    if not found.is_file():
        raise SettingError(f"must be the path of a file; {found} is none")
    return found


EXISTING_FILE = Kind("the path of a file", _read_file, show=PATH.show)


def several(item: Kind, what: str) -> Kind:
    """A list of values of one type, as a tuple; a single value becomes a list of one."""

    def read(value: object, folder: Path) -> tuple[Any, ...]:
        values = value if isinstance(value, list | tuple) else [value]
        found = []
        for each in values:
            try:
                found.append(item.read(each, folder))
            except SettingError as problem:
                raise SettingError(f"must be {what}; {each!r} {problem.sentence}") from None
        return tuple(found)

    return Kind(what, read, bare=False, show=lambda values: f"[{', '.join(item.show(each) for each in values)}]")


def _read_endpoint(value: object, _folder: Path) -> str:
    """A server endpoint description of Twisted."""
    if not isinstance(value, str) or ":" not in value:
        raise SettingError('is not an endpoint such as "tcp:8081:interface=127.0.0.1"')
    # Parsing other endpoints opens files or inherited sockets; that is left to the start.
    if value.startswith(("tcp:", "tcp6:", "unix:")):
        try:
            serverFromString(object(), value)
        except (TypeError, ValueError) as error:
            raise SettingError(f"is not an endpoint: {error}") from None
        port = PORT.match(value)
        if port is not None and int(port[1]) > MAX_PORT:
            raise SettingError(f"is not an endpoint: there is no port above {MAX_PORT}")
    return value


ENDPOINT = Kind("a Twisted server endpoint", _read_endpoint)


def _read_base_url(value: object, _folder: Path) -> str:
    """An http(s) URL without query, returned without a trailing slash; empty means none."""
    if value == "":
        return ""
    if not isinstance(value, str):
        raise SettingError(f"must be {BASE_URL.what}")
    try:
        parts = urlsplit(value)
        port_is_number = parts.port is None or parts.port > 0
    except ValueError:
        raise SettingError(f"must be {BASE_URL.what}") from None
    plain = not (parts.query or parts.fragment or parts.username) and value.isprintable() and " " not in value
    if parts.scheme not in ("http", "https") or not parts.hostname or not plain or not port_is_number:
        raise SettingError(f"must be {BASE_URL.what}")
    return value.rstrip("/")


BASE_URL = Kind('an address such as "https://packages.example", or empty', _read_base_url)


def _read_network(value: object, _folder: Path) -> str:
    """An IPv4 or IPv6 address or network in canonical form; ``unix`` means peers on a Unix socket."""
    if value == "unix":
        return "unix"
    try:
        return str(ipaddress.ip_network(str(value)))
    except ValueError as error:
        raise SettingError(f"is not a network: {error}") from None


NETWORK = Kind('a network such as 10.0.0.0/8, or "unix"', _read_network)


def _read_target(value: object, _folder: Path) -> str:
    """A host, host pattern, address or network that upstream connections may go to."""
    try:
        return check_exception(str(value))
    except ValueError as error:
        raise SettingError(str(error)) from None


TARGET = Kind("a host, address or network", _read_target)


def _read_table(value: object, _folder: Path) -> Mapping[str, Any]:
    """A table that is validated elsewhere, such as a repository's configuration."""
    if not isinstance(value, Mapping):
        raise SettingError("must be a table")
    return dict(value)


TABLE = Kind("a table", _read_table, bare=False, show=lambda value: toml(_masked(value)))


def _read_hosts(value: object, folder: Path) -> Mapping[str, str]:
    """Host names, each with the path of a repository."""
    try:
        return AddressTable.checked(_read_table(value, folder), {}).hosts
    except Invalid as error:
        raise SettingError(str(error)) from None


def _read_aliases(value: object, folder: Path) -> Mapping[str, str]:
    """Path prefixes, each with the path of a repository."""
    try:
        return AddressTable.checked({}, _read_table(value, folder)).aliases
    except Invalid as error:
        raise SettingError(str(error)) from None


def _masked(value: object) -> object:
    """The value with *** for each text that a key such as ``password`` names, as in credentials of upstreams."""
    if isinstance(value, Mapping):
        return {name: "***" if name in SECRET_KEYS else _masked(each) for name, each in value.items()}
    return [_masked(each) for each in value] if isinstance(value, list | tuple) else value


def toml(value: object) -> str:
    """Format a value as inline TOML; it must not contain None, because TOML has no null."""
    if isinstance(value, Mapping):
        return f"{{{', '.join(f'{json.dumps(str(name))} = {toml(each)}' for name, each in value.items())}}}"
    if isinstance(value, list | tuple):
        return f"[{', '.join(map(toml, value))}]"
    return json.dumps(value, default=str)


HOSTS = Kind("a table of host names", _read_hosts, bare=False, show=toml)
ALIASES = Kind("a table of path prefixes", _read_aliases, bare=False, show=toml)


def show_duration(seconds: float) -> str:
    """The shortest exact spelling, such as ``5m``."""
    for unit in ("d", "h", "m", "s"):
        if seconds >= SECONDS[unit] and seconds % SECONDS[unit] == 0:
            return f"{seconds / SECONDS[unit]:g}{unit}"
    return f"{seconds:.3f}".rstrip("0").rstrip(".") + "s"


def show_size(count: int) -> str:
    """The shortest exact spelling, such as ``10GiB``."""
    for unit in ("Ti", "Gi", "Mi", "Ki"):
        if count >= BYTES[unit] and count % BYTES[unit] == 0:
            return f"{count // BYTES[unit]}{unit}B"
    return f"{count}B"


def _read_place(value: object, folder: Path) -> str:
    """An http(s) address, or an absolute path as ``_read_path`` gives it."""
    if isinstance(value, str) and value.startswith(("http://", "https://")):
        try:
            return _read_base_url(value, folder)
        except SettingError:
            raise SettingError(f"must be {PLACE.what}") from None
    return "" if value == "" else str(_read_path(value, folder))


PLACE = Kind("a path, an http(s) address without credentials and query, or empty", _read_place)


def _read_backup_place(value: object, folder: Path) -> str:
    """An address such as s3://bucket/prefix, or an absolute path as ``_read_path`` gives it."""
    if isinstance(value, str) and value.startswith("s3://"):
        if re.fullmatch(r"s3://[a-z0-9][a-z0-9.-]{1,62}(/[A-Za-z0-9._/-]*)?", value) is None:
            raise SettingError(f"must be {BACKUP_PLACE.what}")
        return value
    return "" if value == "" else str(_read_path(value, folder))


BACKUP_PLACE = Kind("a path, an address such as s3://bucket/prefix, or empty", _read_backup_place)


def _read_schedule(value: object, _folder: Path) -> str:
    """A cron text."""
    if not isinstance(value, str):
        raise SettingError(f"must be {SCHEDULE.what}")
    try:
        parse_cron(value)
    except Invalid as error:
        raise SettingError(str(error)) from None
    return value


SCHEDULE = Kind('a schedule such as "30 2 * * *"', _read_schedule)


Seconds = Annotated[float, duration]
Bytes = Annotated[int, size]
ExistingFile = Annotated[Path, EXISTING_FILE]
Endpoint = Annotated[str, ENDPOINT]
BaseUrl = Annotated[str, BASE_URL]
Place = Annotated[str, PLACE]
BackupPlace = Annotated[str, BACKUP_PLACE]
Schedule = Annotated[str, SCHEDULE]
Network = Annotated[str, NETWORK]
Target = Annotated[str, TARGET]
