-- +goose Up
-- What an administrator says of one project; -1 is unlimited. Of projects that are not here the server's settings hold.
CREATE TABLE quotas (
    project_id TEXT NOT NULL,
    resource   TEXT NOT NULL,
    most       BIGINT NOT NULL,
    PRIMARY KEY (project_id, resource)
);

-- +goose Down
DROP TABLE quotas;
