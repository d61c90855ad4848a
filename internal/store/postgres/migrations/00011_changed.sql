-- What a call made of files, where that is known only after it has run (spec 8.2, decision 16): a command's. It comes with the result, once, and
-- names the contents from before, which are blobs by then.

-- +goose Up

ALTER TABLE calls ADD COLUMN changed bytea CHECK (changed IS NULL OR (kind = 'action' AND started_at IS NOT NULL AND settled_at IS NOT NULL));

-- The permissions of the directory that a file comes back into, where that went with it.
ALTER TABLE undo_files ADD COLUMN to_dir_perm bigint NOT NULL DEFAULT 0;

CREATE TRIGGER calls_changed BEFORE UPDATE ON calls FOR EACH ROW
    WHEN (NEW.changed IS DISTINCT FROM OLD.changed
        AND NOT (OLD.state = 'STARTED' AND OLD.settled_at IS NULL AND OLD.changed IS NULL AND NEW.settled_at IS NOT NULL)
        AND NOT (NEW.changed IS NULL AND removed(OLD.session)))
    EXECUTE FUNCTION refuse('what a call made of files comes with its result, once (decision 16)');
CREATE TRIGGER calls_changed_comes BEFORE INSERT ON calls FOR EACH ROW WHEN (NEW.changed IS NOT NULL)
    EXECUTE FUNCTION refuse('what a call made of files comes with its result, once (decision 16)');
