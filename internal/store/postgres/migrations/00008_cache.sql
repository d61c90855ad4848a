-- The response cache (spec 6.4): answers without tool calls, each under the key of what was asked. It is no part of any log: whoever was given
-- an answer has it in their own session, and all of this can go at any time. It goes with the session that it came from (decision 15).

-- +goose Up

CREATE TABLE cached_replies (
    key           bytea PRIMARY KEY CHECK (length(key) = 32), -- SHA-256 of what was asked, with workspace and user
    session       bigint NOT NULL REFERENCES sessions (n),    -- whose reply it was
    provider      text   NOT NULL,
    model         bytea  NOT NULL,
    reply         bytea  NOT NULL,
    size          bigint NOT NULL CHECK (size >= 0), -- bytes
    input_tokens  bigint NOT NULL DEFAULT 0,
    output_tokens bigint NOT NULL DEFAULT 0,
    hits          bigint NOT NULL DEFAULT 0,
    created_at    bigint NOT NULL,
    used_at       bigint NOT NULL,
    expires_at    bigint NOT NULL
);
CREATE INDEX cached_replies_by_session ON cached_replies (session);
CREATE INDEX cached_replies_by_expiry ON cached_replies (expires_at);
CREATE INDEX cached_replies_by_use ON cached_replies (used_at, key, size);
CREATE TRIGGER cached_replies_live BEFORE INSERT ON cached_replies FOR EACH ROW WHEN (removed(NEW.session))
    EXECUTE FUNCTION refuse('what a removed session held is not kept (decision 15)');
