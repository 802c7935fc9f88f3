-- +goose Up
-- Snapshots of the etcd of clusters. They outlive their environments, so nothing here refers to one.
CREATE TABLE snapshots (
    id               TEXT PRIMARY KEY,
    project_id       TEXT NOT NULL,
    environment_id   TEXT NOT NULL,
    environment_name TEXT NOT NULL,
    cluster_id       TEXT NOT NULL, -- the object's
    cluster_name     TEXT NOT NULL,
    kind             TEXT NOT NULL, -- requested, scheduled or change
    reason           TEXT NOT NULL, -- for a person
    secrets          TEXT NOT NULL, -- sealed: the keys without which it cannot be used
    revision         BIGINT NOT NULL,
    size             BIGINT NOT NULL, -- bytes of the snapshot
    stored           BIGINT NOT NULL, -- bytes of its pieces
    created          BIGINT NOT NULL,
    verified         BIGINT NOT NULL, -- when it was opened and found to be whole; 0 while it is being written
    orphaned         BIGINT NOT NULL  -- when its environment was deleted; 0 while that is there
);
CREATE INDEX snapshots_cluster ON snapshots (environment_id, cluster_id, created);
CREATE INDEX snapshots_project ON snapshots (project_id, created);

CREATE TABLE snapshot_pieces (
    snapshot_id TEXT NOT NULL REFERENCES snapshots (id) ON DELETE CASCADE,
    number      BIGINT NOT NULL,
    value       TEXT NOT NULL, -- sealed
    PRIMARY KEY (snapshot_id, number)
);

-- +goose Down
DROP TABLE snapshot_pieces;
DROP TABLE snapshots;
