-- The core data model (spec chapter 2; docs/design.md holds it as tables). Conventions: ids are 16-byte UUIDv7, hashes are
-- 32 bytes, *_at are microseconds since 1970 UTC, *_us are microseconds, *_microusd are millionths of a US dollar, JSON is TEXT.
-- What a column may hold is refused here and not only in the program. Lists of words are written with OR: SQLite would build a
-- temporary index for each IN list of more than two constants, at each statement (measured: three quarters of the time).
--
-- Triggers hold for whoever writes, so they cannot count on our pragmas: OR REPLACE deletes what it collides with and fires no delete
-- trigger without recursive_triggers, so what may not be replaced is looked for before each insert, by each of its unique keys, and
-- keys do not change. UPDATE OF compares the names in the statement: the rowid has four. What our own frequent statements do not name
-- costs them nothing there, so whole-row triggers are few.

-- +goose Up

CREATE TABLE meta (
    key   TEXT PRIMARY KEY,
    value TEXT NOT NULL
) STRICT, WITHOUT ROWID;

CREATE TABLE users (
    id          BLOB PRIMARY KEY CHECK (length(id) = 16),
    name        TEXT    NOT NULL UNIQUE,
    created_at  INTEGER NOT NULL,
    disabled_at INTEGER
) STRICT, WITHOUT ROWID;

CREATE TABLE workspaces (
    id         BLOB PRIMARY KEY CHECK (length(id) = 16),
    name       TEXT    NOT NULL,
    root       TEXT UNIQUE,
    found_by   TEXT    NOT NULL DEFAULT '',
    created_at INTEGER NOT NULL,
    deleted_at INTEGER
) STRICT, WITHOUT ROWID;

CREATE TABLE members (
    workspace_id BLOB NOT NULL REFERENCES workspaces (id),
    user_id      BLOB NOT NULL REFERENCES users (id),
    role         TEXT NOT NULL CHECK (role = 'owner' OR role = 'member' OR role = 'viewer'),
    PRIMARY KEY (workspace_id, user_id)
) STRICT, WITHOUT ROWID;

-- A chain is one append-only log: one for each session, one for each workspace's configuration (decision 15). Its row
-- allocates the sequence numbers and holds the head of the hash chain.
CREATE TABLE chains (
    n        INTEGER PRIMARY KEY,
    kind     TEXT    NOT NULL CHECK (kind IN ('session', 'workspace')),
    owner_id BLOB    NOT NULL UNIQUE CHECK (length(owner_id) = 16),
    head     INTEGER NOT NULL DEFAULT 0,
    mac      BLOB    NOT NULL CHECK (length(mac) = 32),
    head_at  INTEGER NOT NULL
) STRICT;

-- In order of arrival, with a narrow index: sessions that run side by side write to the same last page, not to one each.
CREATE TABLE events (
    n     INTEGER PRIMARY KEY,
    chain INTEGER NOT NULL,
    seq   INTEGER NOT NULL CHECK (seq > 0),
    type  TEXT    NOT NULL,
    at    INTEGER NOT NULL,
    body  BLOB    NOT NULL CHECK (length(body) = 32), -- SHA-256 of the body
    mac   BLOB    NOT NULL CHECK (length(mac) = 32),  -- HMAC over the row before and this row
    UNIQUE (chain, seq)
) STRICT;

-- Bodies live apart from the log, because they may be erased and log rows may not (decision 15).
CREATE TABLE event_bodies (
    n    INTEGER PRIMARY KEY, -- its event's
    body TEXT NOT NULL
) STRICT;

-- +goose StatementBegin
CREATE TRIGGER events_come_once BEFORE INSERT ON events
WHEN NEW.n <= (SELECT max(n) FROM events) OR NEW.seq <> (SELECT coalesce(max(seq), 0) + 1 FROM events WHERE chain = NEW.chain)
BEGIN SELECT RAISE(ABORT, 'a log row comes once, as the next of its chain: the log has no gap (decision 15, invariant 6)'); END;
CREATE TRIGGER events_never_change BEFORE UPDATE ON events BEGIN SELECT RAISE(ABORT, 'log rows never change (decision 15)'); END;
CREATE TRIGGER events_never_go BEFORE DELETE ON events BEGIN SELECT RAISE(ABORT, 'log rows are never deleted (decision 15)'); END;
CREATE TRIGGER bodies_come_once BEFORE INSERT ON event_bodies WHEN NEW.n <= (SELECT max(n) FROM event_bodies)
BEGIN SELECT RAISE(ABORT, 'a body comes once, with its log row (decision 15)'); END;
CREATE TRIGGER bodies_never_change BEFORE UPDATE ON event_bodies BEGIN SELECT RAISE(ABORT, 'bodies are erased, never changed (decision 15)'); END;
-- +goose StatementEnd

-- Rows of the log have no foreign keys, which would cost at each of them; the head's trigger and verify see to the same. The head
-- moves to the newest row and the mac with it, so nothing is left beyond; that no row before is missing is seen to at each insert.
-- +goose StatementBegin
CREATE TRIGGER chains_gapless BEFORE UPDATE OF head, mac ON chains
WHEN NEW.head < OLD.head OR (NEW.head = OLD.head AND NEW.mac <> OLD.mac) OR (NEW.head > OLD.head AND
    (SELECT seq = NEW.head AND mac = NEW.mac FROM events WHERE chain = OLD.n ORDER BY seq DESC LIMIT 1) IS NOT 1)
