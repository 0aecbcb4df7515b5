-- Known vulnerabilities of packages.
CREATE TABLE advisory (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    record TEXT NOT NULL,
    ecosystem TEXT NOT NULL,
    package_key TEXT NOT NULL,
    shown_as TEXT NOT NULL,
    severity INTEGER NOT NULL,
    modified TEXT NOT NULL,
    data TEXT NOT NULL,
    UNIQUE (record, ecosystem, package_key)
);
CREATE INDEX advisory_package ON advisory (ecosystem, package_key);

CREATE TABLE advisory_range (
    advisory_id INTEGER NOT NULL REFERENCES advisory (id) ON DELETE CASCADE,
    low BLOB NOT NULL,
    high BLOB NOT NULL,
    PRIMARY KEY (advisory_id, low)
) WITHOUT ROWID;
