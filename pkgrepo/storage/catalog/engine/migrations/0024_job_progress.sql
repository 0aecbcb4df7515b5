-- What a running job has done so far, and whether somebody has asked for its end.
ALTER TABLE job ADD COLUMN progress TEXT NOT NULL DEFAULT '[]';
ALTER TABLE job ADD COLUMN cancel_at INTEGER;
