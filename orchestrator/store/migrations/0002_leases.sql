-- +goose Up
-- A task is held under a lease that ends by the database's clock. The fencing number grows with each taking of any task of the
-- environment, so that whoever compares two knows which worker is the later one.
ALTER TABLE environments ADD COLUMN fence BIGINT NOT NULL DEFAULT 0;
ALTER TABLE tasks ADD COLUMN fence BIGINT NOT NULL DEFAULT 0; -- 0 while nobody has taken it
ALTER TABLE tasks ADD COLUMN lease_until BIGINT NOT NULL DEFAULT 0;
ALTER TABLE tasks ADD COLUMN deaths BIGINT NOT NULL DEFAULT 0; -- workers whose lease ran out

-- +goose Down
ALTER TABLE tasks DROP COLUMN deaths;
ALTER TABLE tasks DROP COLUMN lease_until;
ALTER TABLE tasks DROP COLUMN fence;
ALTER TABLE environments DROP COLUMN fence;
