-- +goose Up
-- Browsers that are signed in. The id is a hash of what the browser's cookie says: who reads the table can use none of it.
CREATE TABLE sign_ins (
    id      TEXT PRIMARY KEY,
    user_id TEXT NOT NULL,
    tokens  TEXT NOT NULL, -- sealed
    created BIGINT NOT NULL,
    used    BIGINT NOT NULL,
    expires BIGINT NOT NULL
);
CREATE INDEX sign_ins_user ON sign_ins (user_id);
CREATE INDEX sign_ins_expires ON sign_ins (expires);

-- +goose Down
DROP TABLE sign_ins;
