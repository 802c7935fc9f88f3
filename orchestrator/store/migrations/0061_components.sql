-- +goose Up
-- The outcomes of the runs over each component of an environment. The row with object_id '' is about the environment itself, and has the version of the environment that
-- the rows are about: where it has another one, a server of a former version has run a task, and the rows are made anew.
CREATE TABLE components (
    environment_id TEXT NOT NULL REFERENCES environments (id) ON DELETE CASCADE,
    object_id      TEXT NOT NULL,
    state          TEXT NOT NULL, -- follows from the other columns and the model
    outcome        TEXT NOT NULL, -- of the last deployment or deletion that has reached it
    kind           TEXT NOT NULL, -- deployment or deletion
    task_id        TEXT NOT NULL,
    text           TEXT NOT NULL, -- the first error
    ended          BIGINT NOT NULL,
    failures       TEXT NOT NULL, -- JSON: actions that failed
    version        BIGINT NOT NULL, -- 0 where object_id is not ''
    checksum       TEXT NOT NULL, -- sealed: of its model as it is deployed
    PRIMARY KEY (environment_id, object_id)
);
-- Whether a draft differs from its environment; NULL in sessions of former versions.
ALTER TABLE sessions ADD COLUMN edited BOOLEAN;

-- +goose Down
ALTER TABLE sessions DROP COLUMN edited;
DROP TABLE components;
