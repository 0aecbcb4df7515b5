-- Logins that programs have begun and people approve in a browser.
CREATE TABLE login_request (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    device_hash BLOB NOT NULL UNIQUE,
    user_hash BLOB NOT NULL UNIQUE,
    name TEXT NOT NULL,
    scopes TEXT NOT NULL,
    days INTEGER,
    port INTEGER,
    address TEXT NOT NULL,
    client TEXT NOT NULL,
    created_at INTEGER NOT NULL,
    expires_at INTEGER NOT NULL,
    state TEXT NOT NULL DEFAULT 'pending',
    user_id INTEGER REFERENCES account (id) ON DELETE CASCADE,
    proof BLOB
);
CREATE INDEX login_request_age ON login_request (expires_at);
CREATE INDEX login_request_user ON login_request (user_id) WHERE user_id IS NOT NULL;
