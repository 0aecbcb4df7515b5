-- What HTTP tells as the time of a package's last change, in seconds. HTTP knows no finer ones, so that it is a later
-- second for every change even where many happen in one, and may be ahead of the clock for as many seconds.
ALTER TABLE package ADD COLUMN modified_s INTEGER NOT NULL DEFAULT 0;
UPDATE package SET modified_s = updated_at / 1000 + 1;
