-- +goose Up
ALTER TABLE sessions ADD COLUMN mode TEXT NOT NULL DEFAULT '' -- decision 71; empty is ask
    CHECK (mode IN ('', 'ask', 'accept_edits', 'plan', 'auto'));