BEGIN SELECT RAISE(ABORT, 'the head does not fit the log: it moves to its newest row, or the log has a gap (invariant 6)'); END;
CREATE TRIGGER chains_identity BEFORE UPDATE OF n, rowid, oid, _rowid_, kind, owner_id ON chains
BEGIN SELECT RAISE(ABORT, 'whose log it is never changes (decision 15)'); END;
CREATE TRIGGER chains_come_once BEFORE INSERT ON chains
WHEN NEW.head <> 0 OR EXISTS (SELECT 1 FROM chains WHERE n = NEW.n) OR EXISTS (SELECT 1 FROM chains WHERE owner_id = NEW.owner_id)
BEGIN SELECT RAISE(ABORT, 'a chain comes once, empty, and is never replaced (decision 15)'); END;
CREATE TRIGGER chains_never_go BEFORE DELETE ON chains BEGIN SELECT RAISE(ABORT, 'chains are never deleted (decision 15)'); END;
-- +goose StatementEnd

CREATE TABLE blobs (
    hash       BLOB PRIMARY KEY CHECK (length(hash) = 32),
    size       INTEGER NOT NULL CHECK (size >= 0),
    data       BLOB, -- NULL: erased, or kept as a file of that name in the data directory
    in_file    INTEGER NOT NULL DEFAULT 0 CHECK (in_file IN (0, 1)),
    created_at INTEGER NOT NULL
) STRICT;

CREATE TABLE sessions (
    n                  INTEGER PRIMARY KEY REFERENCES chains (n),
    id                 BLOB    NOT NULL UNIQUE CHECK (length(id) = 16),
    workspace_id       BLOB    NOT NULL REFERENCES workspaces (id),
    user_id            BLOB    NOT NULL REFERENCES users (id),
    agent              TEXT    NOT NULL,
    name               TEXT    NOT NULL DEFAULT '',
    type               TEXT    NOT NULL CHECK (type = 'CHAT' OR type = 'SEED' OR type = 'AUTOMATION' OR type = 'SUBAGENT'),
    visibility         TEXT    NOT NULL DEFAULT 'private' CHECK (visibility IN ('private', 'shared')),
    origin             TEXT    NOT NULL DEFAULT 'local' CHECK (origin = 'local' OR origin = 'api' OR origin = 'seed' OR origin = 'fork' OR
                                 origin = 'parent'),
    provider           TEXT    NOT NULL,
    model              TEXT    NOT NULL,
    require_validation INTEGER NOT NULL DEFAULT 0 CHECK (require_validation IN (0, 1)),
    read_only          INTEGER NOT NULL DEFAULT 0 CHECK (read_only IN (0, 1)),
    tainted            INTEGER NOT NULL DEFAULT 0 CHECK (tainted IN (0, 1)),
    automation_id      BLOB CHECK (automation_id IS NULL OR type = 'AUTOMATION'),
    scheduled_at       INTEGER CHECK (scheduled_at IS NULL OR type = 'AUTOMATION'),
    parent_call        BLOB UNIQUE,
    forked_from        BLOB REFERENCES sessions (id),
    forked_at_seq      INTEGER,
    state              TEXT    NOT NULL DEFAULT 'IDLE' CHECK (state = 'IDLE' OR state = 'QUEUED' OR state = 'ACTIVE' OR state = 'PAUSED' OR
                                 state = 'WAITING_VALIDATION' OR state = 'WAITING_RESPONSE' OR state = 'WAITING_NETWORK' OR
                                 state = 'WAITING_TASK' OR state = 'CLOSED'),
    waiting_network    INTEGER NOT NULL DEFAULT 0 CHECK (waiting_network IN (0, 1)),
    end_reason         TEXT CHECK (end_reason IS NULL OR end_reason = 'COMPLETED' OR end_reason = 'TIMEOUT' OR end_reason = 'ERROR' OR
                                 end_reason = 'CANCELLED'),
    epoch              INTEGER NOT NULL DEFAULT 0,
    lease_holder       TEXT,
    lease_until        INTEGER,
    paused_at          INTEGER,
    expires_at         INTEGER,
    created_at         INTEGER NOT NULL,
    closed_at          INTEGER,
    deleted_at         INTEGER, -- a tombstone: the row stays, bodies go (decision 15)
    CHECK (end_reason IS NULL OR state = 'CLOSED'),
    CHECK ((closed_at IS NOT NULL) = (state = 'CLOSED')),
    CHECK ((forked_from IS NULL) = (forked_at_seq IS NULL)),
    CHECK ((parent_call IS NOT NULL) = (type = 'SUBAGENT')),
    CHECK (type <> 'SEED' OR state IN ('IDLE', 'CLOSED'))
) STRICT;

CREATE INDEX sessions_by_workspace ON sessions (workspace_id, n);

