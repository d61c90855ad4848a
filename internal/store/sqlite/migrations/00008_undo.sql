-- Undo of what a round made of files (decision 16): an operation of its own, intended before any file changes and done when what became
-- of each file is known. Nothing of what it takes back is deleted.

-- +goose Up

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
-- Files belong to their workspace, so one at a time changes them.
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
    PRIMARY KEY (undo_id, ordinal)
) STRICT, WITHOUT ROWID;

CREATE INDEX undo_files_from ON undo_files (from_hash) WHERE from_hash IS NOT NULL;
CREATE INDEX undo_files_to ON undo_files (to_hash) WHERE to_hash IS NOT NULL;

-- +goose StatementBegin
CREATE TRIGGER undos_come_once BEFORE INSERT ON undos
WHEN NEW.state <> 'INTENDED' OR EXISTS (SELECT 1 FROM undos WHERE id = NEW.id)
  OR EXISTS (SELECT 1 FROM undos WHERE workspace_id = NEW.workspace_id AND state = 'INTENDED')
  OR NOT EXISTS (SELECT 1 FROM rounds r JOIN sessions s ON s.n = r.session
    WHERE r.id = NEW.round_id AND r.session = NEW.session AND r.state = 'ENDED' AND s.workspace_id = NEW.workspace_id AND s.deleted_at IS NULL)
  OR (NEW.undoes IS NOT NULL AND NOT EXISTS (SELECT 1 FROM undos WHERE id = NEW.undoes AND round_id = NEW.round_id AND state = 'DONE'))
BEGIN SELECT RAISE(ABORT, 'an undo comes once, intended, of a round that has ended or of a done undo of it, one at a time in a workspace (decision 16)'); END;
-- +goose StatementEnd
-- +goose StatementBegin
CREATE TRIGGER undos_not_while_running BEFORE INSERT ON undos WHEN EXISTS (SELECT 1 FROM rounds WHERE session = NEW.session AND state <> 'ENDED')
BEGIN SELECT RAISE(ABORT, 'undo is refused while a round of the session runs (decision 16)'); END;
-- +goose StatementEnd
-- +goose StatementBegin
CREATE TRIGGER rounds_not_while_undoing BEFORE INSERT ON rounds
WHEN NEW.state <> 'ENDED' AND EXISTS (SELECT 1 FROM undos WHERE session = NEW.session AND state = 'INTENDED')
BEGIN SELECT RAISE(ABORT, 'no round of the session starts while an undo is under way (decision 16)'); END;
-- +goose StatementEnd
-- +goose StatementBegin
CREATE TRIGGER undos_done_once BEFORE UPDATE ON undos
WHEN NEW.id <> OLD.id OR NEW.session <> OLD.session OR NEW.workspace_id <> OLD.workspace_id OR NEW.round_id <> OLD.round_id
  OR NEW.undoes IS NOT OLD.undoes OR NEW.forced <> OLD.forced OR NEW.chat <> OLD.chat OR NEW.author <> OLD.author OR NEW.seq <> OLD.seq
  OR NEW.created_at <> OLD.created_at
  OR NOT (OLD.state = 'INTENDED' AND NEW.state = 'DONE' AND NEW.makes = OLD.makes AND NEW.removes = OLD.removes AND NEW.effects = OLD.effects
    OR NEW.state = OLD.state AND NEW.done_at IS OLD.done_at AND NEW.message_id IS OLD.message_id AND NEW.makes = '[]' AND NEW.removes = '[]' AND NEW.effects = '[]'
      AND (SELECT deleted_at FROM sessions WHERE n = OLD.session) IS NOT NULL)
  OR (OLD.state = 'INTENDED' AND EXISTS (SELECT 1 FROM undo_files WHERE undo_id = OLD.id AND outcome IS NULL))
BEGIN SELECT RAISE(ABORT, 'an undo is done once, when it is known what became of each of its files, and changes in nothing else (decision 16)'); END;
-- +goose StatementEnd
-- +goose StatementBegin
CREATE TRIGGER undos_never_go BEFORE DELETE ON undos BEGIN SELECT RAISE(ABORT, 'undos are never deleted (decisions 15 and 16)'); END;
-- +goose StatementEnd

-- Nothing changes before what is there, and what is to be there, is kept.
-- +goose StatementBegin
CREATE TRIGGER undo_files_come_once BEFORE INSERT ON undo_files
WHEN NEW.outcome IS NOT NULL OR NEW.path = '' OR EXISTS (SELECT 1 FROM undo_files WHERE undo_id = NEW.undo_id AND (ordinal = NEW.ordinal OR path = NEW.path))
  OR NOT EXISTS (SELECT 1 FROM undos WHERE id = NEW.undo_id AND state = 'INTENDED')
  OR (NEW.from_hash IS NOT NULL AND NOT EXISTS (SELECT 1 FROM blobs WHERE hash = NEW.from_hash AND (data IS NOT NULL OR in_file = 1)))
  OR (NEW.to_hash IS NOT NULL AND NOT EXISTS (SELECT 1 FROM blobs WHERE hash = NEW.to_hash AND (data IS NOT NULL OR in_file = 1)))
BEGIN SELECT RAISE(ABORT, 'a file comes once into an undo that is intended, and only when its contents are kept (decision 16)'); END;
-- +goose StatementEnd
-- +goose StatementBegin
CREATE TRIGGER undo_files_settle_once BEFORE UPDATE ON undo_files
WHEN NEW.undo_id <> OLD.undo_id OR NEW.ordinal <> OLD.ordinal OR NEW.from_size <> OLD.from_size OR NEW.from_perm <> OLD.from_perm
  OR NEW.to_size <> OLD.to_size OR NEW.to_perm <> OLD.to_perm
  OR NOT (OLD.outcome IS NULL AND NEW.outcome IS NOT NULL AND NEW.path = OLD.path AND NEW.from_hash IS OLD.from_hash AND NEW.to_hash IS OLD.to_hash
    OR NEW.outcome IS OLD.outcome AND NEW.code IS OLD.code AND NEW.path = '' AND NEW.why IS NULL AND NEW.from_hash IS NULL AND NEW.to_hash IS NULL
      AND (SELECT s.deleted_at FROM undos u JOIN sessions s ON s.n = u.session WHERE u.id = OLD.undo_id) IS NOT NULL)
BEGIN SELECT RAISE(ABORT, 'what became of a file is said once, and nothing else of it changes (decision 16)'); END;
-- +goose StatementEnd
-- +goose StatementBegin
CREATE TRIGGER undo_files_never_go BEFORE DELETE ON undo_files BEGIN SELECT RAISE(ABORT, 'undos are never deleted (decisions 15 and 16)'); END;
-- +goose StatementEnd

-- A message is superseded, or counts again, only by an undo that is under way.
-- +goose StatementBegin
CREATE TRIGGER messages_superseded BEFORE UPDATE OF superseded ON messages
WHEN NEW.superseded <> OLD.superseded AND NOT EXISTS (SELECT 1 FROM undos WHERE session = OLD.session AND state = 'INTENDED' AND chat = 1)
BEGIN SELECT RAISE(ABORT, 'messages are superseded only by an undo of the chat (decision 16)'); END;
-- +goose StatementEnd
