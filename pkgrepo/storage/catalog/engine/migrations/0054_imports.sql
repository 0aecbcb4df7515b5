-- What was taken in from where, so that a run that was interrupted goes on, and another run finds nothing to do.
CREATE TABLE import_source (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    repository_id INTEGER NOT NULL REFERENCES repository (id) ON DELETE CASCADE,
    kind TEXT NOT NULL,
    source TEXT NOT NULL,
    UNIQUE (repository_id, kind, source)
);
CREATE TABLE import_package (
    import_id INTEGER NOT NULL REFERENCES import_source (id) ON DELETE CASCADE,
    name TEXT NOT NULL,
    fingerprint TEXT NOT NULL,
    files INTEGER NOT NULL,
    updated_at INTEGER NOT NULL,
    PRIMARY KEY (import_id, name)
) WITHOUT ROWID;
CREATE TABLE import_left_out (
    import_id INTEGER NOT NULL REFERENCES import_source (id) ON DELETE CASCADE,
    package TEXT NOT NULL,
    item TEXT NOT NULL,
    reason TEXT NOT NULL,
    PRIMARY KEY (import_id, package, item)
) WITHOUT ROWID;