-- +goose StatementBegin
CREATE TRIGGER sessions_epoch_rises BEFORE UPDATE OF epoch ON sessions WHEN NEW.epoch < OLD.epoch
BEGIN SELECT RAISE(ABORT, 'a session''s epoch only rises (invariant 8)'); END;
CREATE TRIGGER sessions_identity BEFORE UPDATE OF n, rowid, oid, _rowid_, id, workspace_id, user_id, type, created_at, parent_call, forked_from,
    forked_at_seq ON sessions
BEGIN SELECT RAISE(ABORT, 'what a session is never changes (spec 2.1)'); END;
CREATE TRIGGER sessions_state BEFORE UPDATE OF state ON sessions WHEN OLD.state = 'CLOSED' AND NEW.state <> 'CLOSED' AND OLD.type <> 'CHAT'
BEGIN SELECT RAISE(ABORT, 'a closed session is reopened only if it is a CHAT (decision 6)'); END;
-- A round ends before its session is freed.
CREATE TRIGGER sessions_rest BEFORE UPDATE OF state ON sessions
WHEN (NEW.state = 'IDLE' OR NEW.state = 'CLOSED') AND EXISTS (SELECT 1 FROM rounds WHERE session = OLD.n AND state <> 'ENDED')
BEGIN SELECT RAISE(ABORT, 'a round of this session is open, so it is neither IDLE nor CLOSED (decision 12)'); END;
CREATE TRIGGER sessions_come_once BEFORE INSERT ON sessions
WHEN EXISTS (SELECT 1 FROM sessions WHERE n = NEW.n) OR EXISTS (SELECT 1 FROM sessions WHERE id = NEW.id)
  OR EXISTS (SELECT 1 FROM sessions WHERE parent_call = NEW.parent_call)
BEGIN SELECT RAISE(ABORT, 'a session comes once and is never replaced (decision 15)'); END;
CREATE TRIGGER sessions_never_go BEFORE DELETE ON sessions BEGIN SELECT RAISE(ABORT, 'sessions are never deleted: a tombstone stays (decision 15)'); END;
-- +goose StatementEnd

CREATE TABLE read_marks (
    user_id  BLOB    NOT NULL REFERENCES users (id),
    session  INTEGER NOT NULL REFERENCES sessions (n),
    read_seq INTEGER NOT NULL CHECK (read_seq >= 0),
    PRIMARY KEY (user_id, session)
) STRICT, WITHOUT ROWID;

CREATE TABLE rounds (
    id                 BLOB PRIMARY KEY CHECK (length(id) = 16),
    session            INTEGER NOT NULL REFERENCES sessions (n),
    number             INTEGER NOT NULL CHECK (number > 0),
    reason             TEXT    NOT NULL CHECK (reason = 'USER_MESSAGE' OR reason = 'MANUAL_TRIGGER' OR reason = 'AUTOMATION_START' OR
                                 reason = 'TASK_CALLBACK'),
    state              TEXT    NOT NULL CHECK (state = 'RUNNING' OR state = 'WAITING' OR state = 'ENDED'),
    end_reason         TEXT CHECK (end_reason IS NULL OR end_reason = 'ANSWERED' OR end_reason = 'COMPLETED' OR end_reason = 'LIMIT' OR
                                 end_reason = 'EARLY_STOP' OR end_reason = 'DENIED' OR end_reason = 'INTERRUPTED' OR
                                 end_reason = 'STOPPED' OR end_reason = 'PROVIDER_ERROR' OR end_reason = 'NO_PROGRESS' OR
                                 end_reason = 'WATCHDOG' OR end_reason = 'CLIENT_TOOLS'),
    end_note           TEXT    NOT NULL DEFAULT '',
    phase              TEXT    NOT NULL CHECK (phase = 'MODEL' OR phase = 'CALLS' OR phase = 'END'),
    exchange           INTEGER NOT NULL CHECK (exchange > 0),
    total              INTEGER NOT NULL DEFAULT 0,
    queries            INTEGER NOT NULL DEFAULT 0,
    retries            INTEGER NOT NULL DEFAULT 0,
    format_errors      INTEGER NOT NULL DEFAULT 0,
    resumes            INTEGER NOT NULL DEFAULT 0,
    limits             TEXT    NOT NULL,
    stop_request       TEXT CHECK (stop_request IS NULL OR stop_request = 'INTERRUPT' OR stop_request = 'PAUSE' OR stop_request = 'STOP'),
    epoch              INTEGER NOT NULL,
    trace_id           TEXT    NOT NULL,
    agent              TEXT    NOT NULL,
    agent_pin          BLOB CHECK (agent_pin IS NULL OR length(agent_pin) = 32),
    provider           TEXT    NOT NULL,
    model              TEXT    NOT NULL,
    dialect            TEXT    NOT NULL DEFAULT 'native' CHECK (dialect IN ('native', 'json')),
    policy             TEXT,
    trigger_message_id BLOB,
    inherits_round     BLOB REFERENCES rounds (id), -- whose totals count on (decision 2)
    level1             BLOB REFERENCES blobs (hash),
    level2             BLOB REFERENCES blobs (hash),
    deadline           INTEGER,
    tokens             INTEGER NOT NULL DEFAULT 0,
    reserved_microusd  INTEGER NOT NULL DEFAULT 0 CHECK (reserved_microusd >= 0),
    spent_microusd     INTEGER NOT NULL DEFAULT 0 CHECK (spent_microusd >= 0),
    started_at         INTEGER NOT NULL,
    ended_at           INTEGER,
    UNIQUE (session, number),
    CHECK ((state = 'ENDED') = (end_reason IS NOT NULL)),
    CHECK ((state = 'ENDED') = (phase = 'END')),
    CHECK ((state = 'ENDED') = (ended_at IS NOT NULL))
) STRICT, WITHOUT ROWID;

