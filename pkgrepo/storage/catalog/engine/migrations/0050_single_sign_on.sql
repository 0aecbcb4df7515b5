-- Accounts of people at identity providers, and the sessions that were begun there.
CREATE TABLE linked_identity (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    issuer TEXT NOT NULL,
    subject TEXT NOT NULL,
    user_id INTEGER NOT NULL REFERENCES account (id) ON DELETE CASCADE,
    given TEXT NOT NULL DEFAULT '{}',
    refresh TEXT NOT NULL DEFAULT '',
    created_at INTEGER NOT NULL,
    checked_at INTEGER NOT NULL,
    UNIQUE (issuer, subject)
);
CREATE INDEX linked_identity_user ON linked_identity (user_id);
CREATE INDEX linked_identity_checked ON linked_identity (checked_at) WHERE refresh <> '';
ALTER TABLE session ADD COLUMN linked_id INTEGER;
ALTER TABLE session ADD COLUMN sid TEXT NOT NULL DEFAULT '';
CREATE INDEX session_linked ON session (linked_id) WHERE linked_id IS NOT NULL;
