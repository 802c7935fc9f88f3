-- +goose Up
-- What Burano may act with for a user in a project: trusts, and application credentials. Whoever works with one refers to it: a task
-- until it has ended, an environment by "standing". One that nobody refers to is orphaned, and stays here until Keystone has it no more.
CREATE TABLE delegations (
    id             TEXT PRIMARY KEY,
    environment_id TEXT NOT NULL, -- that it is for; it may be gone
    kind           TEXT NOT NULL, -- trust, application_credential
    standing       BOOLEAN NOT NULL, -- the environment's own
    used           BOOLEAN NOT NULL, -- somebody referred to it; else it may be one that is just being made
    user_id        TEXT NOT NULL, -- who has made it; '' where a former version has not noted that
    user_name      TEXT NOT NULL,
    roles          TEXT NOT NULL, -- JSON
    expires        BIGINT, -- NULL for never
    sealed         TEXT NOT NULL,
    tries          BIGINT NOT NULL, -- to revoke it
    next_try       BIGINT NOT NULL,
    created        BIGINT NOT NULL
);
CREATE INDEX delegations_environment ON delegations (environment_id);

-- Stacks that Heat was asked through a delegation to change: while it does, the delegation must last.
CREATE TABLE delegation_stacks (
    delegation_id TEXT NOT NULL REFERENCES delegations (id) ON DELETE CASCADE,
    stack         TEXT NOT NULL,
    PRIMARY KEY (delegation_id, stack)
);

-- '' where a former version made the task: it works with the environment's trust.
ALTER TABLE tasks ADD COLUMN delegation_id TEXT NOT NULL DEFAULT '';
CREATE INDEX tasks_delegation ON tasks (delegation_id);

-- Tasks that had not ended when their environment was abandoned: those who follow one are told so.
CREATE TABLE abandoned_tasks (
    id      TEXT PRIMARY KEY,
    created BIGINT NOT NULL
);

-- +goose Down
DROP TABLE abandoned_tasks;
DROP INDEX tasks_delegation;
ALTER TABLE tasks DROP COLUMN delegation_id;
DROP TABLE delegation_stacks;
DROP TABLE delegations;
