-- Bytes that uploads of all processes have announced and not published yet.
CREATE TABLE quota_reservation (
    uid TEXT NOT NULL,                          -- of one request
    kind TEXT NOT NULL,                         -- of the quota, with its subject
    subject_id INTEGER NOT NULL,
    size INTEGER NOT NULL,
    expires_at INTEGER NOT NULL,                -- unless the process renews it
    PRIMARY KEY (uid, kind, subject_id)
) WITHOUT ROWID;
CREATE INDEX quota_reservation_subject ON quota_reservation (kind, subject_id);
CREATE INDEX quota_reservation_expiry ON quota_reservation (expires_at);
