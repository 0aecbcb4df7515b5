-- The uploads of one user, whose number is bounded.
CREATE INDEX upload_user ON upload (user_id, touched_at);
