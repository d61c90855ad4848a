-- The core data model on PostgreSQL (spec chapter 2; docs/design.md lists the differences from SQLite). Ids are
-- uuid (version 7), hashes 32 bytes, *_at are microseconds since 1970 UTC and *_us microseconds, because the log
-- binds exactly those; *_microusd are millionths of a US dollar, flags 0 or 1. Texts of a model, a person, a tool
-- or a file are bytea: they may hold NUL or bytes that are no UTF-8, which text cannot.
-- Versions below this one belong to programs that were never released; their schemas are refused.

-- +goose Up
-- +goose StatementBegin
CREATE FUNCTION refuse() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN RAISE EXCEPTION '%', TG_ARGV[0] USING ERRCODE = 'check_violation'; END $$;
-- A statement that must change one row and does not ends its transaction, without another round trip.
CREATE FUNCTION must_be_one(n bigint) RETURNS bigint LANGUAGE plpgsql AS $$
BEGIN
    IF n <> 1 THEN RAISE EXCEPTION 'one row was to change, not %', n USING ERRCODE = 'RG001'; END IF;
    RETURN n;
END $$;

-- What the statements of the store call that PostgreSQL has under other names.
CREATE FUNCTION hex(id uuid) RETURNS text LANGUAGE sql IMMUTABLE PARALLEL SAFE AS $$ SELECT replace(id::text, '-', '') $$;
CREATE FUNCTION max(a bigint, b bigint) RETURNS bigint LANGUAGE sql IMMUTABLE PARALLEL SAFE AS $$ SELECT greatest(a, b) $$;
CREATE FUNCTION max(a bigint, b bigint, c bigint, d bigint) RETURNS bigint LANGUAGE sql IMMUTABLE PARALLEL SAFE AS $$ SELECT greatest(a, b, c, d) $$;

CREATE TABLE meta (
    key   text PRIMARY KEY,
    value text NOT NULL
);

-- Transitions that leave no row of a log behind leave one here: where the connection is lost in a commit, the next one finds out by it
-- whether that was done. Rows are swept after an hour.
CREATE TABLE commits (
    id uuid PRIMARY KEY,
    at timestamptz NOT NULL DEFAULT now()
);
CREATE INDEX commits_by_time ON commits (at);

-- Who runs rounds, and until when it is taken to live. A session's lease_holder names one; its lease is over when that is.
CREATE TABLE holders (
    name  text PRIMARY KEY,
    until timestamptz NOT NULL
);

CREATE TABLE users (
    id          uuid PRIMARY KEY,
    name        bytea  NOT NULL UNIQUE,
    created_at  bigint NOT NULL,
    disabled_at bigint
);

CREATE TABLE workspaces (
    id         uuid PRIMARY KEY,
    name       bytea  NOT NULL,
    root       bytea UNIQUE,
    found_by   text   NOT NULL DEFAULT '',
    created_at bigint NOT NULL,
    deleted_at bigint
);

CREATE TABLE members (
    workspace_id uuid NOT NULL REFERENCES workspaces (id),
    user_id      uuid NOT NULL REFERENCES users (id),
    role         text NOT NULL CHECK (role IN ('owner', 'member', 'viewer')),
    PRIMARY KEY (workspace_id, user_id)
);

-- A chain is one append-only log: one for each session, one for each workspace's configuration (decision 15). Its row allocates the
-- sequence numbers, holds the head of the hash chain, and is what a transition locks before it reads anything of the session.
CREATE SEQUENCE chains_n AS bigint MAXVALUE 2147483647;
CREATE TABLE chains (
    n        bigint PRIMARY KEY CHECK (n > 0 AND n < 2147483648),
    kind     text   NOT NULL CHECK (kind IN ('session', 'workspace', 'user')),
    owner_id uuid   NOT NULL UNIQUE,
    head     bigint NOT NULL DEFAULT 0,
    mac      bytea  NOT NULL CHECK (octet_length(mac) = 32),
    head_at  bigint NOT NULL
) WITH (fillfactor = 50); -- its row changes with every transition, and then stays on its page

-- n follows from the place in the log: nobody counts over all logs, where many processes write.
CREATE TABLE events (
    n     bigint NOT NULL,
    chain bigint NOT NULL,
    seq   bigint NOT NULL CHECK (seq > 0 AND seq < 4294967296),
    type  text   NOT NULL,
    at    bigint NOT NULL,
    body  bytea  NOT NULL CHECK (octet_length(body) = 32), -- SHA-256 of the body
    mac   bytea  NOT NULL CHECK (octet_length(mac) = 32),  -- HMAC over the row before and this row
    PRIMARY KEY (chain, seq),
    CHECK (n = (chain << 32) | seq)
);

-- Bodies live apart from the log, because they may be erased and log rows may not (decision 15).
CREATE TABLE event_bodies (
    n    bigint PRIMARY KEY, -- its event's
    body bytea NOT NULL
);

CREATE FUNCTION events_come_next() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF NEW.seq <> coalesce((SELECT e.seq FROM events e WHERE e.chain = NEW.chain ORDER BY e.seq DESC LIMIT 1), 0) + 1 THEN
        RAISE EXCEPTION 'a log row comes once, as the next of its chain: the log has no gap (decision 15, invariant 6)' USING ERRCODE = 'check_violation';
    END IF;
    RETURN NEW;
