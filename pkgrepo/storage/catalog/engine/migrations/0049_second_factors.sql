-- Second factors of accounts: one-time codes of an app, and recovery codes.
CREATE TABLE second_factor (
    account_id INTEGER PRIMARY KEY REFERENCES account (id) ON DELETE CASCADE,
    secret TEXT NOT NULL,                       -- encrypted: SecretBox
    confirmed_at INTEGER,                       -- NULL: not shown to work yet, and not asked for
    last_step INTEGER NOT NULL DEFAULT 0,       -- RFC 6238 time step of the code that was accepted last
    recovery TEXT NOT NULL DEFAULT '[]'         -- JSON: sha256 of the recovery codes that are left
);
