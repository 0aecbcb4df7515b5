-- Bodies of fragments of more than 2 KB took a page of their own in SQLite. Rows of one package are numbered in a row, so
-- that they still lie side by side.

-- Only SQLite:
CREATE TABLE numbered_fragment (
    package_id INTEGER NOT NULL REFERENCES package (id) ON DELETE CASCADE,
    kind TEXT NOT NULL,
    sort BLOB NOT NULL,
    key TEXT NOT NULL,
    body BLOB NOT NULL,
    PRIMARY KEY (package_id, kind, sort, key)
);
INSERT INTO numbered_fragment (rowid, package_id, kind, sort, key, body)
SELECT (package_id << 32) + ROW_NUMBER() OVER (PARTITION BY package_id ORDER BY kind, sort, key),
    package_id, kind, sort, key, body
FROM fragment ORDER BY package_id, kind, sort, key;
DROP TABLE fragment;
ALTER TABLE numbered_fragment RENAME TO fragment;

CREATE VIEW fragment_place AS
SELECT p.id AS package_id, COALESCE(
    (SELECT MAX(f.rowid) FROM fragment f WHERE f.rowid >= p.id << 32 AND f.rowid < (p.id + 1) << 32), p.id << 32
) AS last FROM package p;

-- Only PostgreSQL:
ALTER TABLE fragment ADD COLUMN rowid BIGINT;
CREATE VIEW fragment_place AS SELECT CAST(NULL AS BIGINT) AS package_id, CAST(NULL AS BIGINT) AS last WHERE FALSE;