END $$;
CREATE FUNCTION head_fits() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF NEW.head < OLD.head OR (NEW.head = OLD.head AND NEW.mac <> OLD.mac) OR (NEW.head > OLD.head AND (NEW.head, NEW.mac) IS DISTINCT FROM
        (SELECT (e.seq, e.mac) FROM events e WHERE e.chain = OLD.n ORDER BY e.seq DESC LIMIT 1)) THEN
        RAISE EXCEPTION 'the head does not fit the log: it moves to its newest row, or the log has a gap (invariant 6)' USING ERRCODE = 'check_violation';
    END IF;
    RETURN NEW;
END $$;
-- Nothing is left beyond the head when a transaction ends, whoever wrote it.
CREATE FUNCTION head_reaches() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF NOT EXISTS (SELECT 1 FROM chains c WHERE c.n = NEW.chain AND c.head >= NEW.seq) THEN
        RAISE EXCEPTION 'a log row lies beyond the head of its log (invariant 6)' USING ERRCODE = 'check_violation';
    END IF;
    RETURN NULL;
END $$;
CREATE FUNCTION body_has_its_row() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF NOT EXISTS (SELECT 1 FROM events e WHERE e.chain = NEW.n >> 32 AND e.seq = NEW.n & 4294967295) THEN
        RAISE EXCEPTION 'a body comes once, with its log row (decision 15)' USING ERRCODE = 'check_violation';
    END IF;
    RETURN NEW;
END $$;
CREATE FUNCTION body_goes_with_a_word() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF (SELECT e.type FROM events e WHERE e.chain = OLD.n >> 32 ORDER BY e.seq DESC LIMIT 1) IS DISTINCT FROM 'erased' THEN
        RAISE EXCEPTION 'a body is erased only with a row in its log that says so (decision 15)' USING ERRCODE = 'check_violation';
    END IF;
    RETURN OLD;
END $$;
CREATE TRIGGER events_come_once BEFORE INSERT ON events FOR EACH ROW EXECUTE FUNCTION events_come_next();
CREATE TRIGGER events_never_change BEFORE UPDATE ON events FOR EACH ROW EXECUTE FUNCTION refuse('log rows never change (decision 15)');
CREATE CONSTRAINT TRIGGER events_under_the_head AFTER INSERT ON events DEFERRABLE INITIALLY DEFERRED FOR EACH ROW EXECUTE FUNCTION head_reaches();
CREATE TRIGGER events_never_go BEFORE DELETE ON events FOR EACH ROW EXECUTE FUNCTION refuse('log rows are never deleted (decision 15)');
CREATE TRIGGER events_never_emptied BEFORE TRUNCATE ON events EXECUTE FUNCTION refuse('log rows are never emptied (decision 15)');
CREATE TRIGGER bodies_never_emptied BEFORE TRUNCATE ON event_bodies EXECUTE FUNCTION refuse('bodies are never emptied (decision 15)');
CREATE TRIGGER chains_never_go BEFORE DELETE ON chains FOR EACH ROW EXECUTE FUNCTION refuse('chains are never deleted (decision 15)');
CREATE TRIGGER chains_never_emptied BEFORE TRUNCATE ON chains EXECUTE FUNCTION refuse('chains are never emptied (decision 15)');
CREATE TRIGGER bodies_come_once BEFORE INSERT ON event_bodies FOR EACH ROW EXECUTE FUNCTION body_has_its_row();
CREATE TRIGGER bodies_never_change BEFORE UPDATE ON event_bodies FOR EACH ROW EXECUTE FUNCTION refuse('bodies are erased, never changed (decision 15)');
CREATE TRIGGER bodies_go_with_a_word BEFORE DELETE ON event_bodies FOR EACH ROW EXECUTE FUNCTION body_goes_with_a_word();
CREATE TRIGGER chains_gapless BEFORE UPDATE OF head, mac ON chains FOR EACH ROW EXECUTE FUNCTION head_fits();
CREATE TRIGGER chains_identity BEFORE UPDATE ON chains FOR EACH ROW
    WHEN ((NEW.n, NEW.kind, NEW.owner_id) IS DISTINCT FROM (OLD.n, OLD.kind, OLD.owner_id))
    EXECUTE FUNCTION refuse('whose log it is never changes (decision 15)');
CREATE TRIGGER chains_come_once BEFORE INSERT ON chains FOR EACH ROW WHEN (NEW.head <> 0)
    EXECUTE FUNCTION refuse('a chain comes once, empty (decision 15)');

CREATE TABLE blobs (
    hash       bytea PRIMARY KEY CHECK (octet_length(hash) = 32),
    size       bigint NOT NULL CHECK (size >= 0),
    data       bytea, -- NULL: erased, or never stored
    in_file    smallint NOT NULL DEFAULT 0 CHECK (in_file = 0), -- a data directory is one process's
    created_at bigint NOT NULL,
    noted_at   bigint NOT NULL DEFAULT 0 -- when somebody was last about to name it
);

