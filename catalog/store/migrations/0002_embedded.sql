-- +goose Up
-- What comes with Burano may have the name of a public package that was there before.
DROP INDEX packages_public_full_name;
CREATE UNIQUE INDEX packages_public_full_name ON packages (full_name) WHERE is_public AND NOT embedded;
