-- What the upstreams of proxy repositories said about packages: the present answer to each question, a row each.
DROP TABLE cache_entry;
CREATE TABLE upstream_document (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    repository_id INTEGER NOT NULL REFERENCES repository (id),
    key TEXT NOT NULL,                          -- the question, for example packument/lodash
    package_key TEXT NOT NULL DEFAULT '',
    route TEXT NOT NULL DEFAULT '',             -- the name of the route that answered; empty: no route has it
    url TEXT NOT NULL DEFAULT '',               -- where the answer came from, behind redirects
    etag TEXT,
    last_modified TEXT,
    source BLOB,                                -- sha256 of the answer as it was sent
    storage_id INTEGER,                         -- with sha256 the blob of the normalised answer; NULL: meta has it all
    sha256 BLOB,
    meta TEXT NOT NULL DEFAULT '{}',
    trace TEXT NOT NULL DEFAULT '[]',           -- the steps that led to the answer
    fetched_at INTEGER NOT NULL,                -- when the content last changed; unique for a key
    checked_at INTEGER NOT NULL,                -- when an upstream last confirmed it
    fresh_until INTEGER NOT NULL,
    UNIQUE (repository_id, key)
);
CREATE INDEX upstream_document_package ON upstream_document (repository_id, package_key);
CREATE INDEX upstream_document_blob ON upstream_document (sha256) WHERE sha256 IS NOT NULL;
CREATE INDEX upstream_document_age ON upstream_document (repository_id, checked_at);
