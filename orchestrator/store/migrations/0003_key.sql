-- +goose Up
-- One row: a value that every server's key must open.
CREATE TABLE key_proofs (
    id     INTEGER PRIMARY KEY,
    sealed TEXT NOT NULL
);

-- +goose Down
DROP TABLE key_proofs;
