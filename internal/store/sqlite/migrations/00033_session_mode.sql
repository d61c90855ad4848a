-- +goose Up
ALTER TABLE sessions ADD COLUMN approval_mode TEXT NOT NULL DEFAULT '' -- decision 71; empty is ask
    CHECK (approval_mode IN ('', 'ask', 'accept_edits', 'plan', 'auto'));
