-- The CSRF value of a session is computed from its secret.
ALTER TABLE session DROP COLUMN csrf;
