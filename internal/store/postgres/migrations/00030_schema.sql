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
-- An error without what it says: its code stays.
CREATE FUNCTION blank_error(error bytea) RETURNS bytea LANGUAGE sql STABLE AS $$
    SELECT convert_to(json_build_object('code', coalesce(convert_from(error, 'UTF8')::json ->> 'code', ''), 'message', '', 'retryable', false)::text, 'UTF8')
    WHERE error IS NOT NULL $$;

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
                         'WAITING_NETWORK', 'WAITING_TASK', 'CLOSED')),
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

CREATE FUNCTION removed(session bigint) RETURNS boolean LANGUAGE sql STABLE AS $$ SELECT deleted_at IS NOT NULL FROM sessions WHERE n = session $$;

CREATE TRIGGER sessions_epoch_rises BEFORE UPDATE OF epoch ON sessions FOR EACH ROW WHEN (NEW.epoch < OLD.epoch)
    EXECUTE FUNCTION refuse('a session''s epoch only rises (invariant 8)');
CREATE TRIGGER sessions_identity BEFORE UPDATE ON sessions FOR EACH ROW
    WHEN ((NEW.n, NEW.id, NEW.workspace_id, NEW.user_id, NEW.type, NEW.created_at, NEW.parent_call, NEW.forked_from, NEW.forked_at_seq) IS DISTINCT FROM
          (OLD.n, OLD.id, OLD.workspace_id, OLD.user_id, OLD.type, OLD.created_at, OLD.parent_call, OLD.forked_from, OLD.forked_at_seq))
    EXECUTE FUNCTION refuse('what a session is never changes (spec 2.1)');
CREATE TRIGGER sessions_state BEFORE UPDATE OF state ON sessions FOR EACH ROW
    WHEN (OLD.state = 'CLOSED' AND NEW.state <> 'CLOSED' AND OLD.type <> 'CHAT')
    EXECUTE FUNCTION refuse('a closed session is reopened only if it is a CHAT (decision 6)');
CREATE TRIGGER sessions_token BEFORE UPDATE ON sessions FOR EACH ROW WHEN (NEW.token_id IS DISTINCT FROM OLD.token_id)
    EXECUTE FUNCTION refuse('which token began a session never changes (spec 11.2)');

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

CREATE FUNCTION session_rests() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF EXISTS (SELECT 1 FROM rounds r WHERE r.session = OLD.n AND r.state <> 'ENDED') THEN
        RAISE EXCEPTION '%', TG_ARGV[0] USING ERRCODE = 'check_violation';
    END IF;
    RETURN NEW;
END $$;
-- A round ends before its session is freed.
CREATE TRIGGER sessions_rest BEFORE UPDATE OF state ON sessions FOR EACH ROW WHEN (NEW.state IN ('IDLE', 'CLOSED'))
    EXECUTE FUNCTION session_rests('a round of this session is open, so it is neither IDLE nor CLOSED (decision 12)');
-- A tombstone stays.
CREATE TRIGGER sessions_tombstone BEFORE UPDATE OF deleted_at ON sessions FOR EACH ROW
    WHEN (OLD.deleted_at IS NOT NULL AND NEW.deleted_at IS DISTINCT FROM OLD.deleted_at)
    EXECUTE FUNCTION refuse('a session is removed once and stays so (decision 15)');
CREATE TRIGGER sessions_tombstone_at_rest BEFORE UPDATE OF deleted_at ON sessions FOR EACH ROW WHEN (NEW.deleted_at IS NOT NULL)
    EXECUTE FUNCTION session_rests('a session is removed with no round open (decision 15)');

CREATE TRIGGER rounds_forward BEFORE UPDATE ON rounds FOR EACH ROW
    WHEN ((OLD.state = 'ENDED' AND NOT (NEW.state = 'ENDED' AND NEW.end_note = '' AND NEW.end_reason = OLD.end_reason AND NEW.ended_at = OLD.ended_at
            AND NEW.total = OLD.total AND NEW.spent_microusd = OLD.spent_microusd AND removed(OLD.session)))
        OR NEW.total < OLD.total OR NEW.epoch < OLD.epoch OR NEW.tokens < OLD.tokens OR NEW.spent_microusd < OLD.spent_microusd)
    EXECUTE FUNCTION refuse('a round ends once, its total, its epoch and what it spent only rise (invariants 8, 9 and 11, decision 41)');
