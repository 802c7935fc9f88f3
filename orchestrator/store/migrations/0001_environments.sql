-- +goose Up
-- Times are microseconds since 1970 (UTC), documents are JSON: both read the same in SQLite and PostgreSQL.
CREATE TABLE environments (
    id               TEXT PRIMARY KEY,
    project_id       TEXT NOT NULL,
    name             TEXT NOT NULL,
    description_text TEXT NOT NULL,
    version          BIGINT NOT NULL,
    model            TEXT NOT NULL,
    trust            TEXT NOT NULL, -- sealed; '' when there is none yet
    created          BIGINT NOT NULL,
    updated          BIGINT NOT NULL,
    UNIQUE (project_id, name)
);

CREATE TABLE sessions (
    id             TEXT PRIMARY KEY,
    environment_id TEXT NOT NULL REFERENCES environments (id) ON DELETE CASCADE,
    user_id        TEXT NOT NULL,
    state          TEXT NOT NULL,
    version        BIGINT NOT NULL,
    model          TEXT NOT NULL,
    created        BIGINT NOT NULL,
    updated        BIGINT NOT NULL
);
CREATE INDEX sessions_environment ON sessions (environment_id);

CREATE TABLE tasks (
    id             TEXT PRIMARY KEY,
    environment_id TEXT NOT NULL REFERENCES environments (id) ON DELETE CASCADE,
    session_id     TEXT NOT NULL,
    worker         TEXT NOT NULL, -- the process that runs it; '' while nobody does
    action         TEXT NOT NULL, -- 'null' for a deletion
    objects        TEXT NOT NULL, -- 'null' for a deletion
    result         TEXT NOT NULL,
    created        BIGINT NOT NULL,
    updated        BIGINT NOT NULL,
    started        BIGINT NOT NULL,
    finished       BIGINT -- NULL while it is not
);
CREATE INDEX tasks_environment ON tasks (environment_id);
CREATE INDEX tasks_finished ON tasks (finished);

CREATE TABLE reports (
    id        TEXT PRIMARY KEY,
    task_id   TEXT NOT NULL REFERENCES tasks (id) ON DELETE CASCADE,
    number    BIGINT NOT NULL, -- their order within the task
    entity_id TEXT,
    entity    TEXT,
    level     TEXT NOT NULL,
    text      TEXT NOT NULL,
    details   TEXT,
    created   BIGINT NOT NULL,
    UNIQUE (task_id, number)
);

CREATE TABLE steps (
    id        TEXT PRIMARY KEY,
    task_id   TEXT NOT NULL REFERENCES tasks (id) ON DELETE CASCADE,
    object_id TEXT NOT NULL,
    class     TEXT NOT NULL,
    name      TEXT NOT NULL,
    started   BIGINT NOT NULL,
    finished  BIGINT,
    error     TEXT NOT NULL
);
CREATE INDEX steps_task ON steps (task_id);

CREATE TABLE attributes (
    environment_id TEXT NOT NULL REFERENCES environments (id) ON DELETE CASCADE,
    object_id      TEXT NOT NULL,
    class          TEXT NOT NULL,
    name           TEXT NOT NULL,
    value          TEXT NOT NULL,
    PRIMARY KEY (environment_id, object_id, class, name)
);

CREATE TABLE secrets (
    environment_id TEXT NOT NULL REFERENCES environments (id) ON DELETE CASCADE,
    name           TEXT NOT NULL,
    value          TEXT NOT NULL, -- sealed
    PRIMARY KEY (environment_id, name)
);

-- Trusts that no environment holds (any more) and that Keystone may still have.
CREATE TABLE doomed_trusts (
    id             TEXT PRIMARY KEY,
    environment_id TEXT NOT NULL, -- that it was made for; it may be gone
    trust          TEXT NOT NULL, -- sealed
    created        BIGINT NOT NULL
);

-- +goose Down
DROP TABLE doomed_trusts;
DROP TABLE secrets;
DROP TABLE attributes;
DROP TABLE steps;
DROP TABLE reports;
DROP TABLE tasks;
DROP TABLE sessions;
DROP TABLE environments;
