-- What a client was told is there, for a push that it has not completed: garbage collection leaves that alone.
CREATE TABLE promise (
    package_id INTEGER NOT NULL REFERENCES package (id) ON DELETE CASCADE,
    digest TEXT NOT NULL,                       -- of a blob, always sha256, or of a manifest
    client TEXT NOT NULL,                       -- the bearer token or connection of one client; '' for any
    made_at INTEGER NOT NULL,
    PRIMARY KEY (package_id, digest, client)
) WITHOUT ROWID;
CREATE INDEX promise_age ON promise (made_at);