-- Levels 1 and 2 are not here, they are rebuilt at each wake (decision 53); nor provider and model, there are fallbacks (spec 6).
CREATE TRIGGER rounds_identity BEFORE UPDATE ON rounds FOR EACH ROW
    WHEN ((NEW.id, NEW.session, NEW.number, NEW.reason, NEW.limits, NEW.trace_id, NEW.agent, NEW.started_at) IS DISTINCT FROM
          (OLD.id, OLD.session, OLD.number, OLD.reason, OLD.limits, OLD.trace_id, OLD.agent, OLD.started_at)
        OR (OLD.agent_pin IS NOT NULL AND NEW.agent_pin IS DISTINCT FROM OLD.agent_pin) OR (OLD.policy IS NOT NULL AND NEW.policy IS DISTINCT FROM OLD.policy)
        OR (OLD.trigger_message_id IS NOT NULL AND NEW.trigger_message_id IS DISTINCT FROM OLD.trigger_message_id)
        OR (OLD.inherits_round IS NOT NULL AND NEW.inherits_round IS DISTINCT FROM OLD.inherits_round))
    EXECUTE FUNCTION refuse('what a round was started with never changes (decision 2, spec 3)');

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

CREATE FUNCTION round_removed(round uuid) RETURNS boolean LANGUAGE sql STABLE AS $$
    SELECT s.deleted_at IS NOT NULL FROM rounds r JOIN sessions s ON s.n = r.session WHERE r.id = round $$;

CREATE TRIGGER exchanges_final BEFORE UPDATE ON exchanges FOR EACH ROW
    WHEN ((OLD.state <> 'OPEN' AND NOT (NEW.state = OLD.state AND NEW.error = '' AND (NEW.attempt, NEW.request, NEW.reply_id, NEW.cost_microusd,
            NEW.input_tokens, NEW.output_tokens) IS NOT DISTINCT FROM (OLD.attempt, OLD.request, OLD.reply_id, OLD.cost_microusd, OLD.input_tokens,
            OLD.output_tokens) AND round_removed(OLD.round_id)))
        OR NEW.attempt < OLD.attempt)
    EXECUTE FUNCTION refuse('a model call has one end, its attempts only rise (decision 28)');
-- A step that is over the budget becomes the summary that has to come before it, as long as it has no reply; the step follows it.
CREATE TRIGGER exchanges_identity BEFORE UPDATE ON exchanges FOR EACH ROW
    WHEN ((NEW.round_id, NEW.number, NEW.purpose, NEW.reason) IS DISTINCT FROM (OLD.round_id, OLD.number, OLD.purpose, OLD.reason)
        AND NOT (OLD.state = 'OPEN' AND NEW.state = 'OPEN' AND OLD.purpose = 'step' AND NEW.purpose = 'summary'
            AND (NEW.round_id, NEW.number, NEW.reason, NEW.attempt) IS NOT DISTINCT FROM (OLD.round_id, OLD.number, OLD.reason, OLD.attempt)))
    EXECUTE FUNCTION refuse('what a model call is for never changes (decision 14), but that a step gives way to a summary (spec 3.4)');
CREATE TRIGGER attempts_never_change BEFORE UPDATE ON attempts FOR EACH ROW
    WHEN (NOT (NEW.partial = '' AND NEW.error = '' AND (NEW.round_id, NEW.exchange, NEW.number, NEW.code, NEW.cost_microusd, NEW.input_tokens,
        NEW.output_tokens, NEW.request, NEW.first_seq, NEW.last_seq, NEW.head, NEW.purpose) IS NOT DISTINCT FROM (OLD.round_id, OLD.exchange, OLD.number,
        OLD.code, OLD.cost_microusd, OLD.input_tokens, OLD.output_tokens, OLD.request, OLD.first_seq, OLD.last_seq, OLD.head, OLD.purpose)
        AND round_removed(OLD.round_id)))
    EXECUTE FUNCTION refuse('attempts never change (decision 28)');

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
CREATE TRIGGER attachments_never_change BEFORE UPDATE ON attachments FOR EACH ROW EXECUTE FUNCTION refuse('a stored message never changes its content');

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

-- A copy stands for a call that has its result and, where it is an action, was started: it cannot make an effect that nobody intended
-- (invariant 2). It has no evidence of its own: there is nothing to undo in a fork.
CREATE FUNCTION call_comes() RETURNS trigger LANGUAGE plpgsql AS $$
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
CREATE TRIGGER calls_come_once BEFORE INSERT ON calls FOR EACH ROW EXECUTE FUNCTION call_comes();

