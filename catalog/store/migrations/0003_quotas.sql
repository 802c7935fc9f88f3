-- +goose Up
-- What an administrator says of one project; -1 is unlimited. Of projects that are not here the server's settings hold.
CREATE TABLE package_quotas (
    project_id TEXT NOT NULL,
    resource   TEXT NOT NULL,
    most       BIGINT NOT NULL,
    PRIMARY KEY (project_id, resource)
);

-- Of its archive; 0 for what comes with Burano.
ALTER TABLE packages ADD COLUMN bytes BIGINT NOT NULL DEFAULT 0;
UPDATE packages SET bytes = COALESCE((SELECT LENGTH(content) FROM package_archives WHERE package_archives.package_id = packages.id), 0);