CREATE TABLE sessions (
    n                  bigint PRIMARY KEY REFERENCES chains (n),
    id                 uuid   NOT NULL UNIQUE,
    workspace_id       uuid   NOT NULL REFERENCES workspaces (id),
    user_id            uuid   NOT NULL REFERENCES users (id),
    agent              text   NOT NULL,
    name               bytea  NOT NULL DEFAULT '',
    type               text   NOT NULL CHECK (type IN ('CHAT', 'SEED', 'AUTOMATION', 'SUBAGENT')),
    visibility         text   NOT NULL DEFAULT 'private' CHECK (visibility IN ('private', 'shared')),
    origin             text   NOT NULL DEFAULT 'local' CHECK (origin IN ('local', 'api', 'seed', 'fork', 'parent')),
    provider           text   NOT NULL,
    model              text   NOT NULL,
    require_validation smallint NOT NULL DEFAULT 0 CHECK (require_validation IN (0, 1)),
    read_only          smallint NOT NULL DEFAULT 0 CHECK (read_only IN (0, 1)),
    tainted            smallint NOT NULL DEFAULT 0 CHECK (tainted IN (0, 1)),
    automation_id      uuid CHECK (automation_id IS NULL OR type = 'AUTOMATION'),
    scheduled_at       bigint CHECK (scheduled_at IS NULL OR type = 'AUTOMATION'),
    parent_call        uuid UNIQUE,
    forked_from        uuid REFERENCES sessions (id),
    forked_at_seq      bigint,
    state              text NOT NULL DEFAULT 'IDLE' CHECK (state IN ('IDLE', 'QUEUED', 'ACTIVE', 'PAUSED', 'WAITING_VALIDATION', 'WAITING_RESPONSE',
                         'WAITING_NETWORK', 'WAITING_PROVIDER', 'WAITING_TASK', 'CLOSED')),
    waiting_network    smallint NOT NULL DEFAULT 0 CHECK (waiting_network IN (0, 1)),
    end_reason         text CHECK (end_reason IN ('COMPLETED', 'TIMEOUT', 'ERROR', 'CANCELLED')),
    epoch              bigint NOT NULL DEFAULT 0,
    lease_holder       text,
    lease_until        bigint,
    paused_at          bigint,
    expires_at         bigint,
    created_at         bigint NOT NULL,
    closed_at          bigint,
    deleted_at         bigint, -- a tombstone: the row stays, bodies go (decision 15)
    token_id           uuid, -- which token began it
    CHECK (end_reason IS NULL OR state = 'CLOSED'),
    CHECK ((closed_at IS NOT NULL) = (state = 'CLOSED')),
    CHECK ((forked_from IS NULL) = (forked_at_seq IS NULL)),
    CHECK ((parent_call IS NOT NULL) = (type = 'SUBAGENT')),
    CHECK (type <> 'SEED' OR state IN ('IDLE', 'CLOSED'))
) WITH (fillfactor = 70);

CREATE INDEX sessions_by_workspace ON sessions (workspace_id, n);
CREATE INDEX sessions_of_clients ON sessions (n) WHERE origin = 'api' AND deleted_at IS NULL;
CREATE INDEX sessions_forks ON sessions (forked_from) WHERE forked_from IS NOT NULL;

CREATE TABLE read_marks (
    user_id  uuid   NOT NULL REFERENCES users (id),
    session  bigint NOT NULL REFERENCES sessions (n),
    read_seq bigint NOT NULL CHECK (read_seq >= 0),
    PRIMARY KEY (user_id, session)
);

CREATE TABLE rounds (
    id                 uuid PRIMARY KEY,
    session            bigint NOT NULL REFERENCES sessions (n),
    number             integer NOT NULL CHECK (number > 0),
    reason             text NOT NULL CHECK (reason IN ('USER_MESSAGE', 'MANUAL_TRIGGER', 'AUTOMATION_START', 'TASK_CALLBACK')),
    state              text NOT NULL CHECK (state IN ('RUNNING', 'WAITING', 'ENDED')),
    end_reason         text CHECK (end_reason IN ('ANSWERED', 'COMPLETED', 'LIMIT', 'EARLY_STOP', 'DENIED', 'INTERRUPTED', 'STOPPED', 'PROVIDER_ERROR',
                         'NO_PROGRESS', 'WATCHDOG', 'CLIENT_TOOLS')),
    end_note           bytea NOT NULL DEFAULT '',
    phase              text NOT NULL CHECK (phase IN ('MODEL', 'CALLS', 'END')),
    exchange           integer NOT NULL CHECK (exchange > 0),
    total              integer NOT NULL DEFAULT 0,
    queries            integer NOT NULL DEFAULT 0,
    retries            integer NOT NULL DEFAULT 0,
    format_errors      integer NOT NULL DEFAULT 0,
    resumes            integer NOT NULL DEFAULT 0,
    limits             text NOT NULL,
    stop_request       text CHECK (stop_request IN ('INTERRUPT', 'PAUSE', 'STOP')),
    epoch              bigint NOT NULL,
    trace_id           text NOT NULL,
    agent              text NOT NULL,
    agent_pin          bytea CHECK (octet_length(agent_pin) = 32),
    provider           text NOT NULL,
    model              text NOT NULL,
    dialect            text NOT NULL DEFAULT 'native' CHECK (dialect IN ('native', 'json')),
    policy             bytea,
    trigger_message_id uuid,
    inherits_round     uuid REFERENCES rounds (id), -- whose totals count on (decision 2)
    level1             bytea REFERENCES blobs (hash),
    level2             bytea REFERENCES blobs (hash),
    deadline           bigint,
    tokens             bigint NOT NULL DEFAULT 0,
    reserved_microusd  bigint NOT NULL DEFAULT 0 CHECK (reserved_microusd >= 0),
    spent_microusd     bigint NOT NULL DEFAULT 0 CHECK (spent_microusd >= 0),
    started_at         bigint NOT NULL,
    ended_at           bigint,
    UNIQUE (session, number),
    CHECK ((state = 'ENDED') = (end_reason IS NOT NULL)),
    CHECK ((state = 'ENDED') = (phase = 'END')),
    CHECK ((state = 'ENDED') = (ended_at IS NOT NULL))
) WITH (fillfactor = 70);

