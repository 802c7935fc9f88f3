-- +goose Up
-- Times are seconds since 1970, UTC: Murano's answers have no finer grain, and both databases compare them alike.
CREATE TABLE packages (
    id          VARCHAR(32)  NOT NULL PRIMARY KEY,
    full_name   VARCHAR(128) NOT NULL,
    name        VARCHAR(80)  NOT NULL,
    type        VARCHAR(20)  NOT NULL,
    version     VARCHAR(128) NOT NULL,
    description TEXT         NOT NULL,
    author      VARCHAR(80)  NOT NULL,
    supplier    TEXT         NOT NULL,
    owner_id    VARCHAR(64)  NOT NULL,
    is_public   BOOLEAN      NOT NULL,
    enabled     BOOLEAN      NOT NULL,
    embedded    BOOLEAN      NOT NULL,
    created     BIGINT       NOT NULL,
    updated     BIGINT       NOT NULL
);
CREATE UNIQUE INDEX packages_owner_full_name ON packages (owner_id, full_name);
CREATE UNIQUE INDEX packages_public_full_name ON packages (full_name) WHERE is_public;

-- BYTEA is PostgreSQL's name; SQLite stores what it is given under any name.
CREATE TABLE package_archives (
    package_id VARCHAR(32) NOT NULL PRIMARY KEY REFERENCES packages (id) ON DELETE CASCADE,
    content    BYTEA       NOT NULL
);

-- owner_id is the package's: a project declares a class once.
CREATE TABLE package_classes (
    package_id VARCHAR(32)  NOT NULL REFERENCES packages (id) ON DELETE CASCADE,
    owner_id   VARCHAR(64)  NOT NULL,
    name       VARCHAR(128) NOT NULL,
    position   INTEGER      NOT NULL,
    PRIMARY KEY (package_id, name)
);
CREATE UNIQUE INDEX package_classes_owner_name ON package_classes (owner_id, name);
CREATE INDEX package_classes_name ON package_classes (name);

CREATE TABLE package_tags (
    package_id VARCHAR(32) NOT NULL REFERENCES packages (id) ON DELETE CASCADE,
    name       TEXT        NOT NULL,
    position   INTEGER     NOT NULL,
    PRIMARY KEY (package_id, name)
);
CREATE INDEX package_tags_name ON package_tags (name);

CREATE TABLE categories (
    id      VARCHAR(32) NOT NULL PRIMARY KEY,
    name    VARCHAR(80) NOT NULL UNIQUE,
    created BIGINT      NOT NULL,
    updated BIGINT      NOT NULL
);

CREATE TABLE package_categories (
    package_id  VARCHAR(32) NOT NULL REFERENCES packages (id) ON DELETE CASCADE,
    category_id VARCHAR(32) NOT NULL REFERENCES categories (id),
    position    INTEGER     NOT NULL,
    PRIMARY KEY (package_id, category_id)
);
CREATE INDEX package_categories_category ON package_categories (category_id);

-- Murano's first categories (murano/common/consts.py). An administrator may delete them; they do not come back.
INSERT INTO categories (id, name, created, updated) VALUES
    ('c0000000000000000000000000000001', 'Web', 1795219200, 1795219200),
    ('c0000000000000000000000000000002', 'Databases', 1795219200, 1795219200),
    ('c0000000000000000000000000000003', 'Message Queue', 1795219200, 1795219200),
    ('c0000000000000000000000000000004', 'Application Servers', 1795219200, 1795219200),
    ('c0000000000000000000000000000005', 'Microsoft Services', 1795219200, 1795219200),
    ('c0000000000000000000000000000006', 'Load Balancers', 1795219200, 1795219200),
    ('c0000000000000000000000000000007', 'Big Data', 1795219200, 1795219200),
    ('c0000000000000000000000000000008', 'Key-Value Storage', 1795219200, 1795219200),
    ('c0000000000000000000000000000009', 'SAP', 1795219200, 1795219200);
