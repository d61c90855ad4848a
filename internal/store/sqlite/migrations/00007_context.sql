-- The budget of a prompt (spec 3.4), and what a stored model call is rebuilt from (decision 14).

-- +goose Up

-- All of a request that is not its thread; NULL where it is that of the exchange before.
ALTER TABLE exchanges ADD COLUMN head BLOB REFERENCES blobs (hash);

-- A step that is over the budget becomes the summary that has to come before it, as long as it has no reply; the step follows it.
DROP TRIGGER exchanges_identity;
-- +goose StatementBegin
CREATE TRIGGER exchanges_identity BEFORE UPDATE OF rowid, oid, _rowid_, round_id, number, purpose, reason ON exchanges
WHEN NOT (OLD.state = 'OPEN' AND NEW.state = 'OPEN' AND OLD.purpose = 'step' AND NEW.purpose = 'summary' AND NEW.rowid = OLD.rowid
  AND NEW.round_id = OLD.round_id AND NEW.number = OLD.number AND NEW.reason = OLD.reason AND NEW.attempt = OLD.attempt)
BEGIN SELECT RAISE(ABORT, 'what a model call is for never changes (decision 14), but that a step gives way to a summary (spec 3.4)'); END;
-- +goose StatementEnd
