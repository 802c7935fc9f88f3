-- +goose Up
-- Backups that come as files.
ALTER TABLE backups ADD COLUMN touched BIGINT NOT NULL DEFAULT 0; -- when the upload that makes it went on last; 0 where a task makes it

-- +goose Down
DELETE FROM snapshots WHERE backup_id IN (SELECT id FROM backups WHERE kind = 'uploaded');
DELETE FROM backups WHERE kind = 'uploaded';
ALTER TABLE backups DROP COLUMN touched;
