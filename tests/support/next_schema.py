"""
A made-up version that follows the present one by two steps.

The first step adds a column, a table with rows, and removes a table. The second one draws a table anew to which other
rows refer, as SQLite requires for most changes, and waits within its transaction: for the function `wait_within` in
SQLite, for the lock `WAIT` in PostgreSQL.
"""

from __future__ import annotations

from typing import Final

from pkgrepo.storage.catalog.engine.schema import Migration, Schema, load_schema

WAIT: Final = 77_001_133  # of an advisory lock
PRESENT: Final = load_schema()
FIRST_STEP: Final = PRESENT.version + 1
LAST_STEP: Final = FIRST_STEP + 1

_SHADE: Final = """
CREATE TABLE shade (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    colour TEXT NOT NULL UNIQUE,
    digest BLOB
);
"""
_COLOUR: Final = "colour TEXT NOT NULL DEFAULT 'green'"
_DESCRIPTION: Final = "    description TEXT NOT NULL DEFAULT '',\n"


def _cut(sql: str, table: str) -> tuple[str, str, str]:
    """The schema before the statement that draws a table, that statement, and the schema after it."""
    begin = sql.index(f"CREATE TABLE {table} (")
    end = sql.index(";\n", begin) + 2
    return sql[:begin], sql[begin:end], sql[end:]


def _whole(sql: str) -> str:
    """The schema of the made-up version, drawn whole."""
    before, setting, after = _cut(sql, "setting")
    sql = before + setting.replace("\n)", f",\n    {_COLOUR}\n)") + _SHADE + after
    before, _, after = _cut(sql, "login_unlock")
    before, project, after = _cut(before + after, "project")
    return before + project.replace(_DESCRIPTION, "") + after


def _project_anew(sql: str) -> str:
    _, project, _ = _cut(sql, "project")
    assert _DESCRIPTION in project
    rows = "id, uid, key, name, visibility, created_at, updated_at, publishers"
    return f"""
{project.replace(_DESCRIPTION, "").replace("TABLE project", "TABLE new_project")}
INSERT INTO new_project ({rows}) SELECT {rows} FROM project;
DROP TABLE project;
ALTER TABLE new_project RENAME TO project;
"""


STEPS: Final = (
    Migration(
        FIRST_STEP,
        "colours.sql",
        f"""
ALTER TABLE setting ADD COLUMN {_COLOUR};
{_SHADE}
INSERT INTO shade (colour) SELECT DISTINCT colour FROM setting;
DROP TABLE login_unlock;
""",
    ),
    Migration(
        LAST_STEP,
        "projects.sql",
        f"""
INSERT INTO shade (colour) VALUES ('blue');

-- Only SQLite:
{_project_anew(PRESENT.sql)}
SELECT wait_within();
INSERT INTO shade (colour) VALUES ('red');

-- Only PostgreSQL:
ALTER TABLE project DROP COLUMN description;
SELECT pg_advisory_xact_lock({WAIT});
INSERT INTO shade (colour) VALUES ('red');
""",
    ),
)
NEXT: Final = Schema(_whole(PRESENT.sql), (*PRESENT.migrations, *STEPS))
