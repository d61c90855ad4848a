-- Who may run (spec 5.1, decisions 21 and 43): what each session has of the slots of its owner in its workspace. A round that runs holds one, a
-- round that is to run and finds none free is queued, and who has asked for control has one reserved for a moment. How many there are is the
-- configuration's, so no constraint knows it.

-- +goose Up

CREATE TABLE slots (
    session      INTEGER PRIMARY KEY REFERENCES sessions (n),
    workspace_id BLOB    NOT NULL,
    user_id      BLOB    NOT NULL,
    kind         TEXT    NOT NULL CHECK (kind = 'chat' OR kind = 'automation' OR kind = 'api'),
    state        TEXT    NOT NULL CHECK (state = 'HELD' OR state = 'QUEUED' OR state = 'RESERVED'),
    rank         INTEGER NOT NULL CHECK (rank >= 0), -- of what is queued: a lower one goes first
    place        INTEGER NOT NULL,                   -- in which order they came
    until        INTEGER,
    CHECK ((until IS NOT NULL) = (state = 'RESERVED'))
) STRICT;
CREATE INDEX slots_by_owner ON slots (workspace_id, user_id, place);

-- Mostly nobody waits, and that is asked at each beginning and each end of a round.
CREATE INDEX slots_that_wait ON slots (workspace_id, user_id) WHERE state <> 'HELD';
