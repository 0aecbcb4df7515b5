-- The order of columns matters to SQLite only.
SELECT 1;
