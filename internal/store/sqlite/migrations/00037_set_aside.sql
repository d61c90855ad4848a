-- +goose Up
-- +goose StatementBegin
-- What a user has set aside of the inbox, until when (decision 61).
CREATE TABLE set_aside (
    user_id BLOB    NOT NULL REFERENCES users (id),
    item_id BLOB    NOT NULL CHECK (length(item_id) = 16), -- of an approval, a question, a call or a session
    until   INTEGER NOT NULL,
    PRIMARY KEY (user_id, item_id)
) STRICT, WITHOUT ROWID;

CREATE INDEX calls_unknown ON calls (proposed_at) WHERE state = 'UNKNOWN';
-- +goose StatementEnd