-- One round at a time per session (spec 3).
CREATE UNIQUE INDEX rounds_one_open ON rounds (session) WHERE state <> 'ENDED';
CREATE INDEX rounds_running ON rounds (started_at, id) WHERE state = 'RUNNING';
CREATE INDEX rounds_reserved ON rounds (session, reserved_microusd) WHERE reserved_microusd > 0;

-- One model call with its batch of calls. A row describes its latest attempt; earlier ones move to attempts (decision 28).
CREATE TABLE exchanges (
    round_id          uuid    NOT NULL REFERENCES rounds (id),
    number            integer NOT NULL CHECK (number > 0),
    purpose           text    NOT NULL DEFAULT 'step' CHECK (purpose IN ('step', 'summary', 'check')),
    reason            text    NOT NULL,
    state             text    NOT NULL CHECK (state IN ('OPEN', 'REPLIED', 'FAILED')),
    attempt           integer NOT NULL DEFAULT 1 CHECK (attempt > 0),
    provider          text    NOT NULL,
    model             text    NOT NULL,
    first_seq         bigint,
    last_seq          bigint,
    request           bytea CHECK (octet_length(request) = 32),
    reply_id          uuid,
    input_tokens      bigint NOT NULL DEFAULT 0,
    output_tokens     bigint NOT NULL DEFAULT 0,
    cache_write_tokens bigint NOT NULL DEFAULT 0,
    cache_read_tokens bigint NOT NULL DEFAULT 0,
    reasoning_tokens  bigint NOT NULL DEFAULT 0,
    reserved_microusd bigint NOT NULL DEFAULT 0 CHECK (reserved_microusd >= 0),
    cost_microusd     bigint CHECK (cost_microusd >= 0), -- NULL: the price is not known
    overrun_microusd  bigint NOT NULL DEFAULT 0 CHECK (overrun_microusd >= 0),
    stop_reason       bytea  NOT NULL DEFAULT '',
    error             bytea  NOT NULL DEFAULT '',
    opened_at         bigint NOT NULL,
    first_byte_us     bigint,
    model_us          bigint,
    replied_at        bigint,
    head              bytea REFERENCES blobs (hash), -- all of a request that is not its thread; NULL where it is that of the exchange before
    PRIMARY KEY (round_id, number),
    CHECK ((state = 'REPLIED') = (reply_id IS NOT NULL))
) WITH (fillfactor = 70);

CREATE TABLE attempts (
    round_id          uuid    NOT NULL,
    exchange          integer NOT NULL,
    number            integer NOT NULL CHECK (number > 0),
    provider          text    NOT NULL,
    model             text    NOT NULL,
    code              text    NOT NULL,
    error             bytea   NOT NULL,
    partial           bytea   NOT NULL DEFAULT '',
    input_tokens      bigint NOT NULL DEFAULT 0,
    output_tokens     bigint NOT NULL DEFAULT 0,
    cache_write_tokens bigint NOT NULL DEFAULT 0,
    cache_read_tokens bigint NOT NULL DEFAULT 0,
    reasoning_tokens  bigint NOT NULL DEFAULT 0,
    reserved_microusd bigint NOT NULL DEFAULT 0 CHECK (reserved_microusd >= 0),
    cost_microusd     bigint CHECK (cost_microusd >= 0),
    overrun_microusd  bigint NOT NULL DEFAULT 0 CHECK (overrun_microusd >= 0),
    opened_at         bigint NOT NULL,
    ended_at          bigint NOT NULL,
    model_us          bigint,
    first_seq         bigint,
    last_seq          bigint,
    request           bytea CHECK (octet_length(request) = 32),
    head              bytea REFERENCES blobs (hash),
    purpose           text NOT NULL DEFAULT 'step' CHECK (purpose IN ('step', 'summary', 'check')),
    PRIMARY KEY (round_id, exchange, number),
    FOREIGN KEY (round_id, exchange) REFERENCES exchanges (round_id, number)
);

