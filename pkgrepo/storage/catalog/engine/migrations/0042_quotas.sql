-- Quotas, and the number of versions of each repository.
CREATE TABLE quota (
    kind TEXT NOT NULL,
    subject_id INTEGER NOT NULL,
    bytes INTEGER,
    packages INTEGER,
    versions INTEGER,
    file_size INTEGER,
    PRIMARY KEY (kind, subject_id)
) WITHOUT ROWID;
ALTER TABLE repository ADD COLUMN version_count INTEGER NOT NULL DEFAULT 0;
UPDATE repository SET version_count = (
    SELECT COUNT(*) FROM version v JOIN package p ON p.id = v.package_id WHERE p.repository_id = repository.id
) + (SELECT COUNT(*) FROM manifest m WHERE m.repository_id = repository.id);