-- One round at a time per session (spec 3).
CREATE UNIQUE INDEX rounds_one_open ON rounds (session) WHERE state <> 'ENDED';

-- +goose StatementBegin
CREATE TRIGGER rounds_forward BEFORE UPDATE ON rounds
WHEN OLD.state = 'ENDED' OR NEW.total < OLD.total OR NEW.epoch < OLD.epoch OR NEW.tokens < OLD.tokens OR NEW.spent_microusd < OLD.spent_microusd
BEGIN SELECT RAISE(ABORT, 'a round ends once, its total, its epoch and what it spent only rise (invariants 8, 9 and 11, decision 41)'); END;
-- Levels 1 and 2 are not here, they are rebuilt at each wake (decision 53); nor provider and model, there are fallbacks (spec 6).
CREATE TRIGGER rounds_identity BEFORE UPDATE OF id, session, number, reason, limits, trace_id, agent, agent_pin, policy, trigger_message_id,
    inherits_round, started_at ON rounds
WHEN NEW.id <> OLD.id OR NEW.session <> OLD.session OR NEW.number <> OLD.number OR NEW.reason <> OLD.reason OR NEW.limits <> OLD.limits
  OR NEW.trace_id <> OLD.trace_id OR NEW.agent <> OLD.agent OR NEW.started_at <> OLD.started_at
  OR (OLD.agent_pin IS NOT NULL AND NEW.agent_pin IS NOT OLD.agent_pin) OR (OLD.policy IS NOT NULL AND NEW.policy IS NOT OLD.policy)
  OR (OLD.trigger_message_id IS NOT NULL AND NEW.trigger_message_id IS NOT OLD.trigger_message_id)
  OR (OLD.inherits_round IS NOT NULL AND NEW.inherits_round IS NOT OLD.inherits_round)
BEGIN SELECT RAISE(ABORT, 'what a round was started with never changes (decision 2, spec 3)'); END;
CREATE TRIGGER rounds_come_once BEFORE INSERT ON rounds
WHEN EXISTS (SELECT 1 FROM rounds WHERE id = NEW.id) OR EXISTS (SELECT 1 FROM rounds WHERE session = NEW.session AND number = NEW.number)
  OR (NEW.state <> 'ENDED' AND EXISTS (SELECT 1 FROM rounds WHERE session = NEW.session AND state <> 'ENDED'))
BEGIN SELECT RAISE(ABORT, 'a round comes once, is never replaced, and one at a time is open in a session (spec 3)'); END;
CREATE TRIGGER rounds_never_go BEFORE DELETE ON rounds BEGIN SELECT RAISE(ABORT, 'rounds are never deleted (decision 15)'); END;
-- +goose StatementEnd

-- One model call with its batch of calls. A row describes its latest attempt; earlier ones move to attempts (decision 28).
CREATE TABLE exchanges (
    round_id          BLOB    NOT NULL REFERENCES rounds (id),
    number            INTEGER NOT NULL CHECK (number > 0),
    purpose           TEXT    NOT NULL DEFAULT 'step' CHECK (purpose = 'step' OR purpose = 'summary' OR purpose = 'check'),
    reason            TEXT    NOT NULL,
    state             TEXT    NOT NULL CHECK (state = 'OPEN' OR state = 'REPLIED' OR state = 'FAILED'),
    attempt           INTEGER NOT NULL DEFAULT 1 CHECK (attempt > 0),
    provider          TEXT    NOT NULL,
    model             TEXT    NOT NULL,
    first_seq         INTEGER,
    last_seq          INTEGER,
    request           BLOB CHECK (request IS NULL OR length(request) = 32),
    reply_id          BLOB,
    input_tokens      INTEGER NOT NULL DEFAULT 0,
    output_tokens     INTEGER NOT NULL DEFAULT 0,
    cache_write_tokens INTEGER NOT NULL DEFAULT 0,
    cache_read_tokens INTEGER NOT NULL DEFAULT 0,
    reasoning_tokens  INTEGER NOT NULL DEFAULT 0,
    reserved_microusd INTEGER NOT NULL DEFAULT 0 CHECK (reserved_microusd >= 0),
    cost_microusd     INTEGER CHECK (cost_microusd >= 0), -- NULL: the price is not known
    overrun_microusd  INTEGER NOT NULL DEFAULT 0 CHECK (overrun_microusd >= 0),
    stop_reason       TEXT    NOT NULL DEFAULT '',
    error             TEXT    NOT NULL DEFAULT '',
    opened_at         INTEGER NOT NULL,
    first_byte_us     INTEGER,
    model_us          INTEGER,
    replied_at        INTEGER,
    PRIMARY KEY (round_id, number),
    CHECK ((state = 'REPLIED') = (reply_id IS NOT NULL))
) STRICT;

