-- +goose Up
-- Pieces of a snapshot may lie in a container of the project's object store instead of in snapshot_pieces.
ALTER TABLE snapshots ADD COLUMN container TEXT NOT NULL DEFAULT ''; -- its address; '' for none
ALTER TABLE snapshots ADD COLUMN pieces BIGINT NOT NULL DEFAULT 0; -- how many were begun to be written there
ALTER TABLE snapshots ADD COLUMN piece_key TEXT NOT NULL DEFAULT ''; -- sealed: the key that they are sealed under

-- +goose Down
ALTER TABLE snapshots DROP COLUMN piece_key;
ALTER TABLE snapshots DROP COLUMN pieces;
ALTER TABLE snapshots DROP COLUMN container;
