-- The core data model (spec chapter 2). Ids are 16 bytes (UUIDv7), hashes 32 bytes, *_at are microseconds
-- since 1970 UTC, *_us microseconds, *_microusd millionths of a US dollar, flags 0 or 1. Every table is STRICT.
-- Versions below this one belong to programs that were never released; their databases are refused.

-- +goose Up
-- +goose StatementBegin
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

-- An append-only log: one for each session, workspace and user (decision 15). Its row allocates sequence
-- numbers and holds the head of the hash chain.
CREATE TABLE chains (
    n        INTEGER PRIMARY KEY,
    kind     TEXT    NOT NULL CHECK (kind IN ('session', 'workspace', 'user')),
    owner_id BLOB    NOT NULL UNIQUE CHECK (length(owner_id) = 16),
    head     INTEGER NOT NULL DEFAULT 0,
    mac      BLOB    NOT NULL CHECK (length(mac) = 32),
    head_at  INTEGER NOT NULL
) STRICT;
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
CREATE TRIGGER events_come_once BEFORE INSERT ON events
WHEN NEW.n <= (SELECT max(n) FROM events) OR NEW.seq <> (SELECT coalesce(max(seq), 0) + 1 FROM events WHERE chain = NEW.chain)
BEGIN SELECT RAISE(ABORT, 'a log row comes once, as the next of its chain: the log has no gap (decision 15, invariant 6)'); END;
CREATE TRIGGER events_never_change BEFORE UPDATE ON events BEGIN SELECT RAISE(ABORT, 'log rows never change (decision 15)'); END;
CREATE TRIGGER events_never_go BEFORE DELETE ON events BEGIN SELECT RAISE(ABORT, 'log rows are never deleted (decision 15)'); END;

-- Bodies live apart from the log, because they may be erased and log rows may not (decision 15).
CREATE TABLE event_bodies (
    n    INTEGER PRIMARY KEY, -- its event's
    body TEXT NOT NULL
) STRICT;
CREATE TRIGGER bodies_come_once BEFORE INSERT ON event_bodies WHEN NEW.n <= (SELECT max(n) FROM event_bodies)
BEGIN SELECT RAISE(ABORT, 'a body comes once, with its log row (decision 15)'); END;
CREATE TRIGGER bodies_never_change BEFORE UPDATE ON event_bodies BEGIN SELECT RAISE(ABORT, 'bodies are erased, never changed (decision 15)'); END;
CREATE TRIGGER bodies_go_with_a_word BEFORE DELETE ON event_bodies
WHEN (SELECT e.type FROM events e WHERE e.chain = (SELECT chain FROM events WHERE n = OLD.n) ORDER BY e.seq DESC LIMIT 1) IS NOT 'erased'
BEGIN SELECT RAISE(ABORT, 'a body is erased only with a row in its log that says so (decision 15)'); END;

CREATE TABLE blobs (
    hash       BLOB PRIMARY KEY CHECK (length(hash) = 32),
    size       INTEGER NOT NULL CHECK (size >= 0),
    data       BLOB, -- NULL: erased, or kept as a file of that name in the data directory
    in_file    INTEGER NOT NULL DEFAULT 0 CHECK (in_file IN (0, 1)),
    created_at INTEGER NOT NULL,
    noted_at   INTEGER NOT NULL DEFAULT 0 -- when somebody was last told that it is there
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
                                 state = 'WAITING_PROVIDER' OR state = 'WAITING_TASK' OR state = 'CLOSED'),
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
    token_id           BLOB CHECK (token_id IS NULL OR length(token_id) = 16), -- which token began it
    CHECK (end_reason IS NULL OR state = 'CLOSED'),
    CHECK ((closed_at IS NOT NULL) = (state = 'CLOSED')),
    CHECK ((forked_from IS NULL) = (forked_at_seq IS NULL)),
    CHECK ((parent_call IS NOT NULL) = (type = 'SUBAGENT')),
    CHECK (type <> 'SEED' OR state IN ('IDLE', 'CLOSED'))
) STRICT;
CREATE INDEX sessions_by_workspace ON sessions (workspace_id, n);
CREATE INDEX sessions_forks ON sessions (forked_from) WHERE forked_from IS NOT NULL;
CREATE INDEX sessions_of_clients ON sessions (n) WHERE origin = 'api' AND deleted_at IS NULL;

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
CREATE UNIQUE INDEX rounds_one_open ON rounds (session) WHERE state <> 'ENDED';
CREATE INDEX rounds_reserved ON rounds (session, reserved_microusd) WHERE reserved_microusd > 0;

