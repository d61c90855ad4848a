-- +goose Up
-- +goose StatementBegin
-- The versions of agents that were made through the interface (decision 66). A version without a
-- definition is a deletion.
CREATE TABLE agents (
    n          INTEGER PRIMARY KEY,
    name       TEXT    NOT NULL,
    version    INTEGER NOT NULL CHECK (version > 0),
    definition TEXT    NOT NULL DEFAULT '',
    by         TEXT    NOT NULL,
    at         INTEGER NOT NULL,
    UNIQUE (name, version)
) STRICT;

ALTER TABLE sessions ADD COLUMN agent_version INTEGER NOT NULL DEFAULT 0; -- 0: the agent is none of this table
-- +goose StatementEnd
