-- Downloads of a package, in total and by day. download_count has a row for each file and day, too many to add up for
-- a page: a package of 5,000 versions gets a million of them in a year.
ALTER TABLE package ADD COLUMN downloads INTEGER NOT NULL DEFAULT 0;
CREATE TABLE package_download (
    package_id INTEGER NOT NULL REFERENCES package (id) ON DELETE CASCADE,
    day INTEGER NOT NULL,                       -- days since the epoch
    count INTEGER NOT NULL,
    PRIMARY KEY (package_id, day)
) WITHOUT ROWID;
INSERT INTO package_download (package_id, day, count)
SELECT c.package_id, c.day, SUM(c.count) FROM download_count c JOIN package p ON p.id = c.package_id
GROUP BY c.package_id, c.day;
UPDATE package SET downloads = (SELECT SUM(d.count) FROM package_download d WHERE d.package_id = package.id)
WHERE EXISTS (SELECT 1 FROM package_download d WHERE d.package_id = package.id);
DROP INDEX download_count_package;

-- Lists of packages are sorted by the database, a page at a time.
CREATE INDEX package_downloads ON package (repository_id, downloads, key);
CREATE INDEX package_changed ON package (repository_id, updated_at, key);
CREATE INDEX version_withdrawn ON version (package_id, state) WHERE state <> 'live';
