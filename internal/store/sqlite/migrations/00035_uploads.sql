-- +goose Up
-- Images that were uploaded, and that their uploader may send for a day. The zero token is the
-- owner's.
CREATE TABLE uploads (
    blob       BLOB    NOT NULL REFERENCES blobs (hash),
    token      TEXT    NOT NULL,
    media_type TEXT    NOT NULL,
    name       TEXT    NOT NULL,
    size       INTEGER NOT NULL CHECK (size >= 0),
    created_at INTEGER NOT NULL,
    PRIMARY KEY (blob, token)
) STRICT;
