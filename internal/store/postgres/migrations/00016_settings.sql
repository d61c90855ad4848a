-- What the interface settles beside files (decision 52), and what an Idempotency-Key stands for (spec 10.2).

-- +goose Up

-- The newest row of a name is in force; an empty value takes back what was said before. Those before it stay: they say who changed what, and when.
CREATE TABLE settings (
    n     bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    name  text   NOT NULL,
    value text   NOT NULL,
    by    text   NOT NULL,
    at    bigint NOT NULL
);
CREATE INDEX settings_by_name ON settings (name, n);
CREATE TRIGGER settings_stay BEFORE UPDATE OR DELETE ON settings FOR EACH ROW EXECUTE FUNCTION refuse('what was settled is never rewritten');

-- Both are hashes: what a key was, and what came with it, cannot be read here.
CREATE TABLE request_keys (
    key     bytea  PRIMARY KEY CHECK (length(key) = 32),
    request bytea  NOT NULL CHECK (length(request) = 32),
    at      bigint NOT NULL
);
