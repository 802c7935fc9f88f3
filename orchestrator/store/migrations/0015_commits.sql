-- +goose Up
-- Transactions over PostgreSQL enter themselves here, so that one whose commit got no answer is not done twice (database.Ledger).
CREATE TABLE commits (
    id      TEXT PRIMARY KEY,
    written BIGINT NOT NULL
);

-- +goose Down
DROP TABLE commits;
