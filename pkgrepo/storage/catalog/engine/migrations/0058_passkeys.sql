-- Passkeys of people, and the sessions that were begun with them.
CREATE TABLE passkey (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    account_id INTEGER NOT NULL REFERENCES account (id) ON DELETE CASCADE,
    credential_id BLOB NOT NULL UNIQUE,
    public_key BLOB NOT NULL,
    sign_count INTEGER NOT NULL,
    name TEXT NOT NULL,
    created_at INTEGER NOT NULL,
    last_used_at INTEGER
);
CREATE INDEX passkey_account ON passkey (account_id);
ALTER TABLE session ADD COLUMN passkey_id INTEGER;
CREATE INDEX session_passkey ON session (passkey_id) WHERE passkey_id IS NOT NULL;
