-- +goose Up
-- When each environment is looked at next, and which server does so at the moment, under a lease as tasks have one.
CREATE TABLE keepers (
    environment_id TEXT PRIMARY KEY REFERENCES environments (id) ON DELETE CASCADE,
    worker         TEXT NOT NULL, -- '' while nobody looks
    fence          BIGINT NOT NULL, -- grows with each claim
    lease_until    BIGINT NOT NULL, -- by the database's clock, as due
    due            BIGINT NOT NULL, -- of the duty that comes first
    duties         TEXT NOT NULL -- JSON: when each of them is due
);
CREATE INDEX keepers_due ON keepers (due);

-- What was found, and what is mended again for a while.
CREATE TABLE findings (
    id             TEXT PRIMARY KEY,
    environment_id TEXT NOT NULL REFERENCES environments (id) ON DELETE CASCADE,
    duty           TEXT NOT NULL,
    object_id      TEXT NOT NULL, -- '' for the environment
    kind           TEXT NOT NULL,
    subject        TEXT NOT NULL, -- '' for the object
    severity       TEXT NOT NULL, -- info, warning, critical
    text           TEXT NOT NULL,
    mends          TEXT NOT NULL,
    opened         BIGINT NOT NULL,
    closed         BIGINT, -- NULL while it stands
    tries          BIGINT NOT NULL, -- repairs that were started
    next_try       BIGINT NOT NULL,
    task_id        TEXT NOT NULL -- of the last repair; '' for none
);
CREATE INDEX findings_environment ON findings (environment_id, closed);

-- A repair that a keeper has started: it has no session, and leaves version and drafts alone.
ALTER TABLE tasks ADD COLUMN repair BOOLEAN NOT NULL DEFAULT FALSE;

-- +goose Down
ALTER TABLE tasks DROP COLUMN repair;
DROP TABLE findings;
DROP TABLE keepers;
