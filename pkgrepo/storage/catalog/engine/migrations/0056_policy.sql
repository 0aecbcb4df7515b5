-- Blocks, what is held in quarantine with the decisions about it, and how often each rule matched.
CREATE TABLE policy_block (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    uid TEXT NOT NULL UNIQUE,
    repository TEXT NOT NULL,
    package TEXT NOT NULL,
    versions TEXT NOT NULL,
    digests TEXT NOT NULL DEFAULT '[]',
    reason TEXT NOT NULL,
    ends_at INTEGER,
    created_at INTEGER NOT NULL,
    actor TEXT NOT NULL
);
CREATE TABLE quarantined (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    uid TEXT NOT NULL UNIQUE,
    repository_id INTEGER NOT NULL REFERENCES repository (id) ON DELETE CASCADE,
    package_key TEXT NOT NULL,
    version TEXT NOT NULL,
    rule TEXT NOT NULL,
    reason TEXT NOT NULL,
    state TEXT NOT NULL,
    since INTEGER NOT NULL,
    decided_at INTEGER,
    decided_by TEXT NOT NULL DEFAULT '',
    comment TEXT NOT NULL DEFAULT '',
    UNIQUE (repository_id, package_key, version)
);
CREATE INDEX quarantined_state ON quarantined (state, id);
CREATE TABLE rule_count (
    owner TEXT NOT NULL,
    rule TEXT NOT NULL,
    repository_id INTEGER NOT NULL REFERENCES repository (id) ON DELETE CASCADE,
    day INTEGER NOT NULL,
    count INTEGER NOT NULL,
    PRIMARY KEY (owner, rule, repository_id, day)
);