-- The one trigger that every change of a call passes: exactly one result (invariant 4), UNKNOWN ends only by evidence (invariant 5), and no
-- step of the state list is left out (decision 3). What a removed session held is taken out of its rows; how they ended stays.
CREATE TRIGGER calls_order BEFORE UPDATE ON calls FOR EACH ROW WHEN (NOT CASE OLD.state
        WHEN 'PROPOSED' THEN (OLD.kind = 'query' OR NEW.state NOT IN ('SUCCEEDED', 'UNKNOWN'))
        WHEN 'STARTED' THEN NEW.state NOT IN ('PROPOSED', 'AWAITING_APPROVAL', 'APPROVED')
        WHEN 'AWAITING_APPROVAL' THEN NEW.state IN ('AWAITING_APPROVAL', 'APPROVED', 'NOT_RUN')
        WHEN 'APPROVED' THEN NEW.state <> 'PROPOSED' AND (OLD.kind = 'query' OR NEW.state NOT IN ('SUCCEEDED', 'UNKNOWN'))
        ELSE (OLD.state = 'UNKNOWN' AND NEW.state IN ('SUCCEEDED', 'FAILED') AND OLD.resolved_at IS NULL AND NEW.resolved_at IS NOT NULL)
            OR (NEW.state = OLD.state AND NEW.arguments = '' AND NEW.executed IS NULL AND NEW.intent IS NULL AND coalesce(NEW.result, '') = ''
                AND NEW.result_blob IS NULL AND (NEW.code, NEW.attempts, NEW.recovered, NEW.duration_us, NEW.started_at, NEW.settled_at) IS NOT DISTINCT FROM
                    (OLD.code, OLD.attempts, OLD.recovered, OLD.duration_us, OLD.started_at, OLD.settled_at) AND removed(OLD.session))
    END)
    EXECUTE FUNCTION refuse('no such change of a call: it has exactly one result (decision 3, invariants 4 and 5)');
CREATE TRIGGER calls_resolved BEFORE UPDATE ON calls FOR EACH ROW
    WHEN ((NEW.resolved_at, NEW.resolved_by, NEW.resolved_as, NEW.resolve_note) IS DISTINCT FROM (OLD.resolved_at, OLD.resolved_by, OLD.resolved_as, OLD.resolve_note)
        AND NOT (NEW.resolve_note = '' AND (NEW.state, NEW.resolved_at, NEW.resolved_by, NEW.resolved_as) IS NOT DISTINCT FROM
            (OLD.state, OLD.resolved_at, OLD.resolved_by, OLD.resolved_as) AND removed(OLD.session))
        AND (OLD.state <> 'UNKNOWN' OR (NEW.state = 'SUCCEEDED') IS DISTINCT FROM (NEW.resolved_as = 'happened')
            OR (NEW.executed, NEW.code, NEW.intent, NEW.result, NEW.error, NEW.result_blob, NEW.duplicate_of, NEW.attempts, NEW.recovered, NEW.duration_us,
                NEW.settled_at) IS DISTINCT FROM (OLD.executed, OLD.code, OLD.intent, OLD.result, OLD.error, OLD.result_blob, OLD.duplicate_of, OLD.attempts,
                OLD.recovered, OLD.duration_us, OLD.settled_at)))
    EXECUTE FUNCTION refuse('a person resolves only an UNKNOWN call, and changes nothing else of it (decision 5)');
CREATE TRIGGER calls_started_at BEFORE UPDATE ON calls FOR EACH ROW WHEN (OLD.started_at IS NOT NULL AND NEW.started_at IS DISTINCT FROM OLD.started_at)
    EXECUTE FUNCTION refuse('when a call was started never changes (invariant 2)');
CREATE TRIGGER calls_changed BEFORE UPDATE ON calls FOR EACH ROW
    WHEN (NEW.changed IS DISTINCT FROM OLD.changed
        AND NOT (OLD.state = 'STARTED' AND OLD.settled_at IS NULL AND OLD.changed IS NULL AND NEW.settled_at IS NOT NULL)
        AND NOT (NEW.changed IS NULL AND removed(OLD.session)))
    EXECUTE FUNCTION refuse('what a call made of files comes with its result, once (decision 16)');
CREATE TRIGGER calls_changed_comes BEFORE INSERT ON calls FOR EACH ROW WHEN (NEW.changed IS NOT NULL)
    EXECUTE FUNCTION refuse('what a call made of files comes with its result, once (decision 16)');
