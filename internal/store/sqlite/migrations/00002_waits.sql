-- What a round waits for beside its wait row (spec 4.4, 4.5, decisions 10-12, 20): the approval of a batch with a review for each
-- call, questions, standing rules, and the messages that wait for their place in the thread.

-- +goose Up

CREATE TABLE approvals (
    id         BLOB PRIMARY KEY CHECK (length(id) = 16),
    session    INTEGER NOT NULL REFERENCES sessions (n),
    round_id   BLOB    NOT NULL REFERENCES rounds (id),
    exchange   INTEGER NOT NULL,
    state      TEXT    NOT NULL CHECK (state = 'OPEN' OR state = 'DECIDED' OR state = 'EXPIRED' OR state = 'WITHDRAWN'),
    created_at INTEGER NOT NULL,
    expires_at INTEGER NOT NULL,
    closed_at  INTEGER,
    CHECK ((state = 'OPEN') = (closed_at IS NULL))
) STRICT, WITHOUT ROWID;

CREATE INDEX approvals_by_round ON approvals (round_id);
CREATE INDEX approvals_open ON approvals (created_at) WHERE state = 'OPEN';

-- +goose StatementBegin
CREATE TRIGGER approvals_close_once BEFORE UPDATE ON approvals
WHEN OLD.state <> 'OPEN' OR NEW.id <> OLD.id OR NEW.session <> OLD.session OR NEW.round_id <> OLD.round_id OR NEW.expires_at <> OLD.expires_at
BEGIN SELECT RAISE(ABORT, 'an approval closes once (spec 4.4)'); END;
-- +goose StatementEnd
-- +goose StatementBegin
CREATE TRIGGER approvals_come_once BEFORE INSERT ON approvals
WHEN NEW.state <> 'OPEN' OR EXISTS (SELECT 1 FROM approvals WHERE id = NEW.id)
BEGIN SELECT RAISE(ABORT, 'an approval comes once, open, and is never replaced (spec 4.3)'); END;
-- +goose StatementEnd
-- +goose StatementBegin
CREATE TRIGGER approvals_never_go BEFORE DELETE ON approvals
BEGIN SELECT RAISE(ABORT, 'approvals are never deleted (spec 4.3)'); END;
-- +goose StatementEnd

CREATE TABLE reviews (
    approval_id   BLOB    NOT NULL REFERENCES approvals (id),
    call_id       BLOB    NOT NULL REFERENCES calls (id),
    ordinal       INTEGER NOT NULL,
    definition    BLOB    NOT NULL CHECK (length(definition) = 32),
    arguments     TEXT    NOT NULL,
    preview       TEXT    NOT NULL, -- sentence, diff, warnings, preconditions, scopes
    verdict       TEXT    NOT NULL CHECK (verdict = 'ASK' OR verdict = 'MUST_ASK'),
    grounds       TEXT    NOT NULL,
    answer        TEXT CHECK (answer IS NULL OR answer = 'allow' OR answer = 'allow_session' OR answer = 'allow_always' OR answer = 'deny'),
    edited        TEXT,             -- arguments that run instead
    edited_preview TEXT,            -- what they do: its preconditions bind then
    reason        TEXT,
    scope         TEXT,
    request       TEXT,             -- the answer's own id: saying it again adds nothing
    decided_by    TEXT,
    decided_at    INTEGER,
    PRIMARY KEY (approval_id, call_id),
    CHECK ((answer IS NULL) = (decided_at IS NULL)),
    CHECK ((answer IS NULL) = (decided_by IS NULL)),
    CHECK (edited IS NULL OR answer <> 'deny')
) STRICT, WITHOUT ROWID;

CREATE INDEX reviews_by_call ON reviews (call_id);

-- +goose StatementBegin
CREATE TRIGGER reviews_decided_once BEFORE UPDATE ON reviews
WHEN OLD.answer IS NOT NULL OR NEW.approval_id <> OLD.approval_id OR NEW.call_id <> OLD.call_id OR NEW.definition <> OLD.definition OR
     NEW.arguments <> OLD.arguments OR NEW.preview <> OLD.preview OR NEW.verdict <> OLD.verdict
