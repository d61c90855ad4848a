-- The response cache (spec 6.4): answers without tool calls, each under the key of what was asked. It is no part of any log: whoever was given
-- an answer has it in their own session, and all of this can go at any time. It goes with the session that it came from (decision 15).

-- +goose Up

CREATE TABLE cached_replies (
    key           BLOB PRIMARY KEY CHECK (length(key) = 32), -- SHA-256 of what was asked, with workspace and user
    session       INTEGER NOT NULL REFERENCES sessions (n),  -- whose reply it was
    provider      TEXT    NOT NULL,
    model         TEXT    NOT NULL,
    reply         TEXT    NOT NULL,
    size          INTEGER NOT NULL CHECK (size >= 0), -- bytes
    input_tokens  INTEGER NOT NULL DEFAULT 0,
    output_tokens INTEGER NOT NULL DEFAULT 0,
    hits          INTEGER NOT NULL DEFAULT 0,
    created_at    INTEGER NOT NULL,
    used_at       INTEGER NOT NULL,
    expires_at    INTEGER NOT NULL
) STRICT;
CREATE INDEX cached_replies_by_session ON cached_replies (session);
CREATE INDEX cached_replies_by_expiry ON cached_replies (expires_at);
CREATE INDEX cached_replies_by_use ON cached_replies (used_at, key, size);
-- +goose StatementBegin
CREATE TRIGGER cached_replies_live BEFORE INSERT ON cached_replies
WHEN (SELECT deleted_at FROM sessions WHERE n = NEW.session) IS NOT NULL
BEGIN SELECT RAISE(ABORT, 'what a removed session held is not kept (decision 15)'); END;
-- +goose StatementEnd
