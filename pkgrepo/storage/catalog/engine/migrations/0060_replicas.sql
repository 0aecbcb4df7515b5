-- How far proxy repositories have followed the events of other servers, and what remains to be done.
CREATE TABLE replica (
    repository_id INTEGER PRIMARY KEY REFERENCES repository (id) ON DELETE CASCADE,
    source TEXT NOT NULL,
    position TEXT NOT NULL DEFAULT '',
    walk TEXT NOT NULL,
    walked TEXT NOT NULL DEFAULT '',
    events_left INTEGER NOT NULL DEFAULT 0,
    compared_at INTEGER,
    reason TEXT NOT NULL DEFAULT '',
    checked_at INTEGER,
    current_at INTEGER,
    error TEXT NOT NULL DEFAULT '',
    failing_since INTEGER,
    announced INTEGER NOT NULL DEFAULT 0
);

CREATE TABLE replica_task (
    repository_id INTEGER NOT NULL REFERENCES repository (id) ON DELETE CASCADE,
    package_key TEXT NOT NULL,
    version TEXT NOT NULL,
    serial INTEGER NOT NULL DEFAULT 0,
    compared INTEGER NOT NULL DEFAULT 0,
    attempts INTEGER NOT NULL DEFAULT 0,
    due_at INTEGER NOT NULL,
    error TEXT NOT NULL DEFAULT '',
    PRIMARY KEY (repository_id, package_key, version)
) WITHOUT ROWID;
CREATE INDEX replica_task_due ON replica_task (repository_id, compared, due_at);
