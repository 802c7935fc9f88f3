-- +goose Up
-- What each API server last said of its own requests.
CREATE TABLE request_statistics (
    id           BIGINT PRIMARY KEY,
    host         TEXT NOT NULL UNIQUE,
    requests     BIGINT NOT NULL,
    errors       BIGINT NOT NULL,
    seconds      DOUBLE PRECISION NOT NULL, -- on the average of all requests
    projects     TEXT NOT NULL,             -- JSON: requests by project
    request_rate DOUBLE PRECISION NOT NULL, -- a second, since the row was written before
    error_rate   DOUBLE PRECISION NOT NULL,
    cpus         BIGINT NOT NULL,
    cpu_percent  DOUBLE PRECISION NOT NULL,
    created      BIGINT NOT NULL,
    updated      BIGINT NOT NULL
);

-- Applications and servers that classes had counted while they were there.
CREATE TABLE instance_statistics (
    environment_id TEXT NOT NULL REFERENCES environments (id) ON DELETE CASCADE,
    instance_id    TEXT NOT NULL,
    type           BIGINT NOT NULL, -- 100 is an application, 200 a server
    type_name      TEXT NOT NULL,
    type_title     TEXT,
    unit_count     BIGINT,
    created        BIGINT NOT NULL,
    destroyed      BIGINT, -- NULL while it is there
    PRIMARY KEY (environment_id, instance_id)
);

-- +goose Down
DROP TABLE instance_statistics;
DROP TABLE request_statistics;
