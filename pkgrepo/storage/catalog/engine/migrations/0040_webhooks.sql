-- Receivers of events, and what is sent to them. The cursor is the last event of which deliveries were made.
CREATE TABLE webhook (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    uid TEXT NOT NULL UNIQUE,
    repository_id INTEGER REFERENCES repository (id) ON DELETE CASCADE, -- only events of it; of neither: all events
    project_id INTEGER REFERENCES project (id) ON DELETE CASCADE,
    name TEXT NOT NULL,
    url TEXT NOT NULL,
    events TEXT NOT NULL,                       -- JSON: patterns of types
    format TEXT NOT NULL,                       -- cloudevents, plain
    active INTEGER NOT NULL DEFAULT 1,
    secret TEXT NOT NULL,                       -- encrypted, as is the next one
    old_secret TEXT NOT NULL DEFAULT '',        -- also signs until old_until
    old_until INTEGER,
    cursor INTEGER NOT NULL,
    failing_since INTEGER,                      -- the first failure after the last success
    disabled TEXT NOT NULL DEFAULT '',          -- why the server switched it off
    created_at INTEGER NOT NULL,
    updated_at INTEGER NOT NULL
);
CREATE INDEX webhook_repository ON webhook (repository_id);
CREATE INDEX webhook_project ON webhook (project_id);

CREATE TABLE webhook_delivery (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    uid TEXT NOT NULL UNIQUE,
    webhook_id INTEGER NOT NULL REFERENCES webhook (id) ON DELETE CASCADE,
    message TEXT NOT NULL,                      -- the id that receivers see
    type TEXT NOT NULL,
    subject TEXT NOT NULL,
    thread TEXT NOT NULL,                       -- those of one are sent in their order
    state TEXT NOT NULL,                        -- pending, delivered, failed
    attempts INTEGER NOT NULL DEFAULT 0,
    due_at INTEGER NOT NULL,
    created_at INTEGER NOT NULL,
    attempted_at INTEGER,
    status INTEGER,                             -- of the response to the last attempt, as are the next three
    took_ms INTEGER,
    error TEXT NOT NULL DEFAULT '',
    response TEXT NOT NULL DEFAULT '',
    body TEXT NOT NULL
);
CREATE INDEX webhook_delivery_list ON webhook_delivery (webhook_id, id);
CREATE INDEX webhook_delivery_pending ON webhook_delivery (webhook_id, thread, id) WHERE state = 'pending';
CREATE INDEX webhook_delivery_age ON webhook_delivery (created_at) WHERE state <> 'pending';
