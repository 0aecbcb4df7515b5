-- Blocks of logins that somebody lifted. The counts of failures are in the memory of each server: it forgets them when
-- it is asked again by whoever is blocked, and finds a row that it has not seen. The newest rows are kept.
CREATE TABLE login_unlock (
    id INTEGER PRIMARY KEY,
    account TEXT NOT NULL,                      -- the key of a user name; '' for none
    address TEXT NOT NULL,                      -- an IP address; '' for none
    created_at INTEGER NOT NULL
);