CREATE TABLE attempts (
    round_id          BLOB    NOT NULL,
    exchange          INTEGER NOT NULL,
    number            INTEGER NOT NULL CHECK (number > 0),
    provider          TEXT    NOT NULL,
    model             TEXT    NOT NULL,
    code              TEXT    NOT NULL,
    error             TEXT    NOT NULL,
    partial           TEXT    NOT NULL DEFAULT '',
    input_tokens      INTEGER NOT NULL DEFAULT 0,
    output_tokens     INTEGER NOT NULL DEFAULT 0,
    cache_write_tokens INTEGER NOT NULL DEFAULT 0,
    cache_read_tokens INTEGER NOT NULL DEFAULT 0,
    reasoning_tokens  INTEGER NOT NULL DEFAULT 0,
    reserved_microusd INTEGER NOT NULL DEFAULT 0 CHECK (reserved_microusd >= 0),
    cost_microusd     INTEGER CHECK (cost_microusd >= 0),
    overrun_microusd  INTEGER NOT NULL DEFAULT 0 CHECK (overrun_microusd >= 0),
    opened_at         INTEGER NOT NULL,
    ended_at          INTEGER NOT NULL,
    model_us          INTEGER,
    PRIMARY KEY (round_id, exchange, number),
    FOREIGN KEY (round_id, exchange) REFERENCES exchanges (round_id, number)
) STRICT, WITHOUT ROWID;

-- +goose StatementBegin
CREATE TRIGGER exchanges_final BEFORE UPDATE ON exchanges WHEN OLD.state <> 'OPEN' OR NEW.attempt < OLD.attempt
BEGIN SELECT RAISE(ABORT, 'a model call has one end, its attempts only rise (decision 28)'); END;
CREATE TRIGGER exchanges_identity BEFORE UPDATE OF rowid, oid, _rowid_, round_id, number, purpose, reason ON exchanges
BEGIN SELECT RAISE(ABORT, 'what a model call is for never changes (decision 14)'); END;
-- NEW.rowid is -1 where the statement names none.
CREATE TRIGGER exchanges_come_once BEFORE INSERT ON exchanges
WHEN EXISTS (SELECT 1 FROM exchanges WHERE round_id = NEW.round_id AND number = NEW.number) OR EXISTS (SELECT 1 FROM exchanges WHERE rowid = NEW.rowid)
BEGIN SELECT RAISE(ABORT, 'a model call comes once and is never replaced (decision 14)'); END;
CREATE TRIGGER exchanges_never_go BEFORE DELETE ON exchanges BEGIN SELECT RAISE(ABORT, 'model calls are never deleted (decision 15)'); END;
CREATE TRIGGER attempts_come_once BEFORE INSERT ON attempts
WHEN EXISTS (SELECT 1 FROM attempts WHERE round_id = NEW.round_id AND exchange = NEW.exchange AND number = NEW.number)
BEGIN SELECT RAISE(ABORT, 'an attempt comes once and is never replaced (decision 28)'); END;
CREATE TRIGGER attempts_never_change BEFORE UPDATE ON attempts BEGIN SELECT RAISE(ABORT, 'attempts never change (decision 28)'); END;
CREATE TRIGGER attempts_never_go BEFORE DELETE ON attempts BEGIN SELECT RAISE(ABORT, 'attempts are never deleted (decision 28)'); END;
-- +goose StatementEnd

-- A message's content is the body of its log event at (session, seq), or at pending_seq until it is admitted (decision 10).
-- There is one content with one variant; two cannot be filled.
CREATE TABLE messages (
    id            BLOB PRIMARY KEY CHECK (length(id) = 16),
    session       INTEGER NOT NULL REFERENCES sessions (n),
    seq           INTEGER,
    pending_seq   INTEGER,
    sender        TEXT    NOT NULL CHECK (sender = 'USER' OR sender = 'AI' OR sender = 'SYSTEM'),
    variant       TEXT    NOT NULL CHECK (variant = 'rich' OR variant = 'text' OR variant = 'ai' OR variant = 'system'),
    system_type   TEXT CHECK (system_type IS NULL OR system_type = 'DATA_ADDED' OR system_type = 'ACTIONS_EXECUTED' OR
                                 system_type = 'LIMIT_REACHED' OR system_type = 'FORMAT_ERROR' OR system_type = 'COMPLETE_REFUSED' OR
                                 system_type = 'VALIDATION_CANCELLED' OR system_type = 'COMMUNICATION_CANCELLED' OR
                                 system_type = 'TASK_RESULT' OR system_type = 'CONTEXT_SUMMARY' OR system_type = 'UNDONE' OR
                                 system_type = 'NETWORK_ERROR' OR system_type = 'SESSION_TIMEOUT'),
    author_kind   TEXT    NOT NULL CHECK (author_kind = 'user' OR author_kind = 'agent' OR author_kind = 'component' OR author_kind = 'task'),
    author_id     TEXT    NOT NULL,
    client_id     TEXT,
    round_id      BLOB,
    exchange      INTEGER,
    calls         INTEGER NOT NULL DEFAULT 0 CHECK (calls >= 0), -- how many call rows name this message
    excluded      INTEGER NOT NULL DEFAULT 0 CHECK (excluded IN (0, 1)),
    superseded    INTEGER NOT NULL DEFAULT 0 CHECK (superseded IN (0, 1)),
    withdrawn_at  INTEGER,
    UNIQUE (session, seq),
    CHECK (seq IS NOT NULL OR pending_seq IS NOT NULL),
    CHECK ((variant = 'system') = (sender = 'SYSTEM')),
    CHECK (variant <> 'rich' OR sender = 'USER'),
    CHECK (variant <> 'ai' OR sender = 'AI'),
    CHECK ((variant = 'system') = (system_type IS NOT NULL)),
    CHECK (system_type NOT IN ('NETWORK_ERROR', 'SESSION_TIMEOUT') OR excluded = 1),
    CHECK (calls = 0 OR variant IN ('ai', 'rich'))
) STRICT, WITHOUT ROWID;

