-- Releases that wait for an approval, and what became of them; see stages.py.
CREATE TABLE stage (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    uid TEXT NOT NULL UNIQUE,
    repository_id INTEGER NOT NULL REFERENCES repository (id) ON DELETE CASCADE,
    state TEXT NOT NULL,                        -- open, approved, rejected, expired
    description TEXT NOT NULL DEFAULT '',
    user_id INTEGER,
    actor TEXT NOT NULL DEFAULT '',
    created_at INTEGER NOT NULL,
    ended_at INTEGER,
    ended_by TEXT NOT NULL DEFAULT '',
    reason TEXT NOT NULL DEFAULT '',            -- why it was rejected
    content TEXT NOT NULL DEFAULT '[]'          -- JSON: what it had at its end
);
CREATE INDEX stage_repository ON stage (repository_id, state, created_at);
CREATE INDEX stage_state ON stage (state, created_at);
ALTER TABLE repository ADD COLUMN stage TEXT;
