-- +goose Up
-- What people call the user whose draft a session is; '' in those of former versions.
ALTER TABLE sessions ADD COLUMN user_name TEXT NOT NULL DEFAULT '';

-- +goose Down
ALTER TABLE sessions DROP COLUMN user_name;
