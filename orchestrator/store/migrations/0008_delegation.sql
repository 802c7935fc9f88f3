-- +goose Up
-- Tasks that had not ended when their environment was abandoned: those who follow one are told so.
CREATE TABLE abandoned_tasks (
    id      TEXT PRIMARY KEY,
    created BIGINT NOT NULL
);

-- +goose Down
DROP TABLE abandoned_tasks;
