-- What the interface settles beside files (decision 52), and what an Idempotency-Key stands for (spec 10.2).

-- +goose Up

-- The newest row of a name is in force; an empty value takes back what was said before. Those before it stay: they say who changed what, and when.
CREATE TABLE settings (
    n     INTEGER PRIMARY KEY,
    name  TEXT    NOT NULL,
    value TEXT    NOT NULL,
    by    TEXT    NOT NULL,
    at    INTEGER NOT NULL
) STRICT;
CREATE INDEX settings_by_name ON settings (name, n);
-- +goose StatementBegin
CREATE TRIGGER settings_stay BEFORE UPDATE ON settings
BEGIN SELECT RAISE(ABORT, 'what was settled is never rewritten'); END;
-- +goose StatementEnd
-- +goose StatementBegin
CREATE TRIGGER settings_are_kept BEFORE DELETE ON settings
BEGIN SELECT RAISE(ABORT, 'what was settled is never rewritten'); END;
-- +goose StatementEnd

-- Both are hashes: what a key was, and what came with it, cannot be read here.
CREATE TABLE request_keys (
    key     BLOB    PRIMARY KEY CHECK (length(key) = 32),
    request BLOB    NOT NULL CHECK (length(request) = 32),
    at      INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
