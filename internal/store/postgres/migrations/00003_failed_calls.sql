-- What a model call that failed was sent (decision 14), and what a model and its server wrote into the rows of a session that is removed
-- (decision 15).

-- +goose Up

-- Of an attempt as of an exchange; NULL where nothing was sent, or where whoever sent it died before it could say so. The head is that of
-- the attempt itself, and its purpose is kept, because the exchange may have become a summary since.
ALTER TABLE attempts
    ADD COLUMN first_seq bigint,
    ADD COLUMN last_seq bigint,
    ADD COLUMN request bytea CHECK (octet_length(request) = 32),
    ADD COLUMN head bytea REFERENCES blobs (hash),
    ADD COLUMN purpose text NOT NULL DEFAULT 'step' CHECK (purpose IN ('step', 'summary', 'check'));
DROP TRIGGER attempts_never_change ON attempts;
CREATE TRIGGER attempts_never_change BEFORE UPDATE ON attempts FOR EACH ROW
    WHEN (NOT (NEW.partial = '' AND NEW.error = '' AND (NEW.round_id, NEW.exchange, NEW.number, NEW.code, NEW.cost_microusd, NEW.input_tokens,
        NEW.output_tokens, NEW.request, NEW.first_seq, NEW.last_seq, NEW.head, NEW.purpose) IS NOT DISTINCT FROM (OLD.round_id, OLD.exchange, OLD.number,
        OLD.code, OLD.cost_microusd, OLD.input_tokens, OLD.output_tokens, OLD.request, OLD.first_seq, OLD.last_seq, OLD.head, OLD.purpose)
        AND round_removed(OLD.round_id)))
    EXECUTE FUNCTION refuse('attempts never change (decision 28)');

-- The name of a tool that nobody has (its definition is NULL) and a provider's id are words of the model and its server.
DROP TRIGGER calls_identity ON calls;
CREATE TRIGGER calls_identity BEFORE UPDATE ON calls FOR EACH ROW
    WHEN ((NEW.id, NEW.session, NEW.round_id, NEW.exchange, NEW.message_id, NEW.ordinal, NEW.origin, NEW.signature, NEW.definition, NEW.class,
            NEW.kind, NEW.ask, NEW.proposed_at, NEW.copy_of) IS DISTINCT FROM
          (OLD.id, OLD.session, OLD.round_id, OLD.exchange, OLD.message_id, OLD.ordinal, OLD.origin, OLD.signature, OLD.definition, OLD.class,
            OLD.kind, OLD.ask, OLD.proposed_at, OLD.copy_of)
        OR (NEW.arguments <> OLD.arguments AND (NEW.arguments <> '' OR NOT removed(OLD.session)))
        OR ((NEW.tool, NEW.provider_call_id) IS DISTINCT FROM (OLD.tool, OLD.provider_call_id) AND NOT (NEW.provider_call_id IS NULL
            AND (NEW.tool = OLD.tool OR NEW.tool = '' AND OLD.definition IS NULL) AND removed(OLD.session))))
    EXECUTE FUNCTION refuse('what was proposed never changes (decision 7)');
-- The session of the call that was made may have been removed since.
-- +goose StatementBegin
CREATE OR REPLACE FUNCTION call_comes() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF (NEW.copy_of IS NULL AND ((NEW.state = 'SUCCEEDED' AND NEW.kind <> 'query') OR NEW.state = 'UNKNOWN' OR NEW.state = 'APPROVED' OR NEW.resolved_at IS NOT NULL))
        OR (NEW.copy_of IS NOT NULL AND (NEW.settled_at IS NULL OR NEW.intent IS NOT NULL
            OR NOT EXISTS (SELECT 1 FROM sessions s WHERE s.n = NEW.session AND s.forked_from IS NOT NULL)
            OR NOT EXISTS (SELECT 1 FROM calls c WHERE c.id = NEW.copy_of AND c.copy_of IS NULL AND c.settled_at IS NOT NULL
                AND (c.tool = NEW.tool OR c.tool = '' AND c.definition IS NULL AND NEW.definition IS NULL)
                AND c.kind = NEW.kind AND c.class = NEW.class AND c.signature = NEW.signature AND c.started_at IS NOT DISTINCT FROM NEW.started_at)))
        OR EXISTS (SELECT 1 FROM messages m WHERE m.id = NEW.message_id) THEN
        RAISE EXCEPTION 'a call comes once, with its message, an action without the result of a run unless it is a copy of a settled one, and is never replaced (decisions 3, 7 and 17)'
            USING ERRCODE = 'check_violation';
    END IF;
    RETURN NEW;
END $$;
-- +goose StatementEnd
