-- +goose Up
ALTER TABLE tasks ADD COLUMN cancelled_by TEXT NOT NULL DEFAULT ''; -- the user who asked for its end; '' when nobody did

-- +goose Down
ALTER TABLE tasks DROP COLUMN cancelled_by;