-- A model call with its batch of calls. A row describes its latest attempt; earlier ones move to attempts
-- (decision 28).
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
    head              BLOB REFERENCES blobs (hash), -- all of a request but its thread; NULL where it is that of the exchange before
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
    first_seq         INTEGER,
    last_seq          INTEGER,
    request           BLOB CHECK (request IS NULL OR length(request) = 32),
    head              BLOB REFERENCES blobs (hash),
    purpose           TEXT NOT NULL DEFAULT 'step' CHECK (purpose = 'step' OR purpose = 'summary' OR purpose = 'check'),
    PRIMARY KEY (round_id, exchange, number),
    FOREIGN KEY (round_id, exchange) REFERENCES exchanges (round_id, number)
) STRICT, WITHOUT ROWID;

-- A message's content is the body of its event at (session, seq), or at pending_seq until it is admitted
-- (decision 10).
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
    taken_back    INTEGER NOT NULL DEFAULT 0, -- by its person, while it waited for its turn
    UNIQUE (session, seq),
    CHECK (seq IS NOT NULL OR pending_seq IS NOT NULL),
    CHECK ((variant = 'system') = (sender = 'SYSTEM')),
    CHECK (variant <> 'rich' OR sender = 'USER'),
    CHECK (variant <> 'ai' OR sender = 'AI'),
    CHECK ((variant = 'system') = (system_type IS NOT NULL)),
    CHECK (system_type NOT IN ('NETWORK_ERROR', 'SESSION_TIMEOUT') OR excluded = 1),
    CHECK (calls = 0 OR variant IN ('ai', 'rich') OR coalesce(system_type, '') = 'DATA_ADDED')
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
CREATE INDEX attachments_by_blob ON attachments (blob);

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
    copy_of          BLOB CHECK (copy_of IS NULL OR length(copy_of) = 16), -- the call that was made, where the row is its copy in a fork
    changed          TEXT CHECK (changed IS NULL OR (kind = 'action' AND started_at IS NOT NULL AND settled_at IS NOT NULL)), -- files
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
CREATE INDEX calls_copies ON calls (copy_of) WHERE copy_of IS NOT NULL;
CREATE INDEX calls_whole ON calls (result_blob) WHERE result_blob IS NOT NULL;
CREATE INDEX calls_of_clients ON calls (session) WHERE origin = 'CLIENT' AND settled_at IS NULL;

CREATE TABLE waits (
    id          BLOB PRIMARY KEY CHECK (length(id) = 16),
    session     INTEGER NOT NULL REFERENCES sessions (n),
    round_id    BLOB    NOT NULL REFERENCES rounds (id),
    kind        TEXT    NOT NULL CHECK (kind = 'APPROVAL' OR kind = 'QUESTION' OR kind = 'TASK' OR kind = 'NETWORK' OR kind = 'PROVIDER' OR kind = 'CHILD'),
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
CREATE INDEX waits_by_object ON waits (object_id);

CREATE TABLE approvals (
    id         BLOB PRIMARY KEY CHECK (length(id) = 16),
    session    INTEGER NOT NULL REFERENCES sessions (n),
    round_id   BLOB    NOT NULL REFERENCES rounds (id),
    exchange   INTEGER NOT NULL,
    state      TEXT    NOT NULL CHECK (state = 'OPEN' OR state = 'DECIDED' OR state = 'EXPIRED' OR state = 'WITHDRAWN'),
    created_at INTEGER NOT NULL,
    expires_at INTEGER NOT NULL,
    closed_at  INTEGER,
    seq        INTEGER NOT NULL DEFAULT 0 CHECK (seq >= 0), -- of the event that asked
    CHECK ((state = 'OPEN') = (closed_at IS NULL))
) STRICT, WITHOUT ROWID;
CREATE INDEX approvals_by_round ON approvals (round_id);
CREATE INDEX approvals_open ON approvals (created_at) WHERE state = 'OPEN';

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
    expires_at    INTEGER CHECK (expires_at IS NULL OR answer = 'allow_session' OR answer = 'allow_always'),
    PRIMARY KEY (approval_id, call_id),
    CHECK ((answer IS NULL) = (decided_at IS NULL)),
    CHECK ((answer IS NULL) = (decided_by IS NULL)),
    CHECK (edited IS NULL OR answer <> 'deny')
) STRICT, WITHOUT ROWID;
CREATE INDEX reviews_by_call ON reviews (call_id);

