-- Documents that newer ones have replaced, for clients that were told their addresses before.
CREATE TABLE superseded_document (
    repository_id INTEGER NOT NULL REFERENCES repository (id),
    key TEXT NOT NULL,
    package_key TEXT NOT NULL,
    body BLOB NOT NULL,
    expires_at INTEGER NOT NULL,
    PRIMARY KEY (repository_id, key)
);

CREATE INDEX superseded_document_by_expiry ON superseded_document (expires_at);