-- A message's content is the body of its log event at (session, seq), or at pending_seq until it is admitted (decision 10).
-- There is one content with one variant; two cannot be filled.
CREATE TABLE messages (
    id            uuid PRIMARY KEY,
    session       bigint NOT NULL REFERENCES sessions (n),
    seq           bigint,
    pending_seq   bigint,
    sender        text NOT NULL CHECK (sender IN ('USER', 'AI', 'SYSTEM')),
    variant       text NOT NULL CHECK (variant IN ('rich', 'text', 'ai', 'system')),
    system_type   text CHECK (system_type IN ('DATA_ADDED', 'ACTIONS_EXECUTED', 'LIMIT_REACHED', 'FORMAT_ERROR', 'COMPLETE_REFUSED',
                    'VALIDATION_CANCELLED', 'COMMUNICATION_CANCELLED', 'TASK_RESULT', 'CONTEXT_SUMMARY', 'UNDONE', 'NETWORK_ERROR', 'SESSION_TIMEOUT')),
    author_kind   text NOT NULL CHECK (author_kind IN ('user', 'agent', 'component', 'task')),
    author_id     text NOT NULL,
    client_id     bytea,
    round_id      uuid,
    exchange      integer,
    calls         integer NOT NULL DEFAULT 0 CHECK (calls >= 0), -- how many call rows name this message
    excluded      smallint NOT NULL DEFAULT 0 CHECK (excluded IN (0, 1)),
    superseded    smallint NOT NULL DEFAULT 0 CHECK (superseded IN (0, 1)),
    withdrawn_at  bigint,
    taken_back    integer NOT NULL DEFAULT 0, -- by its person, while it waited for its turn
    UNIQUE (session, seq),
    CHECK (seq IS NOT NULL OR pending_seq IS NOT NULL),
    CHECK ((variant = 'system') = (sender = 'SYSTEM')),
    CHECK (variant <> 'rich' OR sender = 'USER'),
    CHECK (variant <> 'ai' OR sender = 'AI'),
    CHECK ((variant = 'system') = (system_type IS NOT NULL)),
    CHECK (system_type NOT IN ('NETWORK_ERROR', 'SESSION_TIMEOUT') OR excluded = 1),
    CHECK (calls = 0 OR variant IN ('ai', 'rich') OR coalesce(system_type, '') = 'DATA_ADDED')
);

CREATE UNIQUE INDEX messages_client_id ON messages (session, client_id) WHERE client_id IS NOT NULL;

CREATE TABLE attachments (
    message_id uuid    NOT NULL REFERENCES messages (id),
    ordinal    integer NOT NULL CHECK (ordinal >= 0),
    blob       bytea   NOT NULL REFERENCES blobs (hash),
    media_type bytea   NOT NULL,
    name       bytea   NOT NULL,
    size       bigint  NOT NULL CHECK (size >= 0),
    PRIMARY KEY (message_id, ordinal)
);
CREATE INDEX attachments_by_blob ON attachments (blob);

CREATE TABLE calls (
    id               uuid PRIMARY KEY,
    session          bigint NOT NULL, -- its message's
    round_id         uuid   NOT NULL REFERENCES rounds (id),
    exchange         integer NOT NULL,
    ordinal          integer NOT NULL CHECK (ordinal >= 0),
    message_id       uuid   NOT NULL REFERENCES messages (id) DEFERRABLE INITIALLY DEFERRED,
    origin           text   NOT NULL CHECK (origin IN ('MODEL', 'USER', 'API', 'CLIENT')),
    tool             bytea  NOT NULL,
    provider_call_id bytea,
    kind             text   NOT NULL CHECK (kind IN ('query', 'action')),
    class            text   NOT NULL CHECK (class IN ('read', 'keyed', 'verifiable', 'once', 'resumable')),
    signature        bytea  NOT NULL CHECK (octet_length(signature) = 32),
    definition       bytea CHECK (octet_length(definition) = 32),
    arguments        bytea  NOT NULL, -- what the model wrote, verbatim
    executed         bytea,           -- what ran instead, where a person edited it
    ask              smallint NOT NULL DEFAULT 0 CHECK (ask IN (0, 1)), -- the model itself asked for an approval (decision 40)
    state            text   NOT NULL CHECK (state IN ('PROPOSED', 'AWAITING_APPROVAL', 'APPROVED', 'STARTED', 'SUCCEEDED', 'FAILED', 'UNKNOWN', 'NOT_RUN')),
    code             text CHECK (code IN ('DENIED', 'EXPIRED', 'DUPLICATE_IN_BATCH', 'ANTI_LOOP', 'CACHED', 'OVER_LIMIT', 'INTERRUPTED',
                       'SUPERSEDED', 'OUT_OF_SCOPE', 'INVALID', 'REPEATED_FAILURE')),
    intent           bytea,
    result           bytea,
    error            bytea,
    result_blob      bytea REFERENCES blobs (hash),
    duplicate_of     uuid REFERENCES calls (id) DEFERRABLE INITIALLY DEFERRED, -- a call of the same message
    attempts         integer NOT NULL DEFAULT 0,
    recovered        smallint NOT NULL DEFAULT 0 CHECK (recovered IN (0, 1)),
    duration_us      bigint,
    proposed_at      bigint NOT NULL,
    started_at       bigint,
    settled_at       bigint,
    resolved_at      bigint, -- a person settled an UNKNOWN (decision 5)
    resolved_by      bytea,
    resolved_as      text CHECK (resolved_as IN ('happened', 'did_not_happen')),
    resolve_note     bytea,
    copy_of          uuid, -- the call that was made, where the row is its copy in a fork: never a copy itself
    changed          bytea CHECK (changed IS NULL OR (kind = 'action' AND started_at IS NOT NULL AND settled_at IS NOT NULL)), -- files
    UNIQUE (message_id, ordinal),
    CHECK (kind <> 'query' OR class = 'read'),
    CHECK (origin <> 'USER' OR kind = 'query'),          -- people's enrichments are queries only (spec 4.1)
    CHECK ((state = 'NOT_RUN') = (code IS NOT NULL)),
    CHECK ((settled_at IS NOT NULL) = (state IN ('SUCCEEDED', 'FAILED', 'UNKNOWN', 'NOT_RUN'))),
    CHECK (settled_at IS NULL OR result IS NOT NULL OR error IS NOT NULL),
    CHECK (state NOT IN ('STARTED', 'UNKNOWN') OR started_at IS NOT NULL),
    CHECK (state <> 'SUCCEEDED' OR kind = 'query' OR started_at IS NOT NULL), -- no effect without an intent (invariant 2)
    CHECK (state <> 'UNKNOWN' OR kind = 'action')
) WITH (fillfactor = 70);
CREATE INDEX calls_copies ON calls (copy_of) WHERE copy_of IS NOT NULL;
CREATE INDEX calls_whole ON calls (result_blob) WHERE result_blob IS NOT NULL;
CREATE INDEX calls_of_clients ON calls (session) WHERE origin = 'CLIENT' AND settled_at IS NULL;

