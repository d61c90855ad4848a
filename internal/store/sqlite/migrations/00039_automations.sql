-- +goose Up
-- +goose StatementBegin
-- Automations (spec 5.3), each with its present version, and what each version was.
CREATE TABLE automations (
    id           BLOB    PRIMARY KEY CHECK (length(id) = 16),
    workspace_id BLOB    NOT NULL REFERENCES workspaces (id),
    user_id      BLOB    NOT NULL REFERENCES users (id),
    name         TEXT    NOT NULL,
    version      INTEGER NOT NULL CHECK (version > 0),
    seed_id      BLOB    NOT NULL REFERENCES sessions (id),
    definition   TEXT    NOT NULL,
    created_by   TEXT    NOT NULL,
    created_at   INTEGER NOT NULL,
    enabled      INTEGER NOT NULL CHECK (enabled IN (0, 1)),
    paused       INTEGER NOT NULL DEFAULT 0 CHECK (paused IN (0, 1)),
    paused_until INTEGER,
    pause_reason TEXT,
    failures     INTEGER NOT NULL DEFAULT 0,
    series_from  INTEGER NOT NULL,
    decided_to   INTEGER NOT NULL, -- the last nominal instant with its row among the fires
    hook         BLOB UNIQUE CHECK (length(hook) = 32), -- SHA-256 of the token of its webhook
    deleted_at   INTEGER
) STRICT, WITHOUT ROWID;
CREATE INDEX automations_by_workspace ON automations (workspace_id) WHERE deleted_at IS NULL;

CREATE TABLE automation_versions (
    automation_id BLOB    NOT NULL REFERENCES automations (id),
    version       INTEGER NOT NULL,
    name          TEXT    NOT NULL,
    seed_id       BLOB    NOT NULL REFERENCES sessions (id),
    definition    TEXT    NOT NULL,
    by            TEXT    NOT NULL,
    at            INTEGER NOT NULL,
    PRIMARY KEY (automation_id, version)
) STRICT, WITHOUT ROWID;

-- The instants at which automations were to run (decisions 26 and 57). A key is the nominal instant
-- of a schedule, the idempotency key of a webhook, or the request of a person.
CREATE TABLE fires (
    id            BLOB    PRIMARY KEY CHECK (length(id) = 16),
    automation_id BLOB    NOT NULL REFERENCES automations (id),
    trigger_kind  TEXT    NOT NULL CHECK (trigger_kind IN ('MANUAL', 'SCHEDULED', 'EVENT')),
    key           TEXT    NOT NULL,
    nominal_at    INTEGER NOT NULL,
    until         INTEGER,
    count         INTEGER NOT NULL DEFAULT 1,
    outcome       TEXT    NOT NULL CHECK (outcome IN ('DUE', 'RAN', 'SKIPPED', 'COALESCED', 'OVERLAP', 'FAILED')),
    reason        TEXT,
    version       INTEGER NOT NULL,
    session_id    BLOB UNIQUE REFERENCES sessions (id),
    late          INTEGER NOT NULL DEFAULT 0 CHECK (late IN (0, 1)),
    payload       TEXT,
    created_at    INTEGER NOT NULL,
    settled_at    INTEGER,
    UNIQUE (automation_id, trigger_kind, key),
    CHECK ((outcome = 'DUE') = (settled_at IS NULL)),
    CHECK ((outcome = 'RAN') = (session_id IS NOT NULL))
) STRICT, WITHOUT ROWID;
CREATE INDEX fires_by_automation ON fires (automation_id, nominal_at);
CREATE INDEX fires_due ON fires (nominal_at) WHERE outcome = 'DUE';
CREATE INDEX sessions_of_automations ON sessions (automation_id) WHERE automation_id IS NOT NULL;
-- +goose StatementEnd
