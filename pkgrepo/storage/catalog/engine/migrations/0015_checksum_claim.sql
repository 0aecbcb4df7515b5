-- Checksums that clients sent ahead of their file: the file is checked against them when it arrives.
CREATE TABLE checksum_claim (
    repository_id INTEGER NOT NULL REFERENCES repository (id) ON DELETE CASCADE,
    path TEXT NOT NULL,                         -- of the file
    algorithm TEXT NOT NULL,
    digest TEXT NOT NULL,                       -- lower-case hex
    made_at INTEGER NOT NULL,
    PRIMARY KEY (repository_id, path, algorithm)
) WITHOUT ROWID;
CREATE INDEX checksum_claim_age ON checksum_claim (made_at);
