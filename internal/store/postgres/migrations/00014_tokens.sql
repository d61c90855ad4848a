-- Tokens of users (spec 11.2): what programs show as bearer and browsers as cookie. The secret itself is nowhere; events of a token stand in the
-- log of its user (decision 15: configuration).

-- +goose Up

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

-- A user has a log as a workspace has.
-- +goose StatementBegin
DO $$
DECLARE name text;
BEGIN
    SELECT conname INTO STRICT name FROM pg_constraint
        WHERE conrelid = 'chains'::regclass AND contype = 'c' AND pg_get_constraintdef(oid) LIKE '%workspace%';
    EXECUTE format('ALTER TABLE chains DROP CONSTRAINT %I', name);
END $$;
-- +goose StatementEnd
ALTER TABLE chains ADD CONSTRAINT chains_of_kinds CHECK (kind IN ('session', 'workspace', 'user'));
