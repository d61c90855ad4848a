-- What a round was told of its workspace before it waited (spec 6.1, decision 53): rounds.level2 names what it is told now. Exchanges name
-- theirs by their heads; this finds the texts when the session is removed (decision 15).

-- +goose Up

CREATE TABLE former_levels (
    round_id uuid  NOT NULL REFERENCES rounds (id),
    level2   bytea NOT NULL REFERENCES blobs (hash),
    PRIMARY KEY (round_id, level2)
);
CREATE INDEX former_levels_by_level ON former_levels (level2);
