-- Forks hold copies of calls (decision 17), and a session that is removed loses its content (decision 15). Nothing of it is a step of a
-- round: what a round's own statements pass is looked at first in each condition.

-- +goose Up

-- The call that was made, where the row is its copy in a fork: never a copy itself, so that a fork of a fork names the first one.
ALTER TABLE calls ADD COLUMN copy_of BLOB CHECK (copy_of IS NULL OR length(copy_of) = 16);
CREATE INDEX calls_copies ON calls (copy_of) WHERE copy_of IS NOT NULL;
CREATE INDEX calls_whole ON calls (result_blob) WHERE result_blob IS NOT NULL;
CREATE INDEX attachments_by_blob ON attachments (blob);
CREATE INDEX sessions_forks ON sessions (forked_from) WHERE forked_from IS NOT NULL;

-- A copy stands for a call that has its result and, where it is an action, was started: it cannot make an effect that nobody intended
-- (invariant 2). It has no evidence of its own: there is nothing to undo in a fork.
DROP TRIGGER calls_come_once;
-- +goose StatementBegin
CREATE TRIGGER calls_come_once BEFORE INSERT ON calls
WHEN (NEW.copy_of IS NULL AND ((NEW.state = 'SUCCEEDED' AND NEW.kind <> 'query') OR NEW.state = 'UNKNOWN' OR NEW.state = 'APPROVED' OR NEW.resolved_at IS NOT NULL))
  OR (NEW.copy_of IS NOT NULL AND (NEW.settled_at IS NULL OR NEW.intent IS NOT NULL
    OR NOT EXISTS (SELECT 1 FROM sessions WHERE n = NEW.session AND forked_from IS NOT NULL)
    OR NOT EXISTS (SELECT 1 FROM calls c WHERE c.id = NEW.copy_of AND c.copy_of IS NULL AND c.settled_at IS NOT NULL AND c.tool = NEW.tool
      AND c.kind = NEW.kind AND c.class = NEW.class AND c.signature = NEW.signature AND c.started_at IS NEW.started_at)))
  OR EXISTS (SELECT 1 FROM calls WHERE id = NEW.id) OR EXISTS (SELECT 1 FROM messages WHERE id = NEW.message_id)
BEGIN SELECT RAISE(ABORT, 'a call comes once, with its message, an action without the result of a run unless it is a copy of a settled one, and is never replaced (decisions 3, 7 and 17)'); END;
-- +goose StatementEnd

-- What a removed session held is taken out of its rows; what identifies them, and how they ended, stays. A trigger that is made later is asked
-- first, so who changes what identifies a row is told that.
DROP TRIGGER calls_order;
-- +goose StatementBegin
CREATE TRIGGER calls_order BEFORE UPDATE ON calls
WHEN NOT CASE OLD.state
    WHEN 'PROPOSED' THEN (OLD.kind = 'query' OR (NEW.state <> 'SUCCEEDED' AND NEW.state <> 'UNKNOWN'))
    WHEN 'STARTED' THEN (NEW.state <> 'PROPOSED' AND NEW.state <> 'AWAITING_APPROVAL' AND NEW.state <> 'APPROVED')
    WHEN 'AWAITING_APPROVAL' THEN (NEW.state = 'AWAITING_APPROVAL' OR NEW.state = 'APPROVED' OR NEW.state = 'NOT_RUN')
    WHEN 'APPROVED' THEN NEW.state <> 'PROPOSED' AND (OLD.kind = 'query' OR (NEW.state <> 'SUCCEEDED' AND NEW.state <> 'UNKNOWN'))
    ELSE (OLD.state = 'UNKNOWN' AND (NEW.state = 'SUCCEEDED' OR NEW.state = 'FAILED') AND OLD.resolved_at IS NULL AND NEW.resolved_at IS NOT NULL)
      OR (NEW.state = OLD.state AND NEW.arguments = '' AND NEW.executed IS NULL AND NEW.intent IS NULL AND coalesce(NEW.result, '') = ''
        AND NEW.result_blob IS NULL AND NEW.code IS OLD.code AND NEW.attempts = OLD.attempts AND NEW.recovered = OLD.recovered
        AND NEW.duration_us IS OLD.duration_us AND NEW.started_at IS OLD.started_at AND NEW.settled_at = OLD.settled_at
        AND (SELECT deleted_at FROM sessions WHERE n = OLD.session) IS NOT NULL)
