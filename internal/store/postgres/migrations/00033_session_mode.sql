-- +goose Up
ALTER TABLE sessions ADD COLUMN approval_mode text NOT NULL DEFAULT ''
    CHECK (approval_mode IN ('', 'ask', 'accept_edits', 'plan', 'auto'));
