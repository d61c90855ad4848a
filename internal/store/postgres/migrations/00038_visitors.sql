-- +goose Up
-- +goose StatementBegin
-- The sessions of visitors of widgets (spec 10.3), each with the hash of the one secret that opens
-- it. A row stays with its session.
CREATE TABLE visitors (
    session_id uuid   PRIMARY KEY,
    widget     text   NOT NULL,
    hash       bytea  NOT NULL UNIQUE CHECK (octet_length(hash) = 32), -- SHA-256 of the secret
    expires_at bigint NOT NULL
);
CREATE INDEX visitors_by_widget ON visitors (widget, expires_at);
-- +goose StatementEnd
