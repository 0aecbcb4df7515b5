-- Versions that retention keeps.
CREATE TABLE pin (
    repository_id INTEGER NOT NULL REFERENCES repository (id) ON DELETE CASCADE,
    package_key TEXT NOT NULL,
    name TEXT NOT NULL,                         -- the text of a version; of images, a tag or the digest of a manifest
    reason TEXT NOT NULL DEFAULT '',
    user_id INTEGER,
    actor TEXT NOT NULL DEFAULT '',
    pinned_at INTEGER NOT NULL,
    PRIMARY KEY (repository_id, package_key, name)
) WITHOUT ROWID;