CREATE TABLE questions (
    wait_id BLOB PRIMARY KEY REFERENCES waits (id),
    call_id BLOB NOT NULL REFERENCES calls (id),
    module  TEXT NOT NULL,
    request TEXT -- the answer's own id
) STRICT, WITHOUT ROWID;

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
    revoked_at   INTEGER,
    revoked_by   TEXT CHECK ((revoked_by IS NULL) = (revoked_at IS NULL))
) STRICT, WITHOUT ROWID;
CREATE INDEX rules_by_workspace ON rules (workspace_id, tool);

-- A message that came while its session was busy; round is what its round would be started with.
CREATE TABLE pending (
    n          INTEGER PRIMARY KEY, -- the order of arrival
    message_id BLOB    NOT NULL UNIQUE REFERENCES messages (id),
    session    INTEGER NOT NULL REFERENCES sessions (n),
    mode       TEXT    NOT NULL CHECK (mode = 'queue' OR mode = 'steer'),
    round      TEXT    NOT NULL
) STRICT;
CREATE INDEX pending_by_session ON pending (session);

-- An undo is intended before any file changes, and done when the outcome of each file is known
-- (decision 16).
CREATE TABLE undos (
    id           BLOB PRIMARY KEY CHECK (length(id) = 16), -- the request's own: saying it again adds nothing
    session      INTEGER NOT NULL REFERENCES sessions (n),
    workspace_id BLOB    NOT NULL REFERENCES workspaces (id),
    round_id     BLOB    NOT NULL REFERENCES rounds (id),  -- whose changes are meant
    undoes       BLOB    REFERENCES undos (id),            -- the undo that it takes back; NULL: the round's own changes
    state        TEXT    NOT NULL CHECK (state = 'INTENDED' OR state = 'DONE'),
    forced       INTEGER NOT NULL CHECK (forced IN (0, 1)),
    chat         INTEGER NOT NULL CHECK (chat IN (0, 1)),
    makes        TEXT    NOT NULL, -- JSON lists of directories
    removes      TEXT    NOT NULL,
    effects      TEXT    NOT NULL, -- JSON: what it does not take back
    author       TEXT    NOT NULL,
    seq          INTEGER NOT NULL CHECK (seq > 0), -- of the event that intended it
    message_id   BLOB    REFERENCES messages (id), -- UNDONE
    created_at   INTEGER NOT NULL,
    done_at      INTEGER,
    CHECK ((state = 'DONE') = (done_at IS NOT NULL)),
    CHECK ((state = 'DONE') = (message_id IS NOT NULL)),
    CHECK (undoes IS NOT id)
) STRICT, WITHOUT ROWID;
CREATE INDEX undos_by_round ON undos (round_id);
CREATE INDEX undos_by_session ON undos (session);
CREATE UNIQUE INDEX undos_one_open ON undos (workspace_id) WHERE state = 'INTENDED';
CREATE INDEX undos_open ON undos (session) WHERE state = 'INTENDED';

CREATE TABLE undo_files (
    undo_id   BLOB    NOT NULL REFERENCES undos (id),
    ordinal   INTEGER NOT NULL CHECK (ordinal >= 0),
    path      TEXT    NOT NULL,
    from_hash BLOB    REFERENCES blobs (hash), -- NULL: there is no file
    from_size INTEGER NOT NULL CHECK (from_size >= 0),
    from_perm INTEGER NOT NULL,
    to_hash   BLOB    REFERENCES blobs (hash),
    to_size   INTEGER NOT NULL CHECK (to_size >= 0),
    to_perm   INTEGER NOT NULL,
    outcome   TEXT CHECK (outcome IS NULL OR outcome = 'UNDONE' OR outcome = 'NOT_UNDONE'),
    code      TEXT CHECK (code IS NULL OR outcome = 'NOT_UNDONE'),
    why       TEXT CHECK (why IS NULL OR outcome = 'NOT_UNDONE'),
    to_dir_perm INTEGER NOT NULL DEFAULT 0, -- of the directory that the file comes back into
    PRIMARY KEY (undo_id, ordinal)
) STRICT, WITHOUT ROWID;
CREATE UNIQUE INDEX undo_files_once ON undo_files (undo_id, path) WHERE path <> ''; -- erased ones have none
CREATE INDEX undo_files_from ON undo_files (from_hash) WHERE from_hash IS NOT NULL;
CREATE INDEX undo_files_to ON undo_files (to_hash) WHERE to_hash IS NOT NULL;

