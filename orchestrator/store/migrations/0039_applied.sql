-- +goose Up
-- What was made of files under a label (burano apply --label), so that it is known what no file describes any more.
CREATE TABLE applied (
    project_id TEXT NOT NULL,
    label      TEXT NOT NULL,
    kind       TEXT NOT NULL, -- Environment, Package or Template
    id         TEXT NOT NULL,
    name       TEXT NOT NULL,
    PRIMARY KEY (project_id, label, kind, id)
);

-- +goose Down
DROP TABLE applied;
