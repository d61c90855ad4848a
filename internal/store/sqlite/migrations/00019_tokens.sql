-- Tokens of users (spec 11.2): what programs show as bearer and browsers as cookie. The secret itself is nowhere; events of a token stand in the
-- log of its user (decision 15: configuration).

-- +goose Up

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

-- +goose StatementBegin
CREATE TRIGGER tokens_come_once BEFORE INSERT ON tokens
WHEN NEW.revoked_at IS NOT NULL OR EXISTS (SELECT 1 FROM tokens WHERE id = NEW.id OR hash = NEW.hash)
BEGIN SELECT RAISE(ABORT, 'a token comes once and is never replaced (spec 11.2)'); END;
-- +goose StatementEnd
-- +goose StatementBegin
CREATE TRIGGER tokens_never_change BEFORE UPDATE ON tokens
WHEN NEW.id <> OLD.id OR NEW.user_id <> OLD.user_id OR NEW.kind <> OLD.kind OR NEW.name <> OLD.name OR NEW.hash <> OLD.hash OR
     NEW.scopes <> OLD.scopes OR NEW.workspaces IS NOT OLD.workspaces OR NEW.on_approval IS NOT OLD.on_approval OR NEW.created_at <> OLD.created_at OR
     NEW.created_by <> OLD.created_by OR NEW.expires_at IS NOT OLD.expires_at OR
     OLD.revoked_at IS NOT NULL AND (NEW.revoked_at IS NOT OLD.revoked_at OR NEW.revoked_by IS NOT OLD.revoked_by OR NEW.last_used_at IS NOT OLD.last_used_at)
BEGIN SELECT RAISE(ABORT, 'a token never changes: it is used, and revoked once (spec 11.2)'); END;
-- +goose StatementEnd
-- +goose StatementBegin
CREATE TRIGGER tokens_never_go BEFORE DELETE ON tokens BEGIN SELECT RAISE(ABORT, 'tokens are never deleted: they are revoked (spec 11.2)'); END;
-- +goose StatementEnd

-- A user has a log as a workspace has. The constraint only becomes milder: its text is changed, as SQLite's documentation says.
PRAGMA writable_schema = ON;
UPDATE sqlite_schema SET sql = replace(sql, 'CHECK (kind IN (''session'', ''workspace''))', 'CHECK (kind IN (''session'', ''workspace'', ''user''))')
    WHERE type = 'table' AND name = 'chains';
PRAGMA writable_schema = RESET;
-- A change of the schema that SQLite knows of has every connection read it anew.
DROP TRIGGER chains_never_go;
-- +goose StatementBegin
CREATE TRIGGER chains_never_go BEFORE DELETE ON chains BEGIN SELECT RAISE(ABORT, 'chains are never deleted (decision 15)'); END;
-- +goose StatementEnd
