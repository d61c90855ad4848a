-- What was spent, for caps that count over more than one round (decision 29).

-- +goose Up

-- One row for each session (day 0: ever) and one for each workspace and day. The rows of the calls say the same; these need no counting.
CREATE TABLE spending (
    day            bigint NOT NULL CHECK (day >= 0), -- 20261122
    owner          uuid   NOT NULL,
    spent_microusd bigint NOT NULL DEFAULT 0 CHECK (spent_microusd >= 0), 
    due_microusd   bigint NOT NULL DEFAULT 0 CHECK (due_microusd >= 0), -- of it: what was reserved for calls whose cost nobody knows
    unknown_calls  bigint NOT NULL DEFAULT 0 CHECK (unknown_calls >= 0),
    PRIMARY KEY (day, owner)
);

-- What is reserved at a moment: a few rows, none where nothing is capped.
CREATE INDEX rounds_reserved ON rounds (session, reserved_microusd) WHERE reserved_microusd > 0;

CREATE TRIGGER spending_rises BEFORE UPDATE ON spending FOR EACH ROW
    WHEN ((NEW.day, NEW.owner) <> (OLD.day, OLD.owner) OR NEW.spent_microusd < OLD.spent_microusd OR NEW.due_microusd < OLD.due_microusd
        OR NEW.unknown_calls < OLD.unknown_calls)
    EXECUTE FUNCTION refuse('what was spent only rises (invariant 9)');
CREATE TRIGGER spending_never_goes BEFORE DELETE ON spending FOR EACH ROW EXECUTE FUNCTION refuse('what was spent is never deleted (invariant 9)');
CREATE TRIGGER spending_never_emptied BEFORE TRUNCATE ON spending FOR EACH STATEMENT EXECUTE FUNCTION refuse('what was spent is never deleted (invariant 9)');
