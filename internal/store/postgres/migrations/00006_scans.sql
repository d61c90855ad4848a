-- What every engine asks every 2 s is found without a look at the rounds that wait.

-- +goose Up

CREATE INDEX rounds_running ON rounds (started_at, id) WHERE state = 'RUNNING';
