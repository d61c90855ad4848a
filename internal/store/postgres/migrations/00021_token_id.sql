-- Which token began a session: to one that only opens /v1, the sessions of others are not there (spec 11.2).

-- +goose Up
ALTER TABLE sessions ADD COLUMN token_id uuid;

CREATE TRIGGER sessions_token BEFORE UPDATE ON sessions FOR EACH ROW WHEN (NEW.token_id IS DISTINCT FROM OLD.token_id)
    EXECUTE FUNCTION refuse('which token began a session never changes (spec 11.2)');
