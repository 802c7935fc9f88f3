-- +goose Up
-- A task over which servers died runs alone on its server; only deaths while it does count against it.
ALTER TABLE tasks ADD COLUMN alone BOOLEAN NOT NULL DEFAULT FALSE; -- whether its worker runs nothing beside it
ALTER TABLE tasks ADD COLUMN alone_deaths BIGINT NOT NULL DEFAULT 0; -- workers that died while it was

-- +goose Down
ALTER TABLE tasks DROP COLUMN alone_deaths;
ALTER TABLE tasks DROP COLUMN alone;
