-- +goose Up
ALTER TABLE sessions ADD COLUMN mode text NOT NULL DEFAULT ''
    CHECK (mode IN ('', 'ask', 'accept_edits', 'plan', 'auto'));
