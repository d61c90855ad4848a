-- +goose Up
-- +goose StatementBegin
-- The fire that an event was joined to: its run reads the event.
ALTER TABLE fires ADD COLUMN joined_to uuid;
CREATE INDEX fires_joined ON fires (joined_to) WHERE joined_to IS NOT NULL;
-- +goose StatementEnd