END
BEGIN SELECT RAISE(ABORT, 'no such change of a call: it has exactly one result (decision 3, invariants 4 and 5)'); END;
-- +goose StatementEnd
DROP TRIGGER calls_resolved;
-- +goose StatementBegin
CREATE TRIGGER calls_resolved BEFORE UPDATE OF resolved_at, resolved_by, resolved_as, resolve_note ON calls
WHEN NOT (NEW.resolve_note = '' AND NEW.state = OLD.state AND NEW.resolved_at IS OLD.resolved_at AND NEW.resolved_by IS OLD.resolved_by
    AND NEW.resolved_as IS OLD.resolved_as AND (SELECT deleted_at FROM sessions WHERE n = OLD.session) IS NOT NULL)
  AND (OLD.state <> 'UNKNOWN' OR (NEW.state = 'SUCCEEDED') IS NOT (NEW.resolved_as = 'happened')
  OR NEW.executed IS NOT OLD.executed OR NEW.code IS NOT OLD.code OR NEW.intent IS NOT OLD.intent OR NEW.result IS NOT OLD.result
  OR NEW.error IS NOT OLD.error OR NEW.result_blob IS NOT OLD.result_blob OR NEW.duplicate_of IS NOT OLD.duplicate_of
  OR NEW.attempts <> OLD.attempts OR NEW.recovered <> OLD.recovered OR NEW.duration_us IS NOT OLD.duration_us
  OR NEW.settled_at IS NOT OLD.settled_at)
BEGIN SELECT RAISE(ABORT, 'a person resolves only an UNKNOWN call, and changes nothing else of it (decision 5)'); END;
-- +goose StatementEnd
DROP TRIGGER calls_identity;
-- +goose StatementBegin
CREATE TRIGGER calls_identity BEFORE UPDATE OF id, session, round_id, exchange, message_id, ordinal, origin, tool, signature, definition,
    class, kind, ask, provider_call_id, proposed_at, copy_of ON calls
BEGIN SELECT RAISE(ABORT, 'what was proposed never changes (decision 7)'); END;
-- +goose StatementEnd
-- +goose StatementBegin
CREATE TRIGGER calls_arguments BEFORE UPDATE OF arguments ON calls
WHEN NEW.arguments <> '' OR (SELECT deleted_at FROM sessions WHERE n = OLD.session) IS NULL
BEGIN SELECT RAISE(ABORT, 'what was proposed never changes (decision 7)'); END;
-- +goose StatementEnd

DROP TRIGGER rounds_forward;
-- +goose StatementBegin
CREATE TRIGGER rounds_forward BEFORE UPDATE ON rounds
WHEN (OLD.state = 'ENDED' AND NOT (NEW.state = 'ENDED' AND NEW.end_note = '' AND NEW.end_reason = OLD.end_reason AND NEW.ended_at = OLD.ended_at
    AND NEW.total = OLD.total AND NEW.spent_microusd = OLD.spent_microusd AND (SELECT deleted_at FROM sessions WHERE n = OLD.session) IS NOT NULL))
  OR NEW.total < OLD.total OR NEW.epoch < OLD.epoch OR NEW.tokens < OLD.tokens OR NEW.spent_microusd < OLD.spent_microusd
BEGIN SELECT RAISE(ABORT, 'a round ends once, its total, its epoch and what it spent only rise (invariants 8, 9 and 11, decision 41)'); END;
-- +goose StatementEnd
DROP TRIGGER exchanges_final;
-- +goose StatementBegin
CREATE TRIGGER exchanges_final BEFORE UPDATE ON exchanges
WHEN (OLD.state <> 'OPEN' AND NOT (NEW.state = OLD.state AND NEW.error = '' AND NEW.attempt = OLD.attempt AND NEW.request IS OLD.request
    AND NEW.reply_id IS OLD.reply_id AND NEW.cost_microusd IS OLD.cost_microusd AND NEW.input_tokens = OLD.input_tokens AND NEW.output_tokens = OLD.output_tokens
    AND (SELECT s.deleted_at FROM rounds r JOIN sessions s ON s.n = r.session WHERE r.id = OLD.round_id) IS NOT NULL))
  OR NEW.attempt < OLD.attempt
BEGIN SELECT RAISE(ABORT, 'a model call has one end, its attempts only rise (decision 28)'); END;
-- +goose StatementEnd
DROP TRIGGER attempts_never_change;
-- +goose StatementBegin
CREATE TRIGGER attempts_never_change BEFORE UPDATE ON attempts
WHEN NOT (NEW.partial = '' AND NEW.error = '' AND NEW.round_id = OLD.round_id AND NEW.exchange = OLD.exchange AND NEW.number = OLD.number
    AND NEW.code = OLD.code AND NEW.cost_microusd IS OLD.cost_microusd AND NEW.input_tokens = OLD.input_tokens AND NEW.output_tokens = OLD.output_tokens
    AND (SELECT s.deleted_at FROM rounds r JOIN sessions s ON s.n = r.session WHERE r.id = OLD.round_id) IS NOT NULL)
BEGIN SELECT RAISE(ABORT, 'attempts never change (decision 28)'); END;
-- +goose StatementEnd

