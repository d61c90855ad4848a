-- +goose Up
-- +goose StatementBegin
-- The versions of agents that were made through the interface (decision 66). A version without a
-- definition is a deletion.
CREATE TABLE agents (
    n          bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    name       text   NOT NULL,
    version    bigint NOT NULL CHECK (version > 0),
    definition bytea  NOT NULL DEFAULT '',
    by         text   NOT NULL,
    at         bigint NOT NULL,
    UNIQUE (name, version)
);

ALTER TABLE sessions ADD COLUMN agent_version bigint NOT NULL DEFAULT 0; -- 0: the agent is none of this table
-- +goose StatementEnd
