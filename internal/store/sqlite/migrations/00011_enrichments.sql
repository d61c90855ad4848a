-- The DATA_ADDED of a person's enrichments owns their queries, as a reply owns the calls that it proposes (decision 46): calls and message
-- come together, so that nothing half done is ever stored.

-- +goose Up

-- SQLite changes no CHECK of a table that is there, and a new table under this one's foreign keys and triggers would be a copy of every
-- message. This is the way that its documentation gives for a constraint that only becomes milder: the text of the definition.
PRAGMA writable_schema = ON;
UPDATE sqlite_schema SET sql = replace(sql, 'CHECK (calls = 0 OR variant IN (''ai'', ''rich''))',
    'CHECK (calls = 0 OR variant IN (''ai'', ''rich'') OR coalesce(system_type, '''') = ''DATA_ADDED'')') WHERE type = 'table' AND name = 'messages';
PRAGMA writable_schema = RESET;
-- A change of the schema that SQLite knows of has every connection read it anew.
DROP TRIGGER messages_never_go;
-- +goose StatementBegin
CREATE TRIGGER messages_never_go BEFORE DELETE ON messages BEGIN SELECT RAISE(ABORT, 'messages are never deleted: their bodies are erased (decision 15)'); END;
-- +goose StatementEnd
