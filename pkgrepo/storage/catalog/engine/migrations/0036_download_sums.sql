-- The sums of downloads for each repository and day, and for each version and week, of those that were counted so far.
CREATE TABLE repository_download (
    repository_id INTEGER NOT NULL REFERENCES repository (id) ON DELETE CASCADE,
    day INTEGER NOT NULL,
    count INTEGER NOT NULL,
    PRIMARY KEY (repository_id, day)
) WITHOUT ROWID;
INSERT INTO repository_download (repository_id, day, count)
SELECT r.id, d.day, SUM(d.count) FROM download_count d JOIN repository r ON r.id = d.repository_id GROUP BY r.id, d.day;

CREATE TABLE version_download (
    version_id INTEGER NOT NULL REFERENCES version (id) ON DELETE CASCADE,
    week INTEGER NOT NULL,
    count INTEGER NOT NULL,
    PRIMARY KEY (version_id, week)
) WITHOUT ROWID;
INSERT INTO version_download (version_id, week, count)
SELECT v.id, d.day / 7, SUM(d.count)
FROM download_count d JOIN file f ON f.id = d.item_id JOIN version v ON v.id = f.version_id
WHERE d.kind = 'file' GROUP BY v.id, d.day / 7;
