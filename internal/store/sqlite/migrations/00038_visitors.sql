-- +goose Up
-- +goose StatementBegin
-- The sessions of visitors of widgets (spec 10.3), each with the hash of the one secret that opens
-- it. A row stays with its session.
CREATE TABLE visitors (
    session_id BLOB PRIMARY KEY CHECK (length(session_id) = 16),
    widget     TEXT    NOT NULL,
    hash       BLOB    NOT NULL UNIQUE CHECK (length(hash) = 32), -- SHA-256 of the secret
    expires_at INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
CREATE INDEX visitors_by_widget ON visitors (widget, expires_at);
-- +goose StatementEnd
