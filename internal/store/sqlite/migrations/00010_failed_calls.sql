-- What a model call that failed was sent (decision 14), and what a model and its server wrote into the rows of a session that is removed
-- (decision 15).

-- +goose Up

-- Of an attempt as of an exchange; NULL where nothing was sent, or where whoever sent it died before it could say so. The head is that of
-- the attempt itself, and its purpose is kept, because the exchange may have become a summary since.
ALTER TABLE attempts ADD COLUMN first_seq INTEGER;
ALTER TABLE attempts ADD COLUMN last_seq INTEGER;
ALTER TABLE attempts ADD COLUMN request BLOB CHECK (request IS NULL OR length(request) = 32);
ALTER TABLE attempts ADD COLUMN head BLOB REFERENCES blobs (hash);
ALTER TABLE attempts ADD COLUMN purpose TEXT NOT NULL DEFAULT 'step' CHECK (purpose = 'step' OR purpose = 'summary' OR purpose = 'check');
DROP TRIGGER attempts_never_change;
-- +goose StatementBegin
CREATE TRIGGER attempts_never_change BEFORE UPDATE ON attempts
WHEN NOT (NEW.partial = '' AND NEW.error = '' AND NEW.round_id = OLD.round_id AND NEW.exchange = OLD.exchange AND NEW.number = OLD.number
    AND NEW.code = OLD.code AND NEW.cost_microusd IS OLD.cost_microusd AND NEW.input_tokens = OLD.input_tokens AND NEW.output_tokens = OLD.output_tokens
    AND NEW.request IS OLD.request AND NEW.first_seq IS OLD.first_seq AND NEW.last_seq IS OLD.last_seq AND NEW.head IS OLD.head AND NEW.purpose = OLD.purpose
    AND (SELECT s.deleted_at FROM rounds r JOIN sessions s ON s.n = r.session WHERE r.id = OLD.round_id) IS NOT NULL)
BEGIN SELECT RAISE(ABORT, 'attempts never change (decision 28)'); END;
-- +goose StatementEnd

-- The name of a tool that nobody has (its definition is NULL) and a provider's id are words of the model and its server.
DROP TRIGGER calls_identity;
-- +goose StatementBegin
CREATE TRIGGER calls_identity BEFORE UPDATE OF id, session, round_id, exchange, message_id, ordinal, origin, signature, definition,
    class, kind, ask, proposed_at, copy_of ON calls
BEGIN SELECT RAISE(ABORT, 'what was proposed never changes (decision 7)'); END;
-- +goose StatementEnd
-- +goose StatementBegin
CREATE TRIGGER calls_words BEFORE UPDATE OF tool, provider_call_id ON calls
WHEN NOT (NEW.provider_call_id IS NULL AND (NEW.tool = OLD.tool OR NEW.tool = '' AND OLD.definition IS NULL)
  AND (SELECT deleted_at FROM sessions WHERE n = OLD.session) IS NOT NULL)
BEGIN SELECT RAISE(ABORT, 'what was proposed never changes (decision 7)'); END;
-- +goose StatementEnd
-- The session of the call that was made may have been removed since.
DROP TRIGGER calls_come_once;
-- +goose StatementBegin
CREATE TRIGGER calls_come_once BEFORE INSERT ON calls
WHEN (NEW.copy_of IS NULL AND ((NEW.state = 'SUCCEEDED' AND NEW.kind <> 'query') OR NEW.state = 'UNKNOWN' OR NEW.state = 'APPROVED' OR NEW.resolved_at IS NOT NULL))
  OR (NEW.copy_of IS NOT NULL AND (NEW.settled_at IS NULL OR NEW.intent IS NOT NULL
    OR NOT EXISTS (SELECT 1 FROM sessions WHERE n = NEW.session AND forked_from IS NOT NULL)
    OR NOT EXISTS (SELECT 1 FROM calls c WHERE c.id = NEW.copy_of AND c.copy_of IS NULL AND c.settled_at IS NOT NULL
      AND (c.tool = NEW.tool OR c.tool = '' AND c.definition IS NULL AND NEW.definition IS NULL)
      AND c.kind = NEW.kind AND c.class = NEW.class AND c.signature = NEW.signature AND c.started_at IS NEW.started_at)))
  OR EXISTS (SELECT 1 FROM calls WHERE id = NEW.id) OR EXISTS (SELECT 1 FROM messages WHERE id = NEW.message_id)
BEGIN SELECT RAISE(ABORT, 'a call comes once, with its message, an action without the result of a run unless it is a copy of a settled one, and is never replaced (decisions 3, 7 and 17)'); END;
-- +goose StatementEnd
