-- +goose Up
-- How far a task has come. What a former version runs may have begun.
ALTER TABLE tasks ADD COLUMN stage TEXT NOT NULL DEFAULT 'begun';

-- +goose Down
ALTER TABLE tasks DROP COLUMN stage;
