-- +goose Up
ALTER TABLE tasks ADD COLUMN request_id TEXT NOT NULL DEFAULT ''; -- of the call that submitted it

-- What was done through the API, by whom: CADF events. What is searched for has a column of its own.
CREATE TABLE audit_events (
    id         TEXT PRIMARY KEY,
    project_id TEXT NOT NULL,
    user_id    TEXT NOT NULL,
    action     TEXT NOT NULL,
    target_id  TEXT NOT NULL,
    outcome    TEXT NOT NULL,
    request_id TEXT NOT NULL,
    event      TEXT NOT NULL, -- JSON
    created    BIGINT NOT NULL
);
CREATE INDEX audit_events_created ON audit_events (created, id);
CREATE INDEX audit_events_project ON audit_events (project_id, created, id);

-- +goose Down
DROP TABLE audit_events;
ALTER TABLE tasks DROP COLUMN request_id;
