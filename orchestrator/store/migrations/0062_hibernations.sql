-- +goose Up
-- Whether an environment sleeps, with the servers that are started when it wakes, and the times at which it sleeps by itself. Environments without a row are awake.
CREATE TABLE hibernations (
    environment_id TEXT PRIMARY KEY REFERENCES environments (id) ON DELETE CASCADE,
    state          TEXT NOT NULL DEFAULT '', -- '' is awake; hibernating, asleep or waking
    task_id        TEXT NOT NULL DEFAULT '', -- of the task that changed the state last
    changed        BIGINT NOT NULL DEFAULT 0,
    servers        TEXT NOT NULL DEFAULT '[]', -- JSON
    schedule       TEXT NOT NULL DEFAULT '', -- JSON; '' is none
    scheduled      BIGINT NOT NULL DEFAULT 0, -- when the schedule was set
    user_name      TEXT NOT NULL DEFAULT '' -- the user that has set it
);

-- +goose Down
DROP TABLE hibernations;