CREATE UNIQUE INDEX messages_client_id ON messages (session, client_id) WHERE client_id IS NOT NULL;

CREATE TABLE attachments (
    message_id BLOB    NOT NULL REFERENCES messages (id),
    ordinal    INTEGER NOT NULL CHECK (ordinal >= 0),
    blob       BLOB    NOT NULL REFERENCES blobs (hash),
    media_type TEXT    NOT NULL,
    name       TEXT    NOT NULL,
    size       INTEGER NOT NULL CHECK (size >= 0),
    PRIMARY KEY (message_id, ordinal)
) STRICT, WITHOUT ROWID;

-- +goose StatementBegin
CREATE TRIGGER attachments_come_once BEFORE INSERT ON attachments
WHEN EXISTS (SELECT 1 FROM attachments WHERE message_id = NEW.message_id AND ordinal = NEW.ordinal)
BEGIN SELECT RAISE(ABORT, 'an attachment comes once and is never replaced (decision 18)'); END;
CREATE TRIGGER attachments_never_change BEFORE UPDATE ON attachments BEGIN SELECT RAISE(ABORT, 'a stored message never changes its content'); END;
CREATE TRIGGER attachments_never_go BEFORE DELETE ON attachments BEGIN SELECT RAISE(ABORT, 'attachments are never deleted: their blob''s data is erased (decision 15)'); END;
-- +goose StatementEnd

CREATE TABLE calls (
    id               BLOB PRIMARY KEY CHECK (length(id) = 16),
    session          INTEGER NOT NULL, -- its message's
    round_id         BLOB    NOT NULL REFERENCES rounds (id),
    exchange         INTEGER NOT NULL,
    ordinal          INTEGER NOT NULL CHECK (ordinal >= 0),
    message_id       BLOB    NOT NULL REFERENCES messages (id) DEFERRABLE INITIALLY DEFERRED,
    origin           TEXT    NOT NULL CHECK (origin = 'MODEL' OR origin = 'USER' OR origin = 'API' OR origin = 'CLIENT'),
    tool             TEXT    NOT NULL,
    provider_call_id TEXT,
    kind             TEXT    NOT NULL CHECK (kind IN ('query', 'action')),
    class            TEXT    NOT NULL CHECK (class = 'read' OR class = 'keyed' OR class = 'verifiable' OR class = 'once' OR class = 'resumable'),
    signature        BLOB    NOT NULL CHECK (length(signature) = 32),
    definition       BLOB CHECK (definition IS NULL OR length(definition) = 32),
    arguments        TEXT    NOT NULL, -- what the model wrote, verbatim
    executed         TEXT,             -- what ran instead, where a person edited it
    ask              INTEGER NOT NULL DEFAULT 0 CHECK (ask IN (0, 1)), -- the model itself asked for an approval (decision 40)
    state            TEXT    NOT NULL CHECK (state = 'PROPOSED' OR state = 'AWAITING_APPROVAL' OR state = 'APPROVED' OR
                                 state = 'STARTED' OR state = 'SUCCEEDED' OR state = 'FAILED' OR state = 'UNKNOWN' OR state = 'NOT_RUN'),
    code             TEXT CHECK (code IS NULL OR code = 'DENIED' OR code = 'EXPIRED' OR code = 'DUPLICATE_IN_BATCH' OR
                                 code = 'ANTI_LOOP' OR code = 'CACHED' OR code = 'OVER_LIMIT' OR code = 'INTERRUPTED' OR
                                 code = 'SUPERSEDED' OR code = 'OUT_OF_SCOPE' OR code = 'INVALID' OR code = 'REPEATED_FAILURE'),
    intent           TEXT,
    result           TEXT,
    error            TEXT,
    result_blob      BLOB REFERENCES blobs (hash),
    duplicate_of     BLOB, -- a call of the same message; no foreign key: checking one would scan the table at every insert
    attempts         INTEGER NOT NULL DEFAULT 0,
    recovered        INTEGER NOT NULL DEFAULT 0 CHECK (recovered IN (0, 1)),
    duration_us      INTEGER,
    proposed_at      INTEGER NOT NULL,
    started_at       INTEGER,
    settled_at       INTEGER,
    resolved_at      INTEGER, -- a person settled an UNKNOWN (decision 5)
    resolved_by      TEXT,
    resolved_as      TEXT CHECK (resolved_as IN ('happened', 'did_not_happen')),
    resolve_note     TEXT,
    UNIQUE (message_id, ordinal),
    CHECK (kind <> 'query' OR class = 'read'),
    CHECK (origin <> 'USER' OR kind = 'query'),          -- people's enrichments are queries only (spec 4.1)
    CHECK ((state = 'NOT_RUN') = (code IS NOT NULL)),
    CHECK ((settled_at IS NOT NULL) = ((state = 'SUCCEEDED' OR state = 'FAILED' OR state = 'UNKNOWN' OR state = 'NOT_RUN'))),
    CHECK (settled_at IS NULL OR result IS NOT NULL OR error IS NOT NULL),
    CHECK (state NOT IN ('STARTED', 'UNKNOWN') OR started_at IS NOT NULL),
    CHECK (state <> 'SUCCEEDED' OR kind = 'query' OR started_at IS NOT NULL), -- no effect without an intent (invariant 2)
    CHECK (state <> 'UNKNOWN' OR kind = 'action')
) STRICT, WITHOUT ROWID;