DROP TRIGGER reviews_decided_once;
-- +goose StatementBegin
CREATE TRIGGER reviews_decided_once BEFORE UPDATE ON reviews
WHEN (OLD.answer IS NOT NULL OR NEW.approval_id <> OLD.approval_id OR NEW.call_id <> OLD.call_id OR NEW.ordinal <> OLD.ordinal OR
     NEW.definition <> OLD.definition OR NEW.arguments <> OLD.arguments OR NEW.preview <> OLD.preview OR NEW.verdict <> OLD.verdict OR
     NEW.grounds <> OLD.grounds)
  AND NOT (NEW.approval_id = OLD.approval_id AND NEW.call_id = OLD.call_id AND NEW.ordinal = OLD.ordinal AND NEW.definition = OLD.definition
     AND NEW.verdict = OLD.verdict AND NEW.answer IS OLD.answer AND NEW.decided_by IS OLD.decided_by AND NEW.decided_at IS OLD.decided_at
     AND NEW.arguments = 'null' AND NEW.preview = '{}' AND NEW.grounds = '[]' AND NEW.edited IS NULL AND NEW.edited_preview IS NULL
     AND NEW.reason IS NULL AND NEW.scope IS NULL
     AND (SELECT s.deleted_at FROM approvals a JOIN sessions s ON s.n = a.session WHERE a.id = OLD.approval_id) IS NOT NULL)
BEGIN SELECT RAISE(ABORT, 'a call is decided once, and on what was shown (decision 20)'); END;
-- +goose StatementEnd
DROP TRIGGER waits_resolve_once;
-- +goose StatementBegin
CREATE TRIGGER waits_resolve_once BEFORE UPDATE ON waits
WHEN OLD.state <> 'OPEN' AND NOT (NEW.state = OLD.state AND NEW.resolution IS NULL AND NEW.resolved_by IS OLD.resolved_by AND NEW.resolved_at = OLD.resolved_at
    AND NEW.deadline IS OLD.deadline AND (SELECT deleted_at FROM sessions WHERE n = OLD.session) IS NOT NULL)
BEGIN SELECT RAISE(ABORT, 'a wait is resolved once (spec 4.4)'); END;
-- +goose StatementEnd
DROP TRIGGER questions_never_change;
-- +goose StatementBegin
CREATE TRIGGER questions_never_change BEFORE UPDATE OF wait_id, call_id, module ON questions
WHEN NEW.wait_id <> OLD.wait_id OR NEW.call_id <> OLD.call_id OR (NEW.module <> OLD.module AND (NEW.module <> '{}'
  OR (SELECT s.deleted_at FROM waits w JOIN sessions s ON s.n = w.session WHERE w.id = OLD.wait_id) IS NULL))
BEGIN SELECT RAISE(ABORT, 'what was asked never changes (spec 4.5)'); END;
-- +goose StatementEnd

-- Unchanged, for the order.
DROP TRIGGER exchanges_identity;
-- +goose StatementBegin
CREATE TRIGGER exchanges_identity BEFORE UPDATE OF rowid, oid, _rowid_, round_id, number, purpose, reason ON exchanges
BEGIN SELECT RAISE(ABORT, 'what a model call is for never changes (decision 14)'); END;
-- +goose StatementEnd
DROP TRIGGER waits_identity;
-- +goose StatementBegin
CREATE TRIGGER waits_identity BEFORE UPDATE OF id, session, round_id, kind, object_id, owner_id, created_at ON waits
BEGIN SELECT RAISE(ABORT, 'what is waited for never changes (decision 12)'); END;
-- +goose StatementEnd

-- A body goes only where the log says so: its newest row is the one that tells of it (decision 15).
-- +goose StatementBegin
CREATE TRIGGER bodies_go_with_a_word BEFORE DELETE ON event_bodies
WHEN (SELECT e.type FROM events e WHERE e.chain = (SELECT chain FROM events WHERE n = OLD.n) ORDER BY e.seq DESC LIMIT 1) IS NOT 'erased'
BEGIN SELECT RAISE(ABORT, 'a body is erased only with a row in its log that says so (decision 15)'); END;
-- +goose StatementEnd
-- A tombstone stays.
-- +goose StatementBegin
CREATE TRIGGER sessions_tombstone BEFORE UPDATE OF deleted_at ON sessions
WHEN OLD.deleted_at IS NOT NULL AND NEW.deleted_at IS NOT OLD.deleted_at
  OR (NEW.deleted_at IS NOT NULL AND EXISTS (SELECT 1 FROM rounds WHERE session = OLD.n AND state <> 'ENDED'))
BEGIN SELECT RAISE(ABORT, 'a session is removed once, with no round open, and stays so (decision 15)'); END;
-- +goose StatementEnd
