-- What makes answers, rules and waits traceable (spec 11.4, decision 15): where in the log an approval was asked, how long an answer
-- for longer holds, and who took a rule back. From here on rules stand in the log of their workspace.

-- +goose Up

-- Reviews of one call are told apart by where their approval stands in the log, which only rises; the clock can jump.
DROP TRIGGER approvals_close_once;
ALTER TABLE approvals ADD COLUMN seq INTEGER NOT NULL DEFAULT 0 CHECK (seq >= 0); -- of the event that asked; 0 where its body was erased
UPDATE approvals SET seq = coalesce((
    SELECT min(e.seq) FROM events e JOIN event_bodies b ON b.n = e.n
    WHERE e.chain = approvals.session AND e.type = 'approval' AND json_extract(b.body, '$.approval_id') = lower(
        substr(hex(approvals.id), 1, 8) || '-' || substr(hex(approvals.id), 9, 4) || '-' || substr(hex(approvals.id), 13, 4) || '-' ||
        substr(hex(approvals.id), 17, 4) || '-' || substr(hex(approvals.id), 21))), 0);
-- +goose StatementBegin
CREATE TRIGGER approvals_close_once BEFORE UPDATE ON approvals
WHEN OLD.state <> 'OPEN' OR NEW.id <> OLD.id OR NEW.session <> OLD.session OR NEW.round_id <> OLD.round_id OR NEW.exchange <> OLD.exchange
  OR NEW.created_at <> OLD.created_at OR NEW.expires_at <> OLD.expires_at OR NEW.seq <> OLD.seq
BEGIN SELECT RAISE(ABORT, 'an approval closes once (spec 4.4)'); END;
-- +goose StatementEnd

DROP TRIGGER reviews_decided_once;
-- How long the rule counts that the answer made.
ALTER TABLE reviews ADD COLUMN expires_at INTEGER CHECK (expires_at IS NULL OR answer = 'allow_session' OR answer = 'allow_always');
-- +goose StatementBegin
CREATE TRIGGER reviews_decided_once BEFORE UPDATE ON reviews
WHEN OLD.answer IS NOT NULL OR NEW.approval_id <> OLD.approval_id OR NEW.call_id <> OLD.call_id OR NEW.ordinal <> OLD.ordinal OR
     NEW.definition <> OLD.definition OR NEW.arguments <> OLD.arguments OR NEW.preview <> OLD.preview OR NEW.verdict <> OLD.verdict OR
     NEW.grounds <> OLD.grounds
BEGIN SELECT RAISE(ABORT, 'a call is decided once, and on what was shown (decision 20)'); END;
-- +goose StatementEnd

DROP TRIGGER rules_come_once;
DROP TRIGGER rules_never_change;
ALTER TABLE rules ADD COLUMN revoked_by TEXT CHECK ((revoked_by IS NULL) = (revoked_at IS NULL));
-- No log tells of the rules that were made before, so nobody could say whether they were: people are asked once more.
UPDATE rules SET revoked_at = CAST(unixepoch('subsec') * 1000000 AS INTEGER), revoked_by = 'schema 3' WHERE revoked_at IS NULL;
-- +goose StatementBegin
CREATE TRIGGER rules_come_once BEFORE INSERT ON rules
WHEN NEW.revoked_at IS NOT NULL OR EXISTS (SELECT 1 FROM rules WHERE id = NEW.id)
BEGIN SELECT RAISE(ABORT, 'a rule comes once and is never replaced (spec 4.4)'); END;
-- +goose StatementEnd
-- +goose StatementBegin
CREATE TRIGGER rules_never_change BEFORE UPDATE ON rules
WHEN OLD.revoked_at IS NOT NULL OR NEW.id <> OLD.id OR NEW.workspace_id <> OLD.workspace_id OR NEW.session IS NOT OLD.session OR
     NEW.verdict <> OLD.verdict OR NEW.tool <> OLD.tool OR NEW.scope <> OLD.scope OR NEW.author <> OLD.author OR
     NEW.from_call IS NOT OLD.from_call OR NEW.created_at <> OLD.created_at OR NEW.expires_at IS NOT OLD.expires_at
BEGIN SELECT RAISE(ABORT, 'a rule never changes: it is revoked (spec 4.4)'); END;
-- +goose StatementEnd
