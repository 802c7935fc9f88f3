-- +goose Up
-- Projects that let Burano work in them with a role of its own. A row stays when that ends: Heat may keep stacks for the service user.
CREATE TABLE project_roles (
    project_id TEXT PRIMARY KEY,
    sealed     TEXT NOT NULL, -- the trust that narrows the service user's rights to the roles in this project
    roles      TEXT NOT NULL, -- a JSON list of names
    user_id    TEXT NOT NULL, -- who enabled it last
    user_name  TEXT NOT NULL,
    enabled    BIGINT NOT NULL,
    disabled   BIGINT -- NULL while it is enabled
);

-- +goose Down
DROP TABLE project_roles;
