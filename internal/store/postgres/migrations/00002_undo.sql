-- Undo of what a round made of files (decision 16): an operation of its own, intended before any file changes and done when what became
-- of each file is known. Nothing of what it takes back is deleted.

-- +goose Up

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
    PRIMARY KEY (undo_id, ordinal)
);
-- Where the session was removed its files have no path any more.
CREATE UNIQUE INDEX undo_files_once ON undo_files (undo_id, path) WHERE path <> '';
CREATE INDEX undo_files_from ON undo_files (from_hash) WHERE from_hash IS NOT NULL;
CREATE INDEX undo_files_to ON undo_files (to_hash) WHERE to_hash IS NOT NULL;

CREATE FUNCTION undo_removed(undo uuid) RETURNS boolean LANGUAGE sql STABLE AS $$
    SELECT s.deleted_at IS NOT NULL FROM undos u JOIN sessions s ON s.n = u.session WHERE u.id = undo $$;

-- +goose StatementBegin
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
-- +goose StatementEnd
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
