-- +goose Up
-- +goose StatementBegin
-- Automations (spec 5.3), each with its present version, and what each version was.
CREATE TABLE automations (
    id           uuid     PRIMARY KEY,
    workspace_id uuid     NOT NULL REFERENCES workspaces (id),
    user_id      uuid     NOT NULL REFERENCES users (id),
    name         bytea    NOT NULL,
    version      bigint   NOT NULL CHECK (version > 0),
    seed_id      uuid     NOT NULL REFERENCES sessions (id),
    definition   bytea    NOT NULL,
    created_by   bytea    NOT NULL,
    created_at   bigint   NOT NULL,
    enabled      smallint NOT NULL CHECK (enabled IN (0, 1)),
    paused       smallint NOT NULL DEFAULT 0 CHECK (paused IN (0, 1)),
    paused_until bigint,
    pause_reason bytea,
    failures     bigint   NOT NULL DEFAULT 0,
    series_from  bigint   NOT NULL,
    decided_to   bigint   NOT NULL, -- the last nominal instant with its row among the fires
    hook         bytea UNIQUE CHECK (octet_length(hook) = 32), -- SHA-256 of the token of its webhook
    deleted_at   bigint
);
CREATE INDEX automations_by_workspace ON automations (workspace_id) WHERE deleted_at IS NULL;

CREATE TABLE automation_versions (
    automation_id uuid   NOT NULL REFERENCES automations (id),
    version       bigint NOT NULL,
    name          bytea  NOT NULL,
    seed_id       uuid   NOT NULL REFERENCES sessions (id),
    definition    bytea  NOT NULL,
    by            bytea  NOT NULL,
    at            bigint NOT NULL,
    PRIMARY KEY (automation_id, version)
);

-- The instants at which automations were to run (decisions 26 and 57). A key is the nominal instant
-- of a schedule, the idempotency key of a webhook, or the request of a person.
CREATE TABLE fires (
    id            uuid     PRIMARY KEY,
    automation_id uuid     NOT NULL REFERENCES automations (id),
    trigger_kind  text     NOT NULL CHECK (trigger_kind IN ('MANUAL', 'SCHEDULED', 'EVENT')),
    key           bytea    NOT NULL,
    nominal_at    bigint   NOT NULL,
    until         bigint,
    count         bigint   NOT NULL DEFAULT 1,
    outcome       text     NOT NULL CHECK (outcome IN ('DUE', 'RAN', 'SKIPPED', 'COALESCED', 'OVERLAP', 'FAILED')),
    reason        bytea,
    version       bigint   NOT NULL,
    session_id    uuid UNIQUE REFERENCES sessions (id),
    late          smallint NOT NULL DEFAULT 0 CHECK (late IN (0, 1)),
    payload       bytea,
    created_at    bigint   NOT NULL,
    settled_at    bigint,
    UNIQUE (automation_id, trigger_kind, key),
    CHECK ((outcome = 'DUE') = (settled_at IS NULL)),
    CHECK ((outcome = 'RAN') = (session_id IS NOT NULL))
);
CREATE INDEX fires_by_automation ON fires (automation_id, nominal_at);
CREATE INDEX fires_due ON fires (nominal_at) WHERE outcome = 'DUE';
CREATE INDEX sessions_of_automations ON sessions (automation_id) WHERE automation_id IS NOT NULL;
-- +goose StatementEnd
