-- +goose Up
-- Backups of whole environments. They outlive their environments, so nothing here refers to one.
CREATE TABLE backups (
    id               TEXT PRIMARY KEY,
    project_id       TEXT NOT NULL,
    environment_id   TEXT NOT NULL,
    environment_name TEXT NOT NULL,
    task_id          TEXT NOT NULL, -- that makes it
    kind             TEXT NOT NULL, -- requested or scheduled
    reason           TEXT NOT NULL, -- for a person
    created          BIGINT NOT NULL,
    whole            BIGINT NOT NULL, -- when all of it was kept; 0 before
    held             BIGINT NOT NULL, -- for how many milliseconds pods were frozen
    model            TEXT NOT NULL, -- sealed
    parts            TEXT NOT NULL -- sealed: what it has, as JSON
);
CREATE INDEX backups_project ON backups (project_id, created);
CREATE INDEX backups_environment ON backups (environment_id, created);

-- How often backups of an environment are made by themselves.
CREATE TABLE backup_schedules (
    environment_id TEXT PRIMARY KEY REFERENCES environments (id) ON DELETE CASCADE,
    hours          BIGINT NOT NULL, -- between two backups
    kept           BIGINT NOT NULL, -- how many of them stay
    incomplete     BOOLEAN NOT NULL, -- whether claims may be missing
    drill_hours    BIGINT NOT NULL, -- between two drills, 0 for none
    user_name      TEXT NOT NULL, -- who has set it
    updated        BIGINT NOT NULL
);

-- Drills: the newest backup is restored into an environment beside, which is removed again.
CREATE TABLE backup_drills (
    id               TEXT PRIMARY KEY,
    project_id       TEXT NOT NULL,
    environment_id   TEXT NOT NULL, -- whose backup it is
    backup_id        TEXT NOT NULL,
    clone_id         TEXT NOT NULL, -- the environment beside
    clone_name       TEXT NOT NULL,
    user_id          TEXT NOT NULL, -- who has asked for it
    user_name        TEXT NOT NULL,
    began            BIGINT NOT NULL,
    answered         BIGINT NOT NULL, -- when all answered; 0 when it did not
    failure          TEXT NOT NULL, -- why it did not; '' while that is not known
    next_look        BIGINT NOT NULL,
    ended            BIGINT NOT NULL -- when the environment beside was gone; 0 before
);
CREATE INDEX backup_drills_environment ON backup_drills (environment_id, began);
CREATE INDEX backup_drills_next ON backup_drills (ended, next_look);

-- What a backup has of clusters lies where snapshots do.
ALTER TABLE snapshots ADD COLUMN backup_id TEXT NOT NULL DEFAULT ''; -- that it belongs to; '' for none
CREATE INDEX snapshots_backup ON snapshots (backup_id);

-- +goose Down
DROP INDEX snapshots_backup;
DELETE FROM snapshots WHERE backup_id <> '';
ALTER TABLE snapshots DROP COLUMN backup_id;
DROP TABLE backup_drills;
DROP TABLE backup_schedules;
DROP TABLE backups;
