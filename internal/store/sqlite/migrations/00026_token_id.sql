-- Which token began a session: to one that only opens /v1, the sessions of others are not there (spec 11.2).

-- +goose Up
ALTER TABLE sessions ADD COLUMN token_id BLOB CHECK (token_id IS NULL OR length(token_id) = 16);

-- +goose StatementBegin
CREATE TRIGGER sessions_token BEFORE UPDATE OF token_id ON sessions
BEGIN SELECT RAISE(ABORT, 'which token began a session never changes (spec 11.2)'); END;
-- +goose StatementEnd
