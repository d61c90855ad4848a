-- OpenAI-compatible clients (decision 35): the calls of their tools that wait for a result between two rounds, the sessions that go 24 hours after
-- something last happened in them, and the model calls that are passed on without a session.

-- +goose Up

CREATE INDEX calls_of_clients ON calls (session) WHERE origin = 'CLIENT' AND settled_at IS NULL;

CREATE INDEX sessions_of_clients ON sessions (n) WHERE origin = 'api' AND deleted_at IS NULL;

CREATE TABLE proxied (
    id                 BLOB PRIMARY KEY CHECK (length(id) = 16),
    workspace_id       BLOB    NOT NULL REFERENCES workspaces (id),
    user_id            BLOB    NOT NULL REFERENCES users (id),
    provider           TEXT    NOT NULL,
    model              TEXT    NOT NULL,
    state              TEXT    NOT NULL CHECK (state = 'OPEN' OR state = 'DONE'), -- OPEN: reserved under a cap, and perhaps sent
    code               TEXT,                                                    -- why it brought no answer
    cached             INTEGER NOT NULL DEFAULT 0 CHECK (cached IN (0, 1)),
    input_tokens       INTEGER NOT NULL DEFAULT 0,
    output_tokens      INTEGER NOT NULL DEFAULT 0,
    cache_read_tokens  INTEGER NOT NULL DEFAULT 0,
    cost_microusd      INTEGER, -- NULL: nobody knows
    reserved_microusd  INTEGER NOT NULL DEFAULT 0 CHECK (reserved_microusd >= 0),
    started_at         INTEGER NOT NULL,
    duration_us        INTEGER,
    CHECK ((state = 'OPEN') = (duration_us IS NULL))
) STRICT, WITHOUT ROWID;

CREATE INDEX proxied_open ON proxied (workspace_id, reserved_microusd) WHERE state = 'OPEN';

-- +goose StatementBegin
CREATE TRIGGER proxied_ends_once BEFORE UPDATE ON proxied WHEN OLD.state <> 'OPEN'
BEGIN SELECT RAISE(ABORT, 'a model call has one end (decision 28)'); END;
-- +goose StatementEnd