CREATE TABLE waits (
    id          uuid PRIMARY KEY,
    session     bigint NOT NULL REFERENCES sessions (n),
    round_id    uuid   NOT NULL REFERENCES rounds (id),
    kind        text   NOT NULL CHECK (kind IN ('APPROVAL', 'QUESTION', 'TASK', 'NETWORK', 'PROVIDER', 'CHILD')),
    object_id   uuid,
    owner_id    uuid   NOT NULL,
    deadline    bigint,
    fallback    bytea,
    state       text   NOT NULL CHECK (state IN ('OPEN', 'RESOLVED', 'EXPIRED', 'WITHDRAWN')),
    resolution  bytea,
    resolved_by bytea,
    created_at  bigint NOT NULL,
    resolved_at bigint,
    CHECK ((state = 'OPEN') = (resolved_at IS NULL)),
    CHECK (kind IN ('TASK', 'CHILD', 'NETWORK') OR deadline IS NOT NULL) -- a wait has an owner and a deadline (invariant 11)
) WITH (fillfactor = 80);
CREATE INDEX waits_open ON waits (deadline) WHERE state = 'OPEN';
CREATE INDEX waits_by_round ON waits (round_id);
CREATE INDEX waits_by_object ON waits (object_id);

CREATE TABLE approvals (
    id         uuid PRIMARY KEY,
    session    bigint NOT NULL REFERENCES sessions (n),
    round_id   uuid   NOT NULL REFERENCES rounds (id),
    exchange   integer NOT NULL,
    state      text   NOT NULL CHECK (state IN ('OPEN', 'DECIDED', 'EXPIRED', 'WITHDRAWN')),
    created_at bigint NOT NULL,
    expires_at bigint NOT NULL,
    closed_at  bigint,
    seq        bigint NOT NULL DEFAULT 0 CHECK (seq >= 0), -- of the event that asked
    CHECK ((state = 'OPEN') = (closed_at IS NULL))
);
CREATE INDEX approvals_by_round ON approvals (round_id);
CREATE INDEX approvals_open ON approvals (created_at) WHERE state = 'OPEN';

CREATE TABLE reviews (
    approval_id   uuid  NOT NULL REFERENCES approvals (id),
    call_id       uuid  NOT NULL REFERENCES calls (id),
    ordinal       integer NOT NULL,
    definition    bytea NOT NULL CHECK (octet_length(definition) = 32),
    arguments     bytea NOT NULL,
    preview       bytea NOT NULL, -- sentence, diff, warnings, preconditions, scopes
    verdict       text  NOT NULL CHECK (verdict IN ('ASK', 'MUST_ASK')),
    grounds       bytea NOT NULL,
    answer        text CHECK (answer IN ('allow', 'allow_session', 'allow_always', 'deny')),
    edited        bytea,           -- arguments that run instead
    edited_preview bytea,          -- what they do: its preconditions bind then
    reason        bytea,
    scope         bytea,
    request       bytea,           -- the answer's own id: saying it again adds nothing
    decided_by    bytea,
    decided_at    bigint,
    expires_at    bigint CHECK (expires_at IS NULL OR answer IN ('allow_session', 'allow_always')), -- how long the rule counts that the answer made
    PRIMARY KEY (approval_id, call_id),
    CHECK ((answer IS NULL) = (decided_at IS NULL)),
    CHECK ((answer IS NULL) = (decided_by IS NULL)),
    CHECK (edited IS NULL OR answer <> 'deny')
);
CREATE INDEX reviews_by_call ON reviews (call_id);

CREATE TABLE questions (
    wait_id uuid PRIMARY KEY REFERENCES waits (id),
    call_id uuid  NOT NULL REFERENCES calls (id),
    module  bytea NOT NULL,
    request bytea -- the answer's own id
);

CREATE TABLE rules (
    id           uuid PRIMARY KEY,
    workspace_id uuid NOT NULL REFERENCES workspaces (id),
    session      bigint REFERENCES sessions (n), -- NULL: every session of the workspace
    verdict      text NOT NULL CHECK (verdict IN ('ALLOW', 'MUST_ASK', 'FORBID')),
    tool         bytea NOT NULL,
    scope        bytea NOT NULL,
    author       bytea NOT NULL,
    from_call    uuid REFERENCES calls (id),
    created_at   bigint NOT NULL,
    expires_at   bigint,
    revoked_at   bigint,
    revoked_by   bytea,
    CHECK ((revoked_by IS NULL) = (revoked_at IS NULL))
);
CREATE INDEX rules_by_workspace ON rules (workspace_id, tool);

