-- What is swept is found by its time.

-- +goose Up

CREATE INDEX commits_by_time ON commits (at);
