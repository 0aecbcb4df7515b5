-- The scopes and repositories that a token was asked for with, as JSON; empty where it was not made through the API.
ALTER TABLE token ADD COLUMN asked TEXT NOT NULL DEFAULT '';
