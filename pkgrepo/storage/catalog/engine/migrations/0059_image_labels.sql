-- Of a manifest: the route of the upstream that it came from, and the labels in its configuration.
ALTER TABLE manifest ADD COLUMN route TEXT NOT NULL DEFAULT '';
ALTER TABLE manifest ADD COLUMN labels TEXT;
