-- What was deleted and can be restored: an entry for each deletion, see trash.py.
CREATE TABLE trash (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    uid TEXT NOT NULL UNIQUE,
    repository_id INTEGER NOT NULL REFERENCES repository (id),
    kind TEXT NOT NULL,                         -- version, files, manifest, tag: that of its items
    package_key TEXT NOT NULL,
    package_name TEXT NOT NULL,
    name TEXT NOT NULL,                         -- of its first item
    items INTEGER NOT NULL,                     -- that are left
    size INTEGER NOT NULL,                      -- bytes of these, which repository.bytes_used includes
    whole INTEGER NOT NULL DEFAULT 0,           -- 1: the package was removed with its last version
    reason TEXT NOT NULL DEFAULT '',            -- why, if a rule decided
    user_id INTEGER,
    actor TEXT NOT NULL DEFAULT '',
    deleted_at INTEGER NOT NULL
);
CREATE INDEX trash_package ON trash (repository_id, package_key);
CREATE INDEX trash_age ON trash (deleted_at, id);

CREATE TABLE trash_item (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    trash_id INTEGER NOT NULL REFERENCES trash (id) ON DELETE CASCADE,
    kind TEXT NOT NULL,
    name TEXT NOT NULL,                         -- the text of a version, the digest of a manifest, a tag
    size INTEGER NOT NULL,
    digest TEXT,                                -- of the manifest that a tag pointed to
    data TEXT NOT NULL                          -- JSON: what the catalog knew of it
);
CREATE INDEX trash_item_entry ON trash_item (trash_id, id);

-- The blobs that a restore needs.
CREATE TABLE trash_blob (
    trash_id INTEGER NOT NULL REFERENCES trash (id) ON DELETE CASCADE,
    sha256 BLOB NOT NULL,
    PRIMARY KEY (trash_id, sha256)
) WITHOUT ROWID;
CREATE INDEX trash_blob_sha ON trash_blob (sha256);
