-- OpenAI-compatible clients (decision 35): the calls of their tools that wait for a result between two rounds, the sessions that go 24 hours after
-- something last happened in them, and the model calls that are passed on without a session.

-- +goose Up

CREATE INDEX calls_of_clients ON calls (session) WHERE origin = 'CLIENT' AND settled_at IS NULL;

CREATE INDEX sessions_of_clients ON sessions (n) WHERE origin = 'api' AND deleted_at IS NULL;

CREATE TABLE proxied (
    id                 uuid   PRIMARY KEY,
    workspace_id       uuid   NOT NULL REFERENCES workspaces (id),
    user_id            uuid   NOT NULL REFERENCES users (id),
    provider           text   NOT NULL,
    model              bytea  NOT NULL,
    state              text   NOT NULL CHECK (state = 'OPEN' OR state = 'DONE'), -- OPEN: reserved under a cap, and perhaps sent
    code               text,                                                   -- why it brought no answer
    cached             bigint NOT NULL DEFAULT 0 CHECK (cached IN (0, 1)),
    input_tokens       bigint NOT NULL DEFAULT 0,
    output_tokens      bigint NOT NULL DEFAULT 0,
    cache_read_tokens  bigint NOT NULL DEFAULT 0,
    cost_microusd      bigint, -- NULL: nobody knows
    reserved_microusd  bigint NOT NULL DEFAULT 0 CHECK (reserved_microusd >= 0),
    started_at         bigint NOT NULL,
    duration_us        bigint,
    CHECK ((state = 'OPEN') = (duration_us IS NULL))
);
CREATE INDEX proxied_open ON proxied (workspace_id, reserved_microusd) WHERE state = 'OPEN';
CREATE TRIGGER proxied_ends_once BEFORE UPDATE ON proxied FOR EACH ROW WHEN (OLD.state <> 'OPEN')
    EXECUTE FUNCTION refuse('a model call has one end (decision 28)');
