-- What a write with an Idempotency-Key was answered, so that the same request again is answered alike and does nothing (spec 10.2).

-- +goose Up

-- The HTTP status of the answer; 0: the write has begun, or makes itself repeatable. The answer is sealed with the key, which is not here.
ALTER TABLE request_keys ADD COLUMN status INTEGER NOT NULL DEFAULT 0;
ALTER TABLE request_keys ADD COLUMN answer BLOB NOT NULL DEFAULT x'';
CREATE INDEX request_keys_by_age ON request_keys (at);
