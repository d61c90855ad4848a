-- +goose Up
-- +goose StatementBegin
-- What a user has set aside of the inbox, until when (decision 61).
CREATE TABLE set_aside (
    user_id uuid   NOT NULL REFERENCES users (id),
    item_id uuid   NOT NULL, -- of an approval, a question, a call or a session
    until   bigint NOT NULL,
    PRIMARY KEY (user_id, item_id)
);

CREATE INDEX calls_unknown ON calls (proposed_at) WHERE state = 'UNKNOWN';
-- +goose StatementEnd
