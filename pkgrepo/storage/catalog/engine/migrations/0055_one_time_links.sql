-- One-time links with which people choose a password.
CREATE TABLE one_time_link (
    user_id INTEGER PRIMARY KEY REFERENCES account (id) ON DELETE CASCADE,
    hash BLOB NOT NULL UNIQUE,
    created_at INTEGER NOT NULL,
    expires_at INTEGER NOT NULL
);
