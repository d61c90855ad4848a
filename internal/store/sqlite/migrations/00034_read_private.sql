-- +goose Up
ALTER TABLE sessions ADD COLUMN read_private INTEGER NOT NULL DEFAULT 0 CHECK (read_private IN (0, 1));