CREATE TRIGGER calls_identity BEFORE UPDATE ON calls FOR EACH ROW
    WHEN ((NEW.id, NEW.session, NEW.round_id, NEW.exchange, NEW.message_id, NEW.ordinal, NEW.origin, NEW.signature, NEW.definition, NEW.class,
            NEW.kind, NEW.ask, NEW.proposed_at, NEW.copy_of) IS DISTINCT FROM
          (OLD.id, OLD.session, OLD.round_id, OLD.exchange, OLD.message_id, OLD.ordinal, OLD.origin, OLD.signature, OLD.definition, OLD.class,
            OLD.kind, OLD.ask, OLD.proposed_at, OLD.copy_of)
        OR (NEW.arguments <> OLD.arguments AND (NEW.arguments <> '' OR NOT removed(OLD.session)))
        OR ((NEW.tool, NEW.provider_call_id) IS DISTINCT FROM (OLD.tool, OLD.provider_call_id) AND NOT (NEW.provider_call_id IS NULL
            AND (NEW.tool = OLD.tool OR NEW.tool = '' AND OLD.definition IS NULL) AND removed(OLD.session))))
    EXECUTE FUNCTION refuse('what was proposed never changes (decision 7)');

-- A reply and its calls come in one transaction: rows first, then the message that counts them (spec 2.3, decision 7).
CREATE FUNCTION message_counts_its_calls() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF (SELECT count(*) FROM calls c WHERE c.message_id = NEW.id) <> NEW.calls THEN
        RAISE EXCEPTION 'a message and its calls do not agree (decision 7)' USING ERRCODE = 'check_violation';
    END IF;
    RETURN NEW;
END $$;
CREATE TRIGGER messages_come_once BEFORE INSERT ON messages FOR EACH ROW EXECUTE FUNCTION message_counts_its_calls();
CREATE TRIGGER messages_content_fixed BEFORE UPDATE ON messages FOR EACH ROW
    WHEN ((NEW.id, NEW.session, NEW.sender, NEW.variant, NEW.system_type, NEW.author_kind, NEW.author_id, NEW.client_id, NEW.calls) IS DISTINCT FROM
          (OLD.id, OLD.session, OLD.sender, OLD.variant, OLD.system_type, OLD.author_kind, OLD.author_id, OLD.client_id, OLD.calls))
    EXECUTE FUNCTION refuse('a stored message never changes its content');
-- A pending message gets its place, its round and its exchange when it is admitted (decision 10), once.
CREATE TRIGGER messages_place_fixed BEFORE UPDATE ON messages FOR EACH ROW
    WHEN ((OLD.seq IS NOT NULL AND NEW.seq IS DISTINCT FROM OLD.seq) OR (OLD.pending_seq IS NOT NULL AND NEW.pending_seq IS DISTINCT FROM OLD.pending_seq)
        OR (OLD.round_id IS NOT NULL AND NEW.round_id IS DISTINCT FROM OLD.round_id) OR (OLD.exchange <> 0 AND NEW.exchange IS DISTINCT FROM OLD.exchange))
    EXECUTE FUNCTION refuse('a stored message never changes its place in the log (decision 10)');

