-- +goose Up
-- +goose StatementBegin
-- What people are notified of, one row for each channel (decision 60). The transition that makes a
-- thing true writes the row. next_at is also the lease of the engine that makes an attempt.
CREATE TABLE outbox (
    id         uuid    NOT NULL, -- of the notification, in all channels
    channel    text    NOT NULL,
    kind       text    NOT NULL,
    session    bigint  NOT NULL REFERENCES sessions (n),
    round_id   uuid    REFERENCES rounds (id),
    object_id  uuid, -- an approval, a question, a call
    state      text    NOT NULL DEFAULT 'PENDING' CHECK (state IN ('PENDING', 'SENT', 'FAILED', 'SKIPPED')),
    attempts   integer NOT NULL DEFAULT 0,
    next_at    bigint  NOT NULL,
    error      bytea   NOT NULL DEFAULT '',
    created_at bigint  NOT NULL,
    settled_at bigint,
    PRIMARY KEY (id, channel),
    CHECK ((settled_at IS NULL) = (state = 'PENDING'))
);
CREATE INDEX outbox_due ON outbox (channel, next_at) WHERE state = 'PENDING';
-- +goose StatementEnd