-- One row for each session (day 0: ever) and one for each workspace and day, for caps over rounds
-- (decision 29).
CREATE TABLE spending (
    day            INTEGER NOT NULL CHECK (day >= 0), -- 20261122
    owner          BLOB    NOT NULL CHECK (length(owner) = 16),
    spent_microusd INTEGER NOT NULL DEFAULT 0 CHECK (spent_microusd >= 0),
    due_microusd   INTEGER NOT NULL DEFAULT 0 CHECK (due_microusd >= 0), -- of it: what was reserved for calls whose cost nobody knows
    unknown_calls  INTEGER NOT NULL DEFAULT 0 CHECK (unknown_calls >= 0),
    PRIMARY KEY (day, owner)
) STRICT, WITHOUT ROWID;

-- The response cache (spec 6.4) belongs to no log; a reply goes with its session (decision 15).
CREATE TABLE cached_replies (
    key           BLOB PRIMARY KEY CHECK (length(key) = 32), -- SHA-256 of what was asked, with workspace and user
    session       INTEGER NOT NULL REFERENCES sessions (n),  -- whose reply it was
    provider      TEXT    NOT NULL,
    model         TEXT    NOT NULL,
    reply         TEXT    NOT NULL,
    size          INTEGER NOT NULL CHECK (size >= 0), -- bytes
    input_tokens  INTEGER NOT NULL DEFAULT 0,
    output_tokens INTEGER NOT NULL DEFAULT 0,
    hits          INTEGER NOT NULL DEFAULT 0,
    created_at    INTEGER NOT NULL,
    used_at       INTEGER NOT NULL,
    expires_at    INTEGER NOT NULL
) STRICT;
CREATE INDEX cached_replies_by_session ON cached_replies (session);
CREATE INDEX cached_replies_by_expiry ON cached_replies (expires_at);
CREATE INDEX cached_replies_by_use ON cached_replies (used_at, key, size);

-- The level 2 of a round before it waited; rounds.level2 is the present one (decision 53).
CREATE TABLE former_levels (
    round_id BLOB NOT NULL REFERENCES rounds (id),
    level2   BLOB NOT NULL REFERENCES blobs (hash),
    PRIMARY KEY (round_id, level2)
) STRICT, WITHOUT ROWID;
CREATE INDEX former_levels_by_level ON former_levels (level2);

-- Model calls that are passed on without a session (decision 35).
CREATE TABLE proxied (
    id                 BLOB PRIMARY KEY CHECK (length(id) = 16),
    workspace_id       BLOB    NOT NULL REFERENCES workspaces (id),
    user_id            BLOB    NOT NULL REFERENCES users (id),
    provider           TEXT    NOT NULL,
    model              TEXT    NOT NULL,
    state              TEXT    NOT NULL CHECK (state = 'OPEN' OR state = 'DONE'), -- OPEN: reserved under a cap, and perhaps sent
    code               TEXT,                                                    -- why it brought no answer
    cached             INTEGER NOT NULL DEFAULT 0 CHECK (cached IN (0, 1)),
    input_tokens       INTEGER NOT NULL DEFAULT 0,
    output_tokens      INTEGER NOT NULL DEFAULT 0,
    cache_read_tokens  INTEGER NOT NULL DEFAULT 0,
    cost_microusd      INTEGER, -- NULL: nobody knows
    reserved_microusd  INTEGER NOT NULL DEFAULT 0 CHECK (reserved_microusd >= 0),
    started_at         INTEGER NOT NULL,
    duration_us        INTEGER,
    CHECK ((state = 'OPEN') = (duration_us IS NULL))
) STRICT, WITHOUT ROWID;
CREATE INDEX proxied_open ON proxied (workspace_id, reserved_microusd) WHERE state = 'OPEN';

