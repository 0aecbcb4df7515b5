-- Grants for all repositories whose names match a pattern.
CREATE TABLE permission_pattern (
    pattern TEXT NOT NULL,                      -- of storage/name, in lower case
    subject_kind TEXT NOT NULL,                 -- user, group
    subject_id INTEGER NOT NULL,
    actions TEXT NOT NULL,                      -- JSON, as in permission
    PRIMARY KEY (pattern, subject_kind, subject_id)
) WITHOUT ROWID;
CREATE INDEX permission_pattern_subject ON permission_pattern (subject_kind, subject_id);
