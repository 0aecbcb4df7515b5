-- Files that are received together, and published together or not at all.
CREATE TABLE deployment (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    uid TEXT NOT NULL UNIQUE,
    repository_id INTEGER NOT NULL REFERENCES repository (id),
    package_key TEXT NOT NULL DEFAULT '',       -- of a session, which gets the files of one package one by one
    name TEXT NOT NULL DEFAULT '',
    state TEXT NOT NULL,
    automatic INTEGER NOT NULL,                 -- published as soon as it is validated
    user_id INTEGER,
    actor TEXT NOT NULL,
    size INTEGER NOT NULL DEFAULT 0,            -- bytes that it takes or may take
    errors TEXT NOT NULL DEFAULT '{}',
    meta TEXT NOT NULL DEFAULT '{}',
    lease_until INTEGER,                        -- a process works on it until then
    created_at INTEGER NOT NULL,
    touched_at INTEGER NOT NULL
);
CREATE INDEX deployment_repository ON deployment (repository_id, package_key);
CREATE INDEX deployment_age ON deployment (touched_at);

-- The files of deployments that are not published yet.
CREATE TABLE deployment_file (
    deployment_id INTEGER NOT NULL REFERENCES deployment (id) ON DELETE CASCADE,
    path TEXT NOT NULL,
    storage_id INTEGER NOT NULL,
    sha256 BLOB NOT NULL,
    attrs TEXT NOT NULL DEFAULT '{}',
    PRIMARY KEY (deployment_id, path)
) WITHOUT ROWID;
CREATE INDEX deployment_file_blob ON deployment_file (sha256);
