-- +goose Up
-- The names of the steps of the same object that a step waits for, as a JSON list; empty in those of former versions.
ALTER TABLE steps ADD COLUMN waits_for TEXT NOT NULL DEFAULT '[]';

-- +goose Down
ALTER TABLE steps DROP COLUMN waits_for;