CREATE TABLE waits (
    id          uuid PRIMARY KEY,
    session     bigint NOT NULL REFERENCES sessions (n),
    round_id    uuid   NOT NULL REFERENCES rounds (id),
    kind        text   NOT NULL CHECK (kind IN ('APPROVAL', 'QUESTION', 'TASK', 'NETWORK', 'CHILD')),
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
CREATE TRIGGER waits_resolve_once BEFORE UPDATE ON waits FOR EACH ROW
    WHEN (OLD.state <> 'OPEN' AND NOT (NEW.resolution IS NULL AND (NEW.state, NEW.resolved_by, NEW.resolved_at, NEW.deadline) IS NOT DISTINCT FROM
        (OLD.state, OLD.resolved_by, OLD.resolved_at, OLD.deadline) AND removed(OLD.session)))
    EXECUTE FUNCTION refuse('a wait is resolved once (spec 4.4)');
CREATE TRIGGER waits_identity BEFORE UPDATE ON waits FOR EACH ROW
    WHEN ((NEW.id, NEW.session, NEW.round_id, NEW.kind, NEW.object_id, NEW.owner_id, NEW.created_at) IS DISTINCT FROM
          (OLD.id, OLD.session, OLD.round_id, OLD.kind, OLD.object_id, OLD.owner_id, OLD.created_at))
    EXECUTE FUNCTION refuse('what is waited for never changes (decision 12)');

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
CREATE TRIGGER approvals_close_once BEFORE UPDATE ON approvals FOR EACH ROW
    WHEN (OLD.state <> 'OPEN' OR (NEW.id, NEW.session, NEW.round_id, NEW.exchange, NEW.created_at, NEW.expires_at, NEW.seq) IS DISTINCT FROM
        (OLD.id, OLD.session, OLD.round_id, OLD.exchange, OLD.created_at, OLD.expires_at, OLD.seq))
    EXECUTE FUNCTION refuse('an approval closes once (spec 4.4)');
CREATE TRIGGER approvals_come_once BEFORE INSERT ON approvals FOR EACH ROW WHEN (NEW.state <> 'OPEN')
    EXECUTE FUNCTION refuse('an approval comes once, open (spec 4.3)');

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

CREATE FUNCTION approval_removed(approval uuid) RETURNS boolean LANGUAGE sql STABLE AS $$
    SELECT s.deleted_at IS NOT NULL FROM approvals a JOIN sessions s ON s.n = a.session WHERE a.id = approval $$;

CREATE TRIGGER reviews_decided_once BEFORE UPDATE ON reviews FOR EACH ROW
    WHEN ((OLD.answer IS NOT NULL OR (NEW.approval_id, NEW.call_id, NEW.ordinal, NEW.definition, NEW.arguments, NEW.preview, NEW.verdict, NEW.grounds)
            IS DISTINCT FROM (OLD.approval_id, OLD.call_id, OLD.ordinal, OLD.definition, OLD.arguments, OLD.preview, OLD.verdict, OLD.grounds))
        AND NOT ((NEW.approval_id, NEW.call_id, NEW.ordinal, NEW.definition, NEW.verdict, NEW.answer, NEW.decided_by, NEW.decided_at) IS NOT DISTINCT FROM
            (OLD.approval_id, OLD.call_id, OLD.ordinal, OLD.definition, OLD.verdict, OLD.answer, OLD.decided_by, OLD.decided_at)
            AND NEW.arguments = 'null' AND NEW.preview = '{}' AND NEW.grounds = '[]' AND NEW.edited IS NULL AND NEW.edited_preview IS NULL
            AND NEW.reason IS NULL AND NEW.scope IS NULL AND approval_removed(OLD.approval_id)))
    EXECUTE FUNCTION refuse('a call is decided once, and on what was shown (decision 20)');
CREATE TRIGGER reviews_come_once BEFORE INSERT ON reviews FOR EACH ROW WHEN (NEW.answer IS NOT NULL)
    EXECUTE FUNCTION refuse('a review comes once, undecided (spec 4.3)');
-- No call that was put to a person goes on without that person's word (invariant 3). A call that is asked about anew is awaiting again.
CREATE FUNCTION call_was_approved() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF NOT EXISTS (SELECT 1 FROM reviews r JOIN approvals a ON a.id = r.approval_id WHERE r.call_id = OLD.id AND a.state = 'OPEN' AND r.answer LIKE 'allow%') THEN
        RAISE EXCEPTION 'no approval of exactly this call (invariant 3)' USING ERRCODE = 'check_violation';
    END IF;
    RETURN NEW;
END $$;
CREATE TRIGGER calls_approved BEFORE UPDATE ON calls FOR EACH ROW WHEN (NEW.state = 'APPROVED' AND OLD.state <> 'APPROVED')
    EXECUTE FUNCTION call_was_approved();

CREATE TABLE questions (
    wait_id uuid PRIMARY KEY REFERENCES waits (id),
    call_id uuid  NOT NULL REFERENCES calls (id),
    module  bytea NOT NULL,
    request bytea -- the answer's own id
);
CREATE FUNCTION wait_removed(wait uuid) RETURNS boolean LANGUAGE sql STABLE AS $$
    SELECT s.deleted_at IS NOT NULL FROM waits w JOIN sessions s ON s.n = w.session WHERE w.id = wait $$;
CREATE TRIGGER questions_never_change BEFORE UPDATE ON questions FOR EACH ROW
    WHEN ((NEW.wait_id, NEW.call_id) IS DISTINCT FROM (OLD.wait_id, OLD.call_id)
        OR (NEW.module <> OLD.module AND (NEW.module <> '{}' OR NOT wait_removed(OLD.wait_id))))
    EXECUTE FUNCTION refuse('what was asked never changes (spec 4.5)');

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
CREATE TRIGGER rules_come_once BEFORE INSERT ON rules FOR EACH ROW WHEN (NEW.revoked_at IS NOT NULL)
    EXECUTE FUNCTION refuse('a rule comes once, and counts then (spec 4.4)');
CREATE TRIGGER rules_never_change BEFORE UPDATE ON rules FOR EACH ROW
    WHEN (OLD.revoked_at IS NOT NULL OR (NEW.id, NEW.workspace_id, NEW.session, NEW.verdict, NEW.tool, NEW.scope, NEW.author, NEW.from_call, NEW.created_at,
        NEW.expires_at) IS DISTINCT FROM (OLD.id, OLD.workspace_id, OLD.session, OLD.verdict, OLD.tool, OLD.scope, OLD.author, OLD.from_call, OLD.created_at, OLD.expires_at))
    EXECUTE FUNCTION refuse('a rule never changes: it is revoked (spec 4.4)');

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

CREATE FUNCTION undo_removed(undo uuid) RETURNS boolean LANGUAGE sql STABLE AS $$
    SELECT s.deleted_at IS NOT NULL FROM undos u JOIN sessions s ON s.n = u.session WHERE u.id = undo $$;

CREATE FUNCTION undo_comes() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF EXISTS (SELECT 1 FROM rounds r WHERE r.session = NEW.session AND r.state <> 'ENDED') THEN
        RAISE EXCEPTION 'undo is refused while a round of the session runs (decision 16)' USING ERRCODE = 'check_violation';
    END IF;
    IF NEW.state <> 'INTENDED'
        OR NOT EXISTS (SELECT 1 FROM rounds r JOIN sessions s ON s.n = r.session
            WHERE r.id = NEW.round_id AND r.session = NEW.session AND r.state = 'ENDED' AND s.workspace_id = NEW.workspace_id AND s.deleted_at IS NULL)
        OR (NEW.undoes IS NOT NULL AND NOT EXISTS (SELECT 1 FROM undos u WHERE u.id = NEW.undoes AND u.round_id = NEW.round_id AND u.state = 'DONE')) THEN
        RAISE EXCEPTION 'an undo comes once, intended, of a round that has ended or of a done undo of it, one at a time in a workspace (decision 16)'
            USING ERRCODE = 'check_violation';
    END IF;
    RETURN NEW;
END $$;
CREATE FUNCTION no_undo_under_way() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF EXISTS (SELECT 1 FROM undos u WHERE u.session = NEW.session AND u.state = 'INTENDED') THEN
        RAISE EXCEPTION 'no round of the session starts while an undo is under way (decision 16)' USING ERRCODE = 'check_violation';
    END IF;
    RETURN NEW;
END $$;
CREATE FUNCTION files_are_settled() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF EXISTS (SELECT 1 FROM undo_files f WHERE f.undo_id = OLD.id AND f.outcome IS NULL) THEN
        RAISE EXCEPTION 'an undo is done once, when it is known what became of each of its files (decision 16)' USING ERRCODE = 'check_violation';
    END IF;
    RETURN NEW;
END $$;
-- Nothing changes before what is there, and what is to be there, is kept.
CREATE FUNCTION undo_file_comes() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF NEW.outcome IS NOT NULL OR NEW.path = ''
        OR NOT EXISTS (SELECT 1 FROM undos u WHERE u.id = NEW.undo_id AND u.state = 'INTENDED')
        OR (NEW.from_hash IS NOT NULL AND NOT EXISTS (SELECT 1 FROM blobs b WHERE b.hash = NEW.from_hash AND b.data IS NOT NULL))
        OR (NEW.to_hash IS NOT NULL AND NOT EXISTS (SELECT 1 FROM blobs b WHERE b.hash = NEW.to_hash AND b.data IS NOT NULL)) THEN
        RAISE EXCEPTION 'a file comes once into an undo that is intended, and only when its contents are kept (decision 16)' USING ERRCODE = 'check_violation';
    END IF;
    RETURN NEW;
END $$;
CREATE FUNCTION chat_is_undone() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF NOT EXISTS (SELECT 1 FROM undos u WHERE u.session = OLD.session AND u.state = 'INTENDED' AND u.chat = 1) THEN
        RAISE EXCEPTION 'messages are superseded only by an undo of the chat (decision 16)' USING ERRCODE = 'check_violation';
    END IF;
    RETURN NEW;
END $$;
CREATE TRIGGER undos_come_once BEFORE INSERT ON undos FOR EACH ROW EXECUTE FUNCTION undo_comes();
CREATE TRIGGER rounds_not_while_undoing BEFORE INSERT ON rounds FOR EACH ROW WHEN (NEW.state <> 'ENDED') EXECUTE FUNCTION no_undo_under_way();
CREATE TRIGGER undos_done_once BEFORE UPDATE ON undos FOR EACH ROW
    WHEN ((NEW.id, NEW.session, NEW.workspace_id, NEW.round_id, NEW.undoes, NEW.forced, NEW.chat, NEW.author, NEW.seq, NEW.created_at) IS DISTINCT FROM
          (OLD.id, OLD.session, OLD.workspace_id, OLD.round_id, OLD.undoes, OLD.forced, OLD.chat, OLD.author, OLD.seq, OLD.created_at)
        OR NOT (OLD.state = 'INTENDED' AND NEW.state = 'DONE' AND (NEW.makes, NEW.removes, NEW.effects) = (OLD.makes, OLD.removes, OLD.effects)
            OR (NEW.state, NEW.done_at, NEW.message_id) IS NOT DISTINCT FROM (OLD.state, OLD.done_at, OLD.message_id)
                AND NEW.makes = '[]' AND NEW.removes = '[]' AND NEW.effects = '[]' AND removed(OLD.session)))
    EXECUTE FUNCTION refuse('an undo is done once, and changes in nothing else (decision 16)');
CREATE TRIGGER undos_done_whole BEFORE UPDATE ON undos FOR EACH ROW WHEN (OLD.state = 'INTENDED') EXECUTE FUNCTION files_are_settled();
CREATE TRIGGER undo_files_come_once BEFORE INSERT ON undo_files FOR EACH ROW EXECUTE FUNCTION undo_file_comes();
CREATE TRIGGER undo_files_settle_once BEFORE UPDATE ON undo_files FOR EACH ROW
    WHEN ((NEW.undo_id, NEW.ordinal, NEW.from_size, NEW.from_perm, NEW.to_size, NEW.to_perm) IS DISTINCT FROM
          (OLD.undo_id, OLD.ordinal, OLD.from_size, OLD.from_perm, OLD.to_size, OLD.to_perm)
        OR NOT (OLD.outcome IS NULL AND NEW.outcome IS NOT NULL AND (NEW.path, NEW.from_hash, NEW.to_hash) IS NOT DISTINCT FROM (OLD.path, OLD.from_hash, OLD.to_hash)
            OR (NEW.outcome, NEW.code) IS NOT DISTINCT FROM (OLD.outcome, OLD.code) AND NEW.path = '' AND NEW.why IS NULL AND NEW.from_hash IS NULL
                AND NEW.to_hash IS NULL AND undo_removed(OLD.undo_id)))
    EXECUTE FUNCTION refuse('what became of a file is said once, and nothing else of it changes (decision 16)');
-- A message is superseded, or counts again, only by an undo that is under way.
CREATE TRIGGER messages_superseded BEFORE UPDATE OF superseded ON messages FOR EACH ROW WHEN (NEW.superseded <> OLD.superseded)
    EXECUTE FUNCTION chat_is_undone();

CREATE TRIGGER undos_never_go BEFORE DELETE ON undos FOR EACH ROW EXECUTE FUNCTION refuse('undos are never deleted (decisions 15 and 16)');
CREATE TRIGGER undo_files_never_go BEFORE DELETE ON undo_files FOR EACH ROW EXECUTE FUNCTION refuse('undos are never deleted (decisions 15 and 16)');
CREATE TRIGGER undos_never_emptied BEFORE TRUNCATE ON undos FOR EACH STATEMENT EXECUTE FUNCTION refuse('undos are never emptied (decisions 15 and 16)');
CREATE TRIGGER undo_files_never_emptied BEFORE TRUNCATE ON undo_files FOR EACH STATEMENT EXECUTE FUNCTION refuse('undos are never emptied (decisions 15 and 16)');

-- One row for each session (day 0: ever) and one for each workspace and day. The rows of the calls say the same; these need no counting.
CREATE TABLE spending (
    day            bigint NOT NULL CHECK (day >= 0), -- 20261122
    owner          uuid   NOT NULL,
    spent_microusd bigint NOT NULL DEFAULT 0 CHECK (spent_microusd >= 0),
    due_microusd   bigint NOT NULL DEFAULT 0 CHECK (due_microusd >= 0), -- of it: what was reserved for calls whose cost nobody knows
    unknown_calls  bigint NOT NULL DEFAULT 0 CHECK (unknown_calls >= 0),
    PRIMARY KEY (day, owner)
);

CREATE TRIGGER spending_rises BEFORE UPDATE ON spending FOR EACH ROW
    WHEN ((NEW.day, NEW.owner) <> (OLD.day, OLD.owner) OR NEW.spent_microusd < OLD.spent_microusd OR NEW.due_microusd < OLD.due_microusd
        OR NEW.unknown_calls < OLD.unknown_calls)
    EXECUTE FUNCTION refuse('what was spent only rises (invariant 9)');
CREATE TRIGGER spending_never_goes BEFORE DELETE ON spending FOR EACH ROW EXECUTE FUNCTION refuse('what was spent is never deleted (invariant 9)');
CREATE TRIGGER spending_never_emptied BEFORE TRUNCATE ON spending FOR EACH STATEMENT EXECUTE FUNCTION refuse('what was spent is never deleted (invariant 9)');

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
CREATE TRIGGER cached_replies_live BEFORE INSERT ON cached_replies FOR EACH ROW WHEN (removed(NEW.session))
    EXECUTE FUNCTION refuse('what a removed session held is not kept (decision 15)');

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
CREATE TRIGGER proxied_ends_once BEFORE UPDATE ON proxied FOR EACH ROW WHEN (OLD.state <> 'OPEN')
    EXECUTE FUNCTION refuse('a model call has one end (decision 28)');

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
CREATE TRIGGER tokens_come_once BEFORE INSERT ON tokens FOR EACH ROW WHEN (NEW.revoked_at IS NOT NULL)
    EXECUTE FUNCTION refuse('a token comes once, and is active then (spec 11.2)');
CREATE TRIGGER tokens_never_change BEFORE UPDATE ON tokens FOR EACH ROW
    WHEN ((NEW.id, NEW.user_id, NEW.kind, NEW.name, NEW.hash, NEW.scopes, NEW.workspaces, NEW.on_approval, NEW.created_at, NEW.created_by, NEW.expires_at)
        IS DISTINCT FROM (OLD.id, OLD.user_id, OLD.kind, OLD.name, OLD.hash, OLD.scopes, OLD.workspaces, OLD.on_approval, OLD.created_at, OLD.created_by, OLD.expires_at)
        OR OLD.revoked_at IS NOT NULL AND (NEW.revoked_at, NEW.revoked_by, NEW.last_used_at) IS DISTINCT FROM (OLD.revoked_at, OLD.revoked_by, OLD.last_used_at))
    EXECUTE FUNCTION refuse('a token never changes: it is used, and revoked once (spec 11.2)');
CREATE TRIGGER tokens_never_go BEFORE DELETE ON tokens FOR EACH ROW EXECUTE FUNCTION refuse('tokens are never deleted: they are revoked (spec 11.2)');
CREATE TRIGGER tokens_never_emptied BEFORE TRUNCATE ON tokens FOR EACH STATEMENT EXECUTE FUNCTION refuse('tokens are never emptied (spec 11.2)');

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
CREATE TRIGGER settings_stay BEFORE UPDATE OR DELETE ON settings FOR EACH ROW EXECUTE FUNCTION refuse('what was settled is never rewritten');

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

-- What is never deleted is not truncated either.
DO $$
DECLARE name text;
BEGIN
    FOREACH name IN ARRAY ARRAY['events', 'chains', 'sessions', 'rounds', 'exchanges', 'attempts', 'messages', 'attachments', 'calls', 'waits', 'approvals',
            'reviews', 'questions', 'rules'] LOOP
        EXECUTE format('CREATE TRIGGER %I BEFORE DELETE ON %I FOR EACH ROW EXECUTE FUNCTION refuse(%L)', name || '_never_go', name,
            name || ' are never deleted: bodies are erased, and tombstones stay (decision 15)');
    END LOOP;
    FOREACH name IN ARRAY ARRAY['events', 'event_bodies', 'chains', 'sessions', 'rounds', 'exchanges', 'attempts', 'messages', 'attachments', 'calls', 'waits',
            'approvals', 'reviews', 'questions', 'rules'] LOOP
        EXECUTE format('CREATE TRIGGER %I BEFORE TRUNCATE ON %I FOR EACH STATEMENT EXECUTE FUNCTION refuse(%L)', name || '_never_emptied', name,
            name || ' are never emptied (decision 15)');
    END LOOP;
END $$;
-- +goose StatementEnd
