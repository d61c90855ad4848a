-- Which process began a write with an Idempotency-Key: of one that has ended nobody is at work any more (spec 10.2).

-- +goose Up
ALTER TABLE request_keys ADD COLUMN holder TEXT NOT NULL DEFAULT '';
