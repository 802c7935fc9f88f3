-- +goose Up
-- The states that deployments and actions have come to. A state outlives the row of its task.
CREATE TABLE states (
    environment_id TEXT NOT NULL REFERENCES environments (id) ON DELETE CASCADE,
    number         BIGINT NOT NULL, -- from 1
    task_id        TEXT NOT NULL,   -- '' where it is not known
    object_id      TEXT NOT NULL,   -- of the object whose method has run
    method         TEXT NOT NULL,
    origin         TEXT NOT NULL, -- JSON
    parts          TEXT NOT NULL, -- JSON: packages and images
    bytes          BIGINT NOT NULL, -- of the model
    created        BIGINT NOT NULL,
    model          TEXT NOT NULL, -- compressed and sealed; the last column, so that lists do not read it
    PRIMARY KEY (environment_id, number)
);
ALTER TABLE tasks ADD COLUMN origin TEXT NOT NULL DEFAULT ''; -- JSON

-- +goose Down
ALTER TABLE tasks DROP COLUMN origin;
DROP TABLE states;