-- The one trigger that every change of a call passes: exactly one result (invariant 4), UNKNOWN ends only by evidence (invariant 5),
-- and no step of the state list is left out (decision 3): an action succeeds only by way of STARTED, a query has no such commit
-- (decision 4).
-- +goose StatementBegin
CREATE TRIGGER calls_order BEFORE UPDATE ON calls
WHEN NOT CASE OLD.state
    WHEN 'PROPOSED' THEN (OLD.kind = 'query' OR (NEW.state <> 'SUCCEEDED' AND NEW.state <> 'UNKNOWN'))
    WHEN 'STARTED' THEN (NEW.state <> 'PROPOSED' AND NEW.state <> 'AWAITING_APPROVAL' AND NEW.state <> 'APPROVED')
    WHEN 'AWAITING_APPROVAL' THEN (NEW.state = 'AWAITING_APPROVAL' OR NEW.state = 'APPROVED' OR NEW.state = 'NOT_RUN')
    WHEN 'APPROVED' THEN NEW.state <> 'PROPOSED' AND (OLD.kind = 'query' OR (NEW.state <> 'SUCCEEDED' AND NEW.state <> 'UNKNOWN'))
    WHEN 'UNKNOWN' THEN (NEW.state = 'SUCCEEDED' OR NEW.state = 'FAILED') AND OLD.resolved_at IS NULL AND NEW.resolved_at IS NOT NULL
    ELSE 0
END
BEGIN SELECT RAISE(ABORT, 'no such change of a call: it has exactly one result (decision 3, invariants 4 and 5)'); END;
-- UNKNOWN ends in a statement that names resolved_at, see above: what else such a one may not do is looked at here, apart.
CREATE TRIGGER calls_resolved BEFORE UPDATE OF resolved_at, resolved_by, resolved_as, resolve_note ON calls
WHEN OLD.state <> 'UNKNOWN' OR (NEW.state = 'SUCCEEDED') IS NOT (NEW.resolved_as = 'happened')
  OR NEW.executed IS NOT OLD.executed OR NEW.code IS NOT OLD.code OR NEW.intent IS NOT OLD.intent OR NEW.result IS NOT OLD.result
  OR NEW.error IS NOT OLD.error OR NEW.result_blob IS NOT OLD.result_blob OR NEW.duplicate_of IS NOT OLD.duplicate_of
  OR NEW.attempts <> OLD.attempts OR NEW.recovered <> OLD.recovered OR NEW.duration_us IS NOT OLD.duration_us
  OR NEW.settled_at IS NOT OLD.settled_at
BEGIN SELECT RAISE(ABORT, 'a person resolves only an UNKNOWN call, and changes nothing else of it (decision 5)'); END;
CREATE TRIGGER calls_started_at BEFORE UPDATE OF started_at ON calls WHEN OLD.started_at IS NOT NULL AND NEW.started_at IS NOT OLD.started_at
BEGIN SELECT RAISE(ABORT, 'when a call was started never changes (invariant 2)'); END;
CREATE TRIGGER calls_identity BEFORE UPDATE OF id, session, round_id, exchange, message_id, ordinal, origin, tool, arguments, signature, definition,
    class, kind, ask, provider_call_id, proposed_at ON calls
BEGIN SELECT RAISE(ABORT, 'what was proposed never changes (decision 7)'); END;
CREATE TRIGGER calls_come_once BEFORE INSERT ON calls
WHEN NEW.state = 'SUCCEEDED' OR NEW.state = 'UNKNOWN' OR NEW.state = 'APPROVED' OR NEW.resolved_at IS NOT NULL
  OR EXISTS (SELECT 1 FROM calls WHERE id = NEW.id) OR EXISTS (SELECT 1 FROM messages WHERE id = NEW.message_id)
