-- +goose Up
-- An environment that was deleted stays for a while. Its row has no project and its id as its name then, so that its name is free; what it had is here.
ALTER TABLE environments ADD COLUMN deleted BIGINT NOT NULL DEFAULT 0; -- 0 while it is there
CREATE TABLE deleted_environments (
    environment_id TEXT PRIMARY KEY REFERENCES environments (id) ON DELETE CASCADE,
    project_id     TEXT NOT NULL,
    name           TEXT NOT NULL,
    user_id        TEXT NOT NULL, -- who deleted it; '' where that is not known
    abandoned      BOOLEAN NOT NULL, -- whether it was left in the cloud
    size           BIGINT NOT NULL, -- bytes of what is stored
    deleted        BIGINT NOT NULL
);
CREATE INDEX deleted_environments_project ON deleted_environments (project_id, deleted);

-- +goose Down
DELETE FROM environments WHERE deleted <> 0;
DROP TABLE deleted_environments;
ALTER TABLE environments DROP COLUMN deleted;
