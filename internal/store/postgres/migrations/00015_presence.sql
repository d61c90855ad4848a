-- Who is there (spec 5.4, decision 39): a row for each user and engine, written now and then, not with each heartbeat. It is kept for 24 hours.

-- +goose Up

CREATE TABLE presence (
    user_id uuid   NOT NULL REFERENCES users (id),
    place   text   NOT NULL,                     -- the engine that heard of them
    since   bigint NOT NULL,                     -- the first heartbeat of those that followed on one another
    seen    bigint NOT NULL CHECK (seen >= since),
    PRIMARY KEY (user_id, place)
);

-- Since when a session has waited for its slot, or had it; and at which place in the queue its log says that it is (decision 43).
ALTER TABLE slots ADD COLUMN since bigint NOT NULL DEFAULT 0;
ALTER TABLE slots ADD COLUMN told bigint NOT NULL DEFAULT 0;
UPDATE slots SET since = floor(extract(epoch FROM clock_timestamp()) * 1000000);
