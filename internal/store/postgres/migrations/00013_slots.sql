-- Who may run (spec 5.1, decisions 21 and 43): what each session has of the slots of its owner in its workspace. A round that runs holds one, a
-- round that is to run and finds none free is queued, and who has asked for control has one reserved for a moment. How many there are is the
-- configuration's, so no constraint knows it: who takes one holds the owner's slots (Statements.HoldSlots).

-- +goose Up

CREATE TABLE slots (
    session      bigint PRIMARY KEY REFERENCES sessions (n),
    workspace_id uuid   NOT NULL,
    user_id      uuid   NOT NULL,
    kind         text   NOT NULL CHECK (kind IN ('chat', 'automation', 'api')),
    state        text   NOT NULL CHECK (state IN ('HELD', 'QUEUED', 'RESERVED')),
    rank         bigint NOT NULL CHECK (rank >= 0), -- of what is queued: a lower one goes first
    place        bigint NOT NULL,                   -- in which order they came
    until        bigint,
    CHECK ((until IS NOT NULL) = (state = 'RESERVED'))
);
CREATE INDEX slots_by_owner ON slots (workspace_id, user_id, place);

-- Mostly nobody waits, and that is asked at each beginning and each end of a round.
CREATE INDEX slots_that_wait ON slots (workspace_id, user_id) WHERE state <> 'HELD';
