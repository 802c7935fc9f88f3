-- +goose Up
-- Tokens with which one machine each joins a cluster. What is kept of the secret is a hash: who reads the table can use none of it.
CREATE TABLE join_tokens (
    id             TEXT PRIMARY KEY,
    environment_id TEXT NOT NULL REFERENCES environments (id) ON DELETE CASCADE,
    cluster_id     TEXT NOT NULL, -- the object's
    hash           TEXT NOT NULL,
    delegation_id  TEXT NOT NULL, -- what joining works with
    user_id        TEXT NOT NULL, -- who has made it
    user_name      TEXT NOT NULL,
    created        BIGINT NOT NULL,
    expires        BIGINT NOT NULL,
    node           TEXT NOT NULL, -- of the machine that has redeemed it, as the others; '' while none has
    address        TEXT NOT NULL,
    port           BIGINT NOT NULL,
    login          TEXT NOT NULL,
    host_key       TEXT NOT NULL,
    task_id        TEXT NOT NULL, -- of the last try; '' before the first
    spent          BIGINT -- when the machine had joined; NULL before
);
CREATE INDEX join_tokens_environment ON join_tokens (environment_id);
CREATE INDEX join_tokens_delegation ON join_tokens (delegation_id);
CREATE INDEX join_tokens_task ON join_tokens (task_id);

-- +goose Down
DROP TABLE join_tokens;
