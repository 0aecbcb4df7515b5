-- A companion repository belongs to another one, which decides who may do what in it, and is removed with it.
ALTER TABLE repository ADD COLUMN parent_id INTEGER REFERENCES repository (id) ON DELETE SET NULL;
