-- The columns of the primary key come first: PRAGMA integrity_check of SQLite before 3.41, such as Debian 12's, took the
-- columns of other tables WITHOUT ROWID for each other, and reported values that are missing.
CREATE TABLE manifest_ref_new (
    manifest_id INTEGER NOT NULL REFERENCES manifest (id) ON DELETE CASCADE,
    digest TEXT NOT NULL,
    kind TEXT NOT NULL,                         -- config, layer, manifest
    package_id INTEGER NOT NULL,                -- that of the manifest: digests such as that of {} are in every image
    PRIMARY KEY (manifest_id, digest, kind)
) WITHOUT ROWID;
INSERT INTO manifest_ref_new (manifest_id, digest, kind, package_id)
SELECT manifest_id, digest, kind, package_id FROM manifest_ref;
DROP TABLE manifest_ref;
ALTER TABLE manifest_ref_new RENAME TO manifest_ref;
CREATE INDEX manifest_ref_digest ON manifest_ref (package_id, digest);

CREATE TABLE signature_new (
    manifest_id INTEGER NOT NULL REFERENCES manifest (id) ON DELETE CASCADE,
    subject TEXT NOT NULL,                      -- the digest that is signed; there need not be such a manifest
    key_id TEXT NOT NULL,
    package_id INTEGER NOT NULL,                -- that of the manifest
    PRIMARY KEY (manifest_id, subject, key_id)
) WITHOUT ROWID;
INSERT INTO signature_new (manifest_id, subject, key_id, package_id)
SELECT manifest_id, subject, key_id, package_id FROM signature;
DROP TABLE signature;
ALTER TABLE signature_new RENAME TO signature;
CREATE INDEX signature_subject ON signature (package_id, subject);

CREATE TABLE first_sight_new (
    repository_id INTEGER NOT NULL REFERENCES repository (id) ON DELETE CASCADE,
    package_key TEXT NOT NULL,                  -- of the image, of which nothing else need be kept
    digest TEXT NOT NULL,
    tag TEXT NOT NULL,                          -- that pointed to it; empty: it was asked for by its digest
    seen_at INTEGER NOT NULL,                   -- first
    moved_at INTEGER NOT NULL,                  -- when the tag last came to point to it
    PRIMARY KEY (repository_id, package_key, digest, tag)
) WITHOUT ROWID;
INSERT INTO first_sight_new (repository_id, package_key, digest, tag, seen_at, moved_at)
SELECT repository_id, package_key, digest, tag, seen_at, moved_at FROM first_sight;
DROP TABLE first_sight;
ALTER TABLE first_sight_new RENAME TO first_sight;
CREATE INDEX first_sight_tag ON first_sight (repository_id, package_key, tag, moved_at);