-- A message that came while its session was busy (decision 10). Its content is the body of its message_pending event until it is
-- admitted; round is what its round would be started with.
CREATE TABLE pending (
    n          bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY, -- the order of arrival
    message_id uuid   NOT NULL UNIQUE REFERENCES messages (id),
    session    bigint NOT NULL REFERENCES sessions (n),
    mode       text   NOT NULL CHECK (mode IN ('queue', 'steer')),
    round      bytea  NOT NULL
);
CREATE INDEX pending_by_session ON pending (session, n);

-- An undo is intended before any file changes, and done when the outcome of each file is known
-- (decision 16).
CREATE TABLE undos (
    id           uuid PRIMARY KEY, -- the request's own: saying it again adds nothing
    session      bigint NOT NULL REFERENCES sessions (n),
    workspace_id uuid   NOT NULL REFERENCES workspaces (id),
    round_id     uuid   NOT NULL REFERENCES rounds (id), -- whose changes are meant
    undoes       uuid REFERENCES undos (id),             -- the undo that it takes back; NULL: the round's own changes
    state        text   NOT NULL CHECK (state IN ('INTENDED', 'DONE')),
    forced       smallint NOT NULL CHECK (forced IN (0, 1)),
    chat         smallint NOT NULL CHECK (chat IN (0, 1)),
    makes        bytea  NOT NULL, -- JSON lists of directories
    removes      bytea  NOT NULL,
    effects      bytea  NOT NULL, -- JSON: what it does not take back
    author       bytea  NOT NULL,
    seq          bigint NOT NULL CHECK (seq > 0), -- of the event that intended it
    message_id   uuid REFERENCES messages (id),   -- UNDONE
    created_at   bigint NOT NULL,
    done_at      bigint,
    CHECK ((state = 'DONE') = (done_at IS NOT NULL)),
    CHECK ((state = 'DONE') = (message_id IS NOT NULL)),
    CHECK (undoes <> id)
);
CREATE INDEX undos_by_round ON undos (round_id);
CREATE INDEX undos_by_session ON undos (session);
-- Files belong to their workspace, so one at a time changes them.
CREATE UNIQUE INDEX undos_one_open ON undos (workspace_id) WHERE state = 'INTENDED';
CREATE INDEX undos_open ON undos (session) WHERE state = 'INTENDED';

CREATE TABLE undo_files (
    undo_id   uuid    NOT NULL REFERENCES undos (id),
    ordinal   integer NOT NULL CHECK (ordinal >= 0),
    path      bytea   NOT NULL,
    from_hash bytea REFERENCES blobs (hash), -- NULL: there is no file
    from_size bigint  NOT NULL CHECK (from_size >= 0),
    from_perm bigint  NOT NULL,
    to_hash   bytea REFERENCES blobs (hash),
    to_size   bigint  NOT NULL CHECK (to_size >= 0),
    to_perm   bigint  NOT NULL,
    outcome   text CHECK (outcome IN ('UNDONE', 'NOT_UNDONE')),
    code      text CHECK (code IS NULL OR outcome = 'NOT_UNDONE'),
    why       bytea CHECK (why IS NULL OR outcome = 'NOT_UNDONE'),
    to_dir_perm bigint NOT NULL DEFAULT 0, -- of the directory that the file comes back into
    PRIMARY KEY (undo_id, ordinal)
);
-- Where the session was removed its files have no path any more.
CREATE UNIQUE INDEX undo_files_once ON undo_files (undo_id, path) WHERE path <> '';
CREATE INDEX undo_files_from ON undo_files (from_hash) WHERE from_hash IS NOT NULL;
CREATE INDEX undo_files_to ON undo_files (to_hash) WHERE to_hash IS NOT NULL;

-- One row for each session (day 0: ever) and one for each workspace and day. The rows of the calls say the same; these need no counting.
CREATE TABLE spending (
    day            bigint NOT NULL CHECK (day >= 0), -- 20261122
    owner          uuid   NOT NULL,
    spent_microusd bigint NOT NULL DEFAULT 0 CHECK (spent_microusd >= 0),
    due_microusd   bigint NOT NULL DEFAULT 0 CHECK (due_microusd >= 0), -- of it: what was reserved for calls whose cost nobody knows
    unknown_calls  bigint NOT NULL DEFAULT 0 CHECK (unknown_calls >= 0),
    PRIMARY KEY (day, owner)
);

-- The response cache (spec 6.4) belongs to no log; a reply goes with its session (decision 15).
CREATE TABLE cached_replies (
    key           bytea PRIMARY KEY CHECK (length(key) = 32), -- SHA-256 of what was asked, with workspace and user
    session       bigint NOT NULL REFERENCES sessions (n),    -- whose reply it was
    provider      text   NOT NULL,
    model         bytea  NOT NULL,
    reply         bytea  NOT NULL,
    size          bigint NOT NULL CHECK (size >= 0), -- bytes
    input_tokens  bigint NOT NULL DEFAULT 0,
    output_tokens bigint NOT NULL DEFAULT 0,
    hits          bigint NOT NULL DEFAULT 0,
    created_at    bigint NOT NULL,
    used_at       bigint NOT NULL,
    expires_at    bigint NOT NULL
);
CREATE INDEX cached_replies_by_session ON cached_replies (session);
CREATE INDEX cached_replies_by_expiry ON cached_replies (expires_at);
CREATE INDEX cached_replies_by_use ON cached_replies (used_at, key, size);

