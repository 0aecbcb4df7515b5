-- How the caches of proxy repositories were used, by day.
CREATE TABLE cache_count (
    repository_id INTEGER NOT NULL,
    day INTEGER NOT NULL,                       -- days since the epoch
    hits INTEGER NOT NULL DEFAULT 0,
    misses INTEGER NOT NULL DEFAULT 0,
    confirmed INTEGER NOT NULL DEFAULT 0,
    stale INTEGER NOT NULL DEFAULT 0,
    absent INTEGER NOT NULL DEFAULT 0,
    saved_bytes INTEGER NOT NULL DEFAULT 0,
    fetched_bytes INTEGER NOT NULL DEFAULT 0,
    upstream_ms INTEGER NOT NULL DEFAULT 0,
    PRIMARY KEY (repository_id, day)
) WITHOUT ROWID;
