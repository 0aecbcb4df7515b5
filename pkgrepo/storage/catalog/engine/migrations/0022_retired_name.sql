-- Names of packages that a hosted repository had: virtual repositories around it do not ask upstreams for them.
CREATE TABLE retired_name (
    repository_id INTEGER NOT NULL REFERENCES repository (id) ON DELETE CASCADE,
    package_key TEXT NOT NULL,
    retired_at INTEGER NOT NULL,                -- when the package was removed
    PRIMARY KEY (repository_id, package_key)
) WITHOUT ROWID;
INSERT INTO retired_name (repository_id, package_key, retired_at)
SELECT t.repository_id, t.package_key, MAX(t.deleted_at)
FROM tombstone t JOIN repository r ON r.id = t.repository_id
WHERE r.type = 'Hosted' AND t.package_key <> '' AND NOT EXISTS (
    SELECT 1 FROM package p WHERE p.repository_id = t.repository_id AND p.key = t.package_key
)
GROUP BY t.repository_id, t.package_key;
