-- +goose Up
-- Work that ran when a server died, by its key (internal/blackbox).
CREATE TABLE deaths (
    id         TEXT PRIMARY KEY,
    kind       TEXT NOT NULL,
    project_id TEXT NOT NULL,
    what       TEXT NOT NULL,
    version    TEXT NOT NULL, -- of Burano that died last over it
    alone      BIGINT NOT NULL, -- deaths at which nothing else of a tenant ran
    beside     BIGINT NOT NULL, -- the others
    last       BIGINT NOT NULL
);

-- +goose Down
DROP TABLE deaths;
