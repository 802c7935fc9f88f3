-- +goose Up
-- Reports of the task that are not in the table (any more): left out because its log is full, or removed after their time.
ALTER TABLE tasks ADD COLUMN gone_errors BIGINT NOT NULL DEFAULT 0;
ALTER TABLE tasks ADD COLUMN gone_warnings BIGINT NOT NULL DEFAULT 0;
ALTER TABLE tasks ADD COLUMN gone_reports BIGINT NOT NULL DEFAULT 0; -- of all levels

-- What lists show without a model. SQLite keeps a row's columns in their order, so that those behind a model are read through it: an index
-- has them without.
CREATE INDEX tasks_listed ON tasks (environment_id, started, created, id, updated, finished, gone_errors, gone_warnings);
DROP INDEX tasks_environment;
CREATE INDEX sessions_listed ON sessions (environment_id, created, id, state, version, updated, user_id);
DROP INDEX sessions_environment;
CREATE INDEX environments_listed ON environments (project_id, created, id);
CREATE INDEX reports_problems ON reports (task_id, level) WHERE level IN ('error', 'warning');

-- +goose Down
DROP INDEX reports_problems;
DROP INDEX environments_listed;
CREATE INDEX sessions_environment ON sessions (environment_id);
DROP INDEX sessions_listed;
CREATE INDEX tasks_environment ON tasks (environment_id);
DROP INDEX tasks_listed;
ALTER TABLE tasks DROP COLUMN gone_reports;
ALTER TABLE tasks DROP COLUMN gone_warnings;
ALTER TABLE tasks DROP COLUMN gone_errors;
