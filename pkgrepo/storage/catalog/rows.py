"""
Rows: the columns of a value and how it is made of them, functions that run a query, and parts of statements.

L{rows} gives the SELECT of a frozen value and the function that makes the value of a row:

    FILE, to_file = rows(File, "file f JOIN blob b ON ...", of="f", sha256=bytes.hex, locator="b.locator")

A field is read from the column of its name, and converted by its type, unless an argument says otherwise. L{insert},
L{put} and L{update} write a row that is given by the names of its columns, and convert the values back.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence, Set
from datetime import UTC, datetime
from enum import StrEnum
from functools import cache
from typing import Any, Final, TypeVar, get_origin, get_type_hints

import attrs
import msgspec

from pkgrepo.interfaces import Reader, Row, Transaction, Value
from pkgrepo.model import Action

T = TypeVar("T")

# Of a field: its column, how its value is made of that, or both; of several columns, if there are more.
Column = str | Callable[[Any], Any] | tuple[Any, ...]

LIKE = r"LIKE ? ESCAPE '\'"  # its parameter comes from L{like}
LAST_CHARACTER = "\U0010ffff"  # the greatest code point: texts that begin with X are between X and X + this


BATCH = 100  # rows or values in one statement


def at(value: int) -> datetime:
    """The aware UTC datetime of a time in milliseconds since the epoch."""
    return datetime.fromtimestamp(value / 1000, UTC)


def at_or_none(value: int | None) -> datetime | None:
    """The datetime as ``at`` gives it; None for NULL."""
    return None if value is None else at(value)


def to_ms(value: datetime | None) -> int | None:
    """An aware datetime in milliseconds since the epoch; None for None."""
    return None if value is None else round(value.timestamp() * 1000)


def is_set(value: Value) -> bool:
    """Whether a column is not NULL."""
    return value is not None


def dump(value: Any) -> str:
    """JSON text for a column."""
    return msgspec.json.encode(value).decode()


def dump_words(words: Iterable[str]) -> str:
    """A set of words as a sorted JSON array, so equal sets give equal text."""
    return dump(sorted(words))


def load(text: str) -> Any:
    """The value of a JSON column."""
    return msgspec.json.decode(text)


def load_actions(text: str) -> frozenset[Action]:
    """The actions of a JSON array column."""
    return frozenset(map(Action, load(text)))


def like(text: str) -> str:
    """The parameter of ``LIKE`` that matches texts that contain ``text``; ASCII case does not matter."""
    escaped = text.replace("\\", "\\\\").replace("%", r"\%").replace("_", r"\_")
    return f"%{escaped}%"


_PLAIN: Final = frozenset({int, str, bytes, float, type(None)})  # stored as they are; most values are of these types
_CONVERTERS: Final[Mapping[Any, Callable[[Any], Any]]] = {
    bool: bool,
    datetime: at,
    datetime | None: at_or_none,
    frozenset[Action]: load_actions,
}


def rows(cls: type[T], source: str, /, *, of: str = "", **fields: Column) -> tuple[str, Callable[[Row], T]]:
    """
    The SELECT of the columns of a frozen attrs class from ``source``, and the function that converts a row of it.

    ``of`` is the table's alias in ``source``. An argument named after a field is its SQL, a function of the value of
    its column, or a tuple: the SQL of one or more columns, and a function of their values. A column that several fields
    need is selected once. Fields that the class works out itself have none.
    """
    columns: list[str] = []
    arguments: list[str] = []
    names: dict[str, Any] = {"__name__": __name__, "make": cls}
    hints = get_type_hints(cls)
    for field in (each for each in attrs.fields(cls) if each.init):  # type: ignore[arg-type]
        own, convert = [f"{of}.{field.name}" if of else field.name], _converter(hints[field.name])
        match fields.pop(field.name, None):
            case str(sql):
                own = [sql]
            case (*sqls, function):
                own, convert = sqls, function
            case function if callable(function):
                convert = function
        columns += [each for each in own if each not in columns]
        values = ", ".join(f"row[{columns.index(each)}]" for each in own)
        if convert is not None:
            names[f"to_{field.name}"] = convert
            values = f"to_{field.name}({values})"
        arguments.append(f"{field.name}={values}" if field.kw_only else values)
    assert not fields, f"{cls.__name__} has no {', '.join(fields)}"
    # Compiled, because keywords or a loop over the columns take longer than the look-up of a row.
    make = eval(f"lambda row: make({', '.join(arguments)})", names)  # noqa: S307 - made of the names of fields alone
    return f"SELECT {', '.join(columns)} FROM {source}", make


def columns_of(select: str) -> str:
    """The columns of such a SELECT, for a statement that returns rows otherwise."""
    return select.removeprefix("SELECT ").partition(" FROM ")[0]


def _converter(kind: Any) -> Callable[[Any], Any] | None:
    """The conversion to a type from how its values are stored; None if they are stored as they are."""
    if isinstance(kind, type) and issubclass(kind, StrEnum):
        return kind
    if get_origin(kind) is Mapping:
        return load
    return _CONVERTERS.get(kind)


def find(r: Reader, convert: Callable[[Row], T], sql: str, parameters: Sequence[Value] = ()) -> T | None:
    """The first row, converted; None if there is no row."""
    row = r.one(sql, parameters)
    return None if row is None else convert(row)


def every(r: Reader, convert: Callable[[Row], T], sql: str, parameters: Sequence[Value] = ()) -> list[T]:
    """All rows, converted."""
    return [convert(row) for row in r.all(sql, parameters)]


def scalar(r: Reader, sql: str, parameters: Sequence[Value] = ()) -> Any | None:
    """The first column of the first row; None if there is no row."""
    row = r.one(sql, parameters)
    return None if row is None else row[0]


def only_row(r: Reader, sql: str, parameters: Sequence[Value] = ()) -> Row:
    """The row of a query that always finds one: of aggregates without GROUP BY, or of a row that was just inserted."""
    row = r.one(sql, parameters)
    assert row is not None
    return row


def column(r: Reader, sql: str, parameters: Sequence[Value] = ()) -> list[Any]:
    """The first column of all rows."""
    return [row[0] for row in r.all(sql, parameters)]


def number(r: Reader, sql: str, parameters: Sequence[Value] = ()) -> int:
    """The number in the first row, such as a count; 0 if it is NULL (MAX of no rows) or there is no row."""
    return int(scalar(r, sql, parameters) or 0)


def exists(r: Reader, sql: str, parameters: Sequence[Value] = ()) -> bool:
    """Whether the query finds any row."""
    return r.one(sql, parameters) is not None


def insert(tx: Transaction, table: str, /, **values: Any) -> int:
    """Insert a row, given by the names of its columns. Returns its id."""
    return tx.insert(f"{insertion(table, tuple(values))} RETURNING id", _stored(values))


def put(tx: Transaction, table: str, key: str = "", /, **values: Any) -> None:
    """Insert a row without an id. With a ``key`` (its columns), a row that has the same one gets the other values."""
    tx.send(insertion(table, tuple(values), key), _stored(values))


def update(tx: Transaction, table: str, id: int, /, **values: Any) -> None:
    """Change columns of the row with an id."""
    tx.send(changing(table, tuple(values)), [*_stored(values), id])


@cache
def insertion(table: str, columns: tuple[str, ...], key: str = "") -> str:
    """The statement of ``insert`` and ``put``."""
    sql = f"INSERT INTO {table} ({', '.join(columns)}) VALUES ({placeholders(len(columns))})"
    changes = ", ".join(f"{each} = excluded.{each}" for each in columns if each not in key.split(", "))
    return f"{sql} ON CONFLICT ({key}) DO UPDATE SET {changes}" if key else sql


def changing(table: str, columns: tuple[str, ...]) -> str:
    """The statement of ``update``."""
    return f"UPDATE {table} SET {', '.join(f'{each} = ?' for each in columns)} WHERE id = ?"


def _stored(values: Mapping[str, Any]) -> list[Value]:
    return [value if type(value) in _PLAIN else _to_column(value) for value in values.values()]


def _to_column(value: Any) -> Value:
    match value:
        case bool():
            return int(value)
        case datetime():
            return to_ms(value)
        case Mapping() | list() | tuple():
            return dump(value)
        case Set():
            return dump_words(value)
    return value  # type: ignore[no-any-return]


def placeholders(count: int, mark: str = "?") -> str:
    """``count`` placeholders, separated by commas. ``count`` is at least 1, since SQL has no empty list."""
    return ", ".join([mark] * count)


def marks_of(values: Sequence[Value]) -> str:
    """Placeholders for values of an IN, also for none."""
    return placeholders(len(values)) if values else "NULL"  # which no value is in


def optional_conditions(conditions: Sequence[str], values: Sequence[Value]) -> str:
    """The conditions whose value is not None, joined by AND, or ``1 = 1``. Each condition has one placeholder."""
    return " AND ".join(each for each, value in zip(conditions, values, strict=True) if value is not None) or "1 = 1"


def non_null(values: Sequence[Value]) -> list[Value]:
    """The values that are not None: the parameters of ``optional_conditions``."""
    return [value for value in values if value is not None]


def batches(values: Sequence[T], size: int = 0) -> Iterator[Sequence[T]]:
    """Yield the values in slices of at most ``size``, or ``BATCH``."""
    size = size or BATCH
    for begin in range(0, len(values), size):
        yield values[begin : begin + size]
