-- A query's result may come with its reply: nothing was done that an intent would have to stand before (decision 4).

-- +goose Up

DROP TRIGGER calls_come_once;
-- +goose StatementBegin
CREATE TRIGGER calls_come_once BEFORE INSERT ON calls
WHEN (NEW.state = 'SUCCEEDED' AND NEW.kind <> 'query') OR NEW.state = 'UNKNOWN' OR NEW.state = 'APPROVED' OR NEW.resolved_at IS NOT NULL
  OR EXISTS (SELECT 1 FROM calls WHERE id = NEW.id) OR EXISTS (SELECT 1 FROM messages WHERE id = NEW.message_id)
BEGIN SELECT RAISE(ABORT, 'a call comes once, with its message, an action without the result of a run, and is never replaced (decisions 3 and 7)'); END;
-- +goose StatementEnd
