-- +goose Up
-- The last task that the schedule of an environment's hibernation has started. Few of them run at a time, on all servers.
ALTER TABLE hibernations ADD COLUMN scheduled_task TEXT NOT NULL DEFAULT '';

-- +goose Down
ALTER TABLE hibernations DROP COLUMN scheduled_task;
