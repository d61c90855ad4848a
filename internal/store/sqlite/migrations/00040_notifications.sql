-- +goose Up
-- +goose StatementBegin
-- What people are notified of, one row for each channel (decision 60). The transition that makes a
-- thing true writes the row. next_at is also the lease of the engine that makes an attempt.
CREATE TABLE outbox (
    id         BLOB    NOT NULL CHECK (length(id) = 16), -- of the notification, in all channels
    channel    TEXT    NOT NULL,
    kind       TEXT    NOT NULL,
    session    INTEGER NOT NULL REFERENCES sessions (n),
    round_id   BLOB    REFERENCES rounds (id),
    object_id  BLOB CHECK (object_id IS NULL OR length(object_id) = 16), -- an approval, a question, a call
    state      TEXT    NOT NULL DEFAULT 'PENDING' CHECK (state IN ('PENDING', 'SENT', 'FAILED', 'SKIPPED')),
    attempts   INTEGER NOT NULL DEFAULT 0,
    next_at    INTEGER NOT NULL,
    error      TEXT    NOT NULL DEFAULT '',
    created_at INTEGER NOT NULL,
    settled_at INTEGER,
    PRIMARY KEY (id, channel),
    CHECK ((settled_at IS NULL) = (state = 'PENDING'))
) STRICT, WITHOUT ROWID;
CREATE INDEX outbox_due ON outbox (channel, next_at) WHERE state = 'PENDING';
-- +goose StatementEnd