-- The level 2 of a round before it waited; rounds.level2 is the present one (decision 53).
CREATE TABLE former_levels (
    round_id uuid  NOT NULL REFERENCES rounds (id),
    level2   bytea NOT NULL REFERENCES blobs (hash),
    PRIMARY KEY (round_id, level2)
);
CREATE INDEX former_levels_by_level ON former_levels (level2);

-- Model calls that are passed on without a session (decision 35).
CREATE TABLE proxied (
    id                 uuid   PRIMARY KEY,
    workspace_id       uuid   NOT NULL REFERENCES workspaces (id),
    user_id            uuid   NOT NULL REFERENCES users (id),
    provider           text   NOT NULL,
    model              bytea  NOT NULL,
    state              text   NOT NULL CHECK (state = 'OPEN' OR state = 'DONE'), -- OPEN: reserved under a cap, and perhaps sent
    code               text,                                                   -- why it brought no answer
    cached             bigint NOT NULL DEFAULT 0 CHECK (cached IN (0, 1)),
    input_tokens       bigint NOT NULL DEFAULT 0,
    output_tokens      bigint NOT NULL DEFAULT 0,
    cache_read_tokens  bigint NOT NULL DEFAULT 0,
    cost_microusd      bigint, -- NULL: nobody knows
    reserved_microusd  bigint NOT NULL DEFAULT 0 CHECK (reserved_microusd >= 0),
    started_at         bigint NOT NULL,
    duration_us        bigint,
    CHECK ((state = 'OPEN') = (duration_us IS NULL))
);
CREATE INDEX proxied_open ON proxied (workspace_id, reserved_microusd) WHERE state = 'OPEN';

-- What each session has of the slots of its owner in its workspace (spec 5.1, decisions 21 and 43).
CREATE TABLE slots (
    session      bigint PRIMARY KEY REFERENCES sessions (n),
    workspace_id uuid   NOT NULL,
    user_id      uuid   NOT NULL,
    kind         text   NOT NULL CHECK (kind IN ('chat', 'automation', 'api')),
    state        text   NOT NULL CHECK (state IN ('HELD', 'QUEUED', 'RESERVED')),
    rank         bigint NOT NULL CHECK (rank >= 0), -- of what is queued: a lower one goes first
    place        bigint NOT NULL,                   -- in which order they came
    until        bigint,
    since        bigint NOT NULL DEFAULT 0, -- in its state
    told         bigint NOT NULL DEFAULT 0, -- the place in the queue that its log says
    CHECK ((until IS NOT NULL) = (state = 'RESERVED'))
);
CREATE INDEX slots_by_owner ON slots (workspace_id, user_id, place);

-- Mostly nobody waits, and that is asked at each beginning and each end of a round.
CREATE INDEX slots_that_wait ON slots (workspace_id, user_id) WHERE state <> 'HELD';

-- Bearer tokens and cookies of users (spec 11.2).
CREATE TABLE tokens (
    id           uuid PRIMARY KEY,
    user_id      uuid   NOT NULL REFERENCES users (id),
    kind         text   NOT NULL CHECK (kind IN ('api', 'browser')),
    name         bytea  NOT NULL,
    hash         bytea  NOT NULL UNIQUE CHECK (octet_length(hash) = 32), -- SHA-256 of the secret
    scopes       text   NOT NULL, -- JSON
    workspaces   text   CHECK (workspaces IS NULL OR workspaces <> '[]'), -- JSON; NULL: all of them
    on_approval  text   CHECK (on_approval IN ('deny', 'park')),
    created_at   bigint NOT NULL,
    created_by   bytea  NOT NULL,
    expires_at   bigint,
    last_used_at bigint, -- coarse: not a write for each request
    revoked_at   bigint,
    revoked_by   bytea,
    CHECK ((revoked_by IS NULL) = (revoked_at IS NULL))
);
CREATE INDEX tokens_by_user ON tokens (user_id, created_at);

-- A row for each user and engine, kept for 24 hours (spec 5.4, decision 39).
CREATE TABLE presence (
    user_id uuid   NOT NULL REFERENCES users (id),
    place   text   NOT NULL,                     -- the engine that heard of them
    since   bigint NOT NULL,                     -- the first heartbeat of those that followed on one another
    seen    bigint NOT NULL CHECK (seen >= since),
    PRIMARY KEY (user_id, place)
);

-- The newest row of a name is in force; an empty value takes back what was said before. Those before it stay: they say who changed what, and when.
CREATE TABLE settings (
    n     bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    name  text   NOT NULL,
    value text   NOT NULL,
    by    text   NOT NULL,
    at    bigint NOT NULL
);
CREATE INDEX settings_by_name ON settings (name, n);

-- Both are hashes: what a key was, and what came with it, cannot be read here.
CREATE TABLE request_keys (
    key     bytea  PRIMARY KEY CHECK (length(key) = 32),
    request bytea  NOT NULL CHECK (length(request) = 32),
    at      bigint NOT NULL,
    status  bigint NOT NULL DEFAULT 0, -- HTTP; 0: the write has begun
    answer  bytea  NOT NULL DEFAULT '', -- sealed with the key
    holder  text   NOT NULL DEFAULT ''
);
CREATE INDEX request_keys_by_age ON request_keys (at);

-- +goose StatementEnd
