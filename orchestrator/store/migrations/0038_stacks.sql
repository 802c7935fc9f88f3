-- +goose Up
-- Stacks that were made without Heat. The table is read by whoever knows the project, and refers to no environment: one may have several.
CREATE TABLE stacks (
    id         TEXT PRIMARY KEY,
    project_id TEXT NOT NULL,
    region     TEXT NOT NULL,
    name       TEXT NOT NULL,
    action     TEXT NOT NULL, -- CREATE, UPDATE or DELETE
    status     TEXT NOT NULL, -- IN_PROGRESS, COMPLETE or FAILED
    body       TEXT NOT NULL, -- sealed
    created    BIGINT NOT NULL,
    holder     TEXT NOT NULL,
    held_until BIGINT NOT NULL,
    UNIQUE (project_id, region, name)
);

CREATE TABLE stack_resources (
    id       TEXT PRIMARY KEY,
    stack_id TEXT NOT NULL REFERENCES stacks (id) ON DELETE CASCADE,
    body     TEXT NOT NULL -- sealed
);
CREATE INDEX stack_resources_stack ON stack_resources (stack_id);

-- +goose Down
DROP TABLE stack_resources;
DROP TABLE stacks;
