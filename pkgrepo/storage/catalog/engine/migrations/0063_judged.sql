-- What rules that need more than a name and a version were found to hide, for the lists over all packages.
CREATE TABLE judged (
    seq INTEGER PRIMARY KEY AUTOINCREMENT,
    repository_id INTEGER NOT NULL REFERENCES repository (id) ON DELETE CASCADE,
    package_key TEXT NOT NULL,
    stamp TEXT NOT NULL,
    versions TEXT NOT NULL
);
CREATE UNIQUE INDEX judged_package ON judged (repository_id, package_key, stamp);
CREATE INDEX judged_seq ON judged (repository_id, seq);
