-- A message that its person took back while it waited for its turn, apart from those that the end of their session gave back (decision 10).

-- +goose Up
ALTER TABLE messages ADD COLUMN taken_back INTEGER NOT NULL DEFAULT 0;
