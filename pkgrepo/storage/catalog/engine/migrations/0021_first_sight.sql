-- When manifests of upstreams were first seen: registries do not tell when an image was published.
CREATE TABLE first_sight (
    repository_id INTEGER NOT NULL REFERENCES repository (id) ON DELETE CASCADE,
    package_key TEXT NOT NULL,                  -- of the image, of which nothing else need be kept
    tag TEXT NOT NULL,                          -- that pointed to it; empty: it was asked for by its digest
    digest TEXT NOT NULL,
    seen_at INTEGER NOT NULL,                   -- first
    moved_at INTEGER NOT NULL,                  -- when the tag last came to point to it
    PRIMARY KEY (repository_id, package_key, digest, tag)
) WITHOUT ROWID;
CREATE INDEX first_sight_tag ON first_sight (repository_id, package_key, tag, moved_at);