-- What each session has of the slots of its owner in its workspace (spec 5.1, decisions 21 and 43).
CREATE TABLE slots (
    session      INTEGER PRIMARY KEY REFERENCES sessions (n),
    workspace_id BLOB    NOT NULL,
    user_id      BLOB    NOT NULL,
    kind         TEXT    NOT NULL CHECK (kind = 'chat' OR kind = 'automation' OR kind = 'api'),
    state        TEXT    NOT NULL CHECK (state = 'HELD' OR state = 'QUEUED' OR state = 'RESERVED'),
    rank         INTEGER NOT NULL CHECK (rank >= 0), -- of what is queued: a lower one goes first
    place        INTEGER NOT NULL,                   -- in which order they came
    until        INTEGER,
    since        INTEGER NOT NULL DEFAULT 0, -- in its state
    told         INTEGER NOT NULL DEFAULT 0, -- the place in the queue that its log says
    CHECK ((until IS NOT NULL) = (state = 'RESERVED'))
) STRICT;
CREATE INDEX slots_by_owner ON slots (workspace_id, user_id, place);
CREATE INDEX slots_that_wait ON slots (workspace_id, user_id) WHERE state <> 'HELD';

-- Bearer tokens and cookies of users (spec 11.2).
CREATE TABLE tokens (
    id           BLOB PRIMARY KEY CHECK (length(id) = 16),
    user_id      BLOB    NOT NULL REFERENCES users (id),
    kind         TEXT    NOT NULL CHECK (kind = 'api' OR kind = 'browser'),
    name         TEXT    NOT NULL,
    hash         BLOB    NOT NULL UNIQUE CHECK (length(hash) = 32), -- SHA-256 of the secret
    scopes       TEXT    NOT NULL, -- JSON
    workspaces   TEXT    CHECK (workspaces IS NULL OR workspaces <> '[]'), -- JSON; NULL: all of them
    on_approval  TEXT    CHECK (on_approval IS NULL OR on_approval = 'deny' OR on_approval = 'park'),
    created_at   INTEGER NOT NULL,
    created_by   TEXT    NOT NULL,
    expires_at   INTEGER,
    last_used_at INTEGER, -- coarse: not a write for each request
    revoked_at   INTEGER,
    revoked_by   TEXT,
    CHECK ((revoked_by IS NULL) = (revoked_at IS NULL))
) STRICT, WITHOUT ROWID;
CREATE INDEX tokens_by_user ON tokens (user_id, created_at);

-- A row for each user and engine, kept for 24 hours (spec 5.4, decision 39).
CREATE TABLE presence (
    user_id BLOB    NOT NULL REFERENCES users (id),
    place   TEXT    NOT NULL,                     -- the engine that heard of them
    since   INTEGER NOT NULL,                     -- the first heartbeat of those that followed on one another
    seen    INTEGER NOT NULL CHECK (seen >= since),
    PRIMARY KEY (user_id, place)
) STRICT, WITHOUT ROWID;

-- The newest row of a name is in force; an empty value takes back the one before.
CREATE TABLE settings (
    n     INTEGER PRIMARY KEY,
    name  TEXT    NOT NULL,
    value TEXT    NOT NULL,
    by    TEXT    NOT NULL,
    at    INTEGER NOT NULL
) STRICT;
CREATE INDEX settings_by_name ON settings (name, n);

-- What an Idempotency-Key stands for; key and request are hashes (spec 10.2).
CREATE TABLE request_keys (
    key     BLOB    PRIMARY KEY CHECK (length(key) = 32),
    request BLOB    NOT NULL CHECK (length(request) = 32),
    at      INTEGER NOT NULL,
    status  INTEGER NOT NULL DEFAULT 0, -- HTTP; 0: the write has begun
    answer  BLOB    NOT NULL DEFAULT x'', -- sealed with the key
    holder  TEXT    NOT NULL DEFAULT ''
) STRICT, WITHOUT ROWID;
CREATE INDEX request_keys_by_age ON request_keys (at);
-- +goose StatementEnd
