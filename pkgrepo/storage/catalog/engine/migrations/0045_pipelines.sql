-- Tokens of pipelines, and the identity tokens that were exchanged for them.
ALTER TABLE token ADD COLUMN pipeline TEXT NOT NULL DEFAULT '';
CREATE TABLE exchanged_token (
    digest BLOB PRIMARY KEY,
    expires_at INTEGER NOT NULL
) WITHOUT ROWID;
CREATE INDEX exchanged_token_expires ON exchanged_token (expires_at);
