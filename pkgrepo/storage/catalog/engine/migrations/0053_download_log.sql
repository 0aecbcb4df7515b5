-- The download log gets rows for clients without a token, too, one for each day, with the names of what was fetched.
CREATE TABLE download_item (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    kind TEXT NOT NULL,
    item_id INTEGER NOT NULL,
    reference TEXT NOT NULL,
    repository_id INTEGER NOT NULL,
    repository TEXT NOT NULL,
    format TEXT NOT NULL,
    package_key TEXT NOT NULL,
    package TEXT NOT NULL,
    version_key TEXT NOT NULL,
    version TEXT NOT NULL,
    path TEXT NOT NULL,
    sha256 BLOB,
    first_day INTEGER NOT NULL,
    UNIQUE (item_id, kind, reference)
);
CREATE INDEX download_item_package ON download_item (package_key, version_key);
CREATE INDEX download_item_sha ON download_item (sha256);
CREATE INDEX download_item_day ON download_item (first_day);

CREATE TABLE download_client (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    user_id INTEGER NOT NULL,
    token_id INTEGER NOT NULL,
    pipeline TEXT NOT NULL,
    username TEXT NOT NULL,
    token TEXT NOT NULL,
    last_day INTEGER NOT NULL,
    UNIQUE (user_id, token_id, pipeline)
);

CREATE TABLE download_log (
    item_id INTEGER NOT NULL,
    day INTEGER NOT NULL,
    client_id INTEGER NOT NULL,
    address TEXT NOT NULL,
    first_at INTEGER NOT NULL,
    last_at INTEGER NOT NULL,
    count INTEGER NOT NULL,
    PRIMARY KEY (item_id, day, client_id, address)
) WITHOUT ROWID;

INSERT INTO download_item (
    kind, item_id, reference, repository_id, repository, format, package_key, package, version_key, version, path, sha256,
    first_day
)
SELECT d.kind, d.item_id, '', d.repository_id, COALESCE(s.name || '/' || r.name, ''), COALESCE(r.format, ''),
    COALESCE(p.key, ''), COALESCE(p.name, ''), COALESCE(v.key, m.digest, ''), COALESCE(v.text, m.digest, ''),
    d.path, COALESCE(f.sha256, m.sha256), d.first_day
FROM (
    SELECT kind, item_id, MIN(repository_id) AS repository_id, MIN(package_id) AS package_id, MIN(path) AS path,
        MIN(at) / 86400000 AS first_day
    FROM download GROUP BY kind, item_id
) d
LEFT JOIN repository r ON r.id = d.repository_id LEFT JOIN storage s ON s.id = r.storage_id
LEFT JOIN package p ON p.id = d.package_id
LEFT JOIN file f ON f.id = d.item_id AND d.kind = 'file' LEFT JOIN version v ON v.id = f.version_id
LEFT JOIN manifest m ON m.id = d.item_id AND d.kind = 'manifest';

INSERT INTO download_client (user_id, token_id, pipeline, username, token, last_day)
SELECT d.user_id, d.token_id, '', COALESCE(a.username, ''), COALESCE(t.name, ''), d.last_day
FROM (
    SELECT user_id, token_id, MAX(at) / 86400000 AS last_day FROM download
    WHERE user_id IS NOT NULL AND token_id IS NOT NULL GROUP BY user_id, token_id
) d
LEFT JOIN account a ON a.id = d.user_id LEFT JOIN token t ON t.id = d.token_id;

INSERT INTO download_log (item_id, day, client_id, address, first_at, last_at, count)
SELECT i.id, d.at / 86400000, c.id, '', MIN(d.at), MAX(d.at), COUNT(*)
FROM download d JOIN download_item i ON i.item_id = d.item_id AND i.kind = d.kind
JOIN download_client c ON c.user_id = d.user_id AND c.token_id = d.token_id
GROUP BY i.id, d.at / 86400000, c.id;

DROP TABLE download;
