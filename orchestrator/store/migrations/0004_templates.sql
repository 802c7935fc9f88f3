-- +goose Up
-- Environment templates. The applications are a JSON list.
CREATE TABLE templates (
    id               TEXT PRIMARY KEY,
    project_id       TEXT NOT NULL,
    name             TEXT NOT NULL,
    description_text TEXT NOT NULL,
    public           BOOLEAN NOT NULL,
    version          BIGINT NOT NULL,
    services         TEXT NOT NULL,
    created          BIGINT NOT NULL,
    updated          BIGINT NOT NULL,
    UNIQUE (project_id, name)
);
CREATE INDEX templates_public ON templates (public);

-- +goose Down
DROP TABLE templates;