BEGIN SELECT RAISE(ABORT, 'a call is decided once, and on what was shown (decision 20)'); END;
-- +goose StatementEnd
-- +goose StatementBegin
CREATE TRIGGER reviews_come_once BEFORE INSERT ON reviews
WHEN NEW.answer IS NOT NULL OR EXISTS (SELECT 1 FROM reviews WHERE approval_id = NEW.approval_id AND call_id = NEW.call_id)
BEGIN SELECT RAISE(ABORT, 'a review comes once, undecided, and is never replaced (spec 4.3)'); END;
-- +goose StatementEnd
-- +goose StatementBegin
CREATE TRIGGER reviews_never_go BEFORE DELETE ON reviews
BEGIN SELECT RAISE(ABORT, 'reviews are never deleted (spec 4.3)'); END;
-- +goose StatementEnd
-- No call that was put to a person goes on without that person's word (invariant 3). A call that is asked about anew is awaiting again.
-- +goose StatementBegin
CREATE TRIGGER calls_approved BEFORE UPDATE OF state ON calls
WHEN NEW.state = 'APPROVED' AND OLD.state <> 'APPROVED' AND NOT EXISTS (
    SELECT 1 FROM reviews r JOIN approvals a ON a.id = r.approval_id WHERE r.call_id = OLD.id AND a.state = 'OPEN' AND r.answer LIKE 'allow%')
BEGIN SELECT RAISE(ABORT, 'no approval of exactly this call (invariant 3)'); END;
-- +goose StatementEnd

CREATE INDEX waits_by_object ON waits (object_id);

CREATE TABLE questions (
    wait_id BLOB PRIMARY KEY REFERENCES waits (id),
    call_id BLOB NOT NULL REFERENCES calls (id),
    module  TEXT NOT NULL,
    request TEXT -- the answer's own id
) STRICT, WITHOUT ROWID;

-- +goose StatementBegin
CREATE TRIGGER questions_come_once BEFORE INSERT ON questions
WHEN EXISTS (SELECT 1 FROM questions WHERE wait_id = NEW.wait_id)
BEGIN SELECT RAISE(ABORT, 'a question comes once and is never replaced (spec 4.5)'); END;
-- +goose StatementEnd
-- +goose StatementBegin
CREATE TRIGGER questions_never_change BEFORE UPDATE OF wait_id, call_id, module ON questions
BEGIN SELECT RAISE(ABORT, 'what was asked never changes (spec 4.5)'); END;
-- +goose StatementEnd
-- +goose StatementBegin
CREATE TRIGGER questions_never_go BEFORE DELETE ON questions
BEGIN SELECT RAISE(ABORT, 'questions are never deleted (spec 4.5)'); END;
-- +goose StatementEnd

CREATE TABLE rules (
    id           BLOB PRIMARY KEY CHECK (length(id) = 16),
    workspace_id BLOB NOT NULL REFERENCES workspaces (id),
    session      INTEGER REFERENCES sessions (n), -- NULL: every session of the workspace
    verdict      TEXT NOT NULL CHECK (verdict = 'ALLOW' OR verdict = 'MUST_ASK' OR verdict = 'FORBID'),
    tool         TEXT NOT NULL,
    scope        TEXT NOT NULL,
    author       TEXT NOT NULL,
    from_call    BLOB REFERENCES calls (id),
    created_at   INTEGER NOT NULL,
    expires_at   INTEGER,
    revoked_at   INTEGER
) STRICT, WITHOUT ROWID;

CREATE INDEX rules_by_workspace ON rules (workspace_id, tool);

-- +goose StatementBegin
CREATE TRIGGER rules_come_once BEFORE INSERT ON rules
WHEN EXISTS (SELECT 1 FROM rules WHERE id = NEW.id)
BEGIN SELECT RAISE(ABORT, 'a rule comes once and is never replaced (spec 4.4)'); END;
-- +goose StatementEnd
-- +goose StatementBegin
CREATE TRIGGER rules_never_change BEFORE UPDATE ON rules
WHEN OLD.revoked_at IS NOT NULL OR NEW.id <> OLD.id OR NEW.workspace_id <> OLD.workspace_id OR NEW.session IS NOT OLD.session OR
     NEW.verdict <> OLD.verdict OR NEW.tool <> OLD.tool OR NEW.scope <> OLD.scope OR NEW.author <> OLD.author OR NEW.expires_at IS NOT OLD.expires_at
BEGIN SELECT RAISE(ABORT, 'a rule never changes: it is revoked (spec 4.4)'); END;
-- +goose StatementEnd
-- +goose StatementBegin
CREATE TRIGGER rules_never_go BEFORE DELETE ON rules
BEGIN SELECT RAISE(ABORT, 'rules are never deleted: they are revoked (spec 4.4)'); END;
-- +goose StatementEnd

-- A message that came while its session was busy (decision 10). Its content is the body of its message_pending event until it is
-- admitted; round is what its round would be started with.
CREATE TABLE pending (
    n          INTEGER PRIMARY KEY, -- the order of arrival
    message_id BLOB    NOT NULL UNIQUE REFERENCES messages (id),
    session    INTEGER NOT NULL REFERENCES sessions (n),
    mode       TEXT    NOT NULL CHECK (mode = 'queue' OR mode = 'steer'),
    round      TEXT    NOT NULL
) STRICT;

CREATE INDEX pending_by_session ON pending (session);
