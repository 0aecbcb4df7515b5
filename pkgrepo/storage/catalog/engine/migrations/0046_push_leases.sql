-- Promises of content to clients that push are called leases, as elsewhere.
CREATE TABLE push_lease (
    package_id INTEGER NOT NULL REFERENCES package (id) ON DELETE CASCADE,
    digest TEXT NOT NULL,                       -- of a blob, always sha256, or of a manifest
    client TEXT NOT NULL,                       -- the bearer token or connection of one client; '' for any
    made_at INTEGER NOT NULL,
    PRIMARY KEY (package_id, digest, client)
) WITHOUT ROWID;
INSERT INTO push_lease (package_id, digest, client, made_at)
SELECT package_id, digest, client, made_at FROM promise;
CREATE INDEX push_lease_age ON push_lease (made_at);
DROP TABLE promise;