BEGIN SELECT RAISE(ABORT, 'a call comes once, with its message and without the result of a run, and is never replaced (decisions 3 and 7)'); END;
CREATE TRIGGER calls_never_go BEFORE DELETE ON calls BEGIN SELECT RAISE(ABORT, 'calls are never deleted (decision 15)'); END;
-- +goose StatementEnd

-- A reply and its calls come in one transaction: rows first, then the message that counts them (spec 2.3, decision 7).
-- +goose StatementBegin
CREATE TRIGGER messages_come_once BEFORE INSERT ON messages
WHEN (SELECT count(*) FROM calls WHERE message_id = NEW.id) <> NEW.calls
  OR EXISTS (SELECT 1 FROM messages WHERE id = NEW.id) OR EXISTS (SELECT 1 FROM messages WHERE session = NEW.session AND seq = NEW.seq)
  OR (NEW.client_id IS NOT NULL AND EXISTS (SELECT 1 FROM messages WHERE session = NEW.session AND client_id = NEW.client_id))
BEGIN SELECT CASE WHEN (SELECT count(*) FROM calls WHERE message_id = NEW.id) <> NEW.calls
    THEN RAISE(ABORT, 'a message and its calls do not agree (decision 7)')
    ELSE RAISE(ABORT, 'a message comes once and is never replaced (decision 15)') END; END;
CREATE TRIGGER messages_content_fixed BEFORE UPDATE OF id, session, sender, variant, system_type, author_kind, author_id, client_id, calls ON messages
BEGIN SELECT RAISE(ABORT, 'a stored message never changes its content'); END;
-- A pending message gets its place, its round and its exchange when it is admitted (decision 10), once.
CREATE TRIGGER messages_place_fixed BEFORE UPDATE OF seq, pending_seq, round_id, exchange ON messages
WHEN (OLD.seq IS NOT NULL AND NEW.seq IS NOT OLD.seq) OR (OLD.pending_seq IS NOT NULL AND NEW.pending_seq IS NOT OLD.pending_seq)
  OR (OLD.round_id IS NOT NULL AND NEW.round_id IS NOT OLD.round_id) OR (OLD.exchange <> 0 AND NEW.exchange IS NOT OLD.exchange)
  OR (OLD.seq IS NULL AND EXISTS (SELECT 1 FROM messages WHERE session = OLD.session AND seq = NEW.seq))
BEGIN SELECT RAISE(ABORT, 'a stored message never changes its place in the log (decision 10)'); END;
CREATE TRIGGER messages_never_go BEFORE DELETE ON messages BEGIN SELECT RAISE(ABORT, 'messages are never deleted: their bodies are erased (decision 15)'); END;
-- +goose StatementEnd

CREATE TABLE waits (
    id          BLOB PRIMARY KEY CHECK (length(id) = 16),
    session     INTEGER NOT NULL REFERENCES sessions (n),
    round_id    BLOB    NOT NULL REFERENCES rounds (id),
    kind        TEXT    NOT NULL CHECK (kind = 'APPROVAL' OR kind = 'QUESTION' OR kind = 'TASK' OR kind = 'NETWORK' OR kind = 'CHILD'),
    object_id   BLOB,
    owner_id    BLOB    NOT NULL,
    deadline    INTEGER,
    fallback    TEXT,
    state       TEXT    NOT NULL CHECK (state = 'OPEN' OR state = 'RESOLVED' OR state = 'EXPIRED' OR state = 'WITHDRAWN'),
    resolution  TEXT,
    resolved_by TEXT,
    created_at  INTEGER NOT NULL,
    resolved_at INTEGER,
    CHECK ((state = 'OPEN') = (resolved_at IS NULL)),
    CHECK (kind IN ('TASK', 'CHILD') OR deadline IS NOT NULL OR kind = 'NETWORK') -- a wait has an owner and a deadline (invariant 11)
) STRICT, WITHOUT ROWID;

CREATE INDEX waits_open ON waits (deadline) WHERE state = 'OPEN';
CREATE INDEX waits_by_round ON waits (round_id);

-- +goose StatementBegin
CREATE TRIGGER waits_resolve_once BEFORE UPDATE ON waits WHEN OLD.state <> 'OPEN'
BEGIN SELECT RAISE(ABORT, 'a wait is resolved once (spec 4.4)'); END;
CREATE TRIGGER waits_identity BEFORE UPDATE OF id, session, round_id, kind, object_id, owner_id, created_at ON waits
BEGIN SELECT RAISE(ABORT, 'what is waited for never changes (decision 12)'); END;
CREATE TRIGGER waits_come_once BEFORE INSERT ON waits WHEN EXISTS (SELECT 1 FROM waits WHERE id = NEW.id)
BEGIN SELECT RAISE(ABORT, 'a wait comes once and is never replaced (decision 12)'); END;
CREATE TRIGGER waits_never_go BEFORE DELETE ON waits BEGIN SELECT RAISE(ABORT, 'waits are never deleted (decision 15)'); END;
-- +goose StatementEnd
