-- Who is there (spec 5.4, decision 39): a row for each user and engine, written now and then, not with each heartbeat. It is kept for 24 hours.

-- +goose Up

CREATE TABLE presence (
    user_id BLOB    NOT NULL REFERENCES users (id),
    place   TEXT    NOT NULL,                     -- the engine that heard of them
    since   INTEGER NOT NULL,                     -- the first heartbeat of those that followed on one another
    seen    INTEGER NOT NULL CHECK (seen >= since),
    PRIMARY KEY (user_id, place)
) STRICT, WITHOUT ROWID;

-- Since when a session has waited for its slot, or had it; and at which place in the queue its log says that it is (decision 43).
ALTER TABLE slots ADD COLUMN since INTEGER NOT NULL DEFAULT 0;
ALTER TABLE slots ADD COLUMN told INTEGER NOT NULL DEFAULT 0;
UPDATE slots SET since = unixepoch() * 1000000;
