-- +goose Up
-- Images that were uploaded, and that their uploader may send for a day. The zero token is the
-- owner's.
CREATE TABLE uploads (
    blob       BYTEA   NOT NULL REFERENCES blobs (hash),
    token      TEXT    NOT NULL,
    media_type TEXT    NOT NULL,
    name       TEXT    NOT NULL,
    size       BIGINT  NOT NULL CHECK (size >= 0),
    created_at BIGINT  NOT NULL,
    PRIMARY KEY (blob, token)
);
