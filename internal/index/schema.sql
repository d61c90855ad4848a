-- What is known of a workspace's files (spec 8.3). All of it can be made again from them: a change here is a new schemaVersion, and no migration.

CREATE TABLE meta (
	name  TEXT PRIMARY KEY,
	value ANY NOT NULL
) STRICT, WITHOUT ROWID;

-- revision counts the commits that changed chunks: who holds something of them in memory looks at it.
INSERT INTO meta (name, value) VALUES ('revision', 0);

CREATE TABLE files (
	id         INTEGER PRIMARY KEY,
	path       TEXT    NOT NULL UNIQUE,
	sha256     BLOB    NOT NULL, -- empty where the file was not read
	size       INTEGER NOT NULL, -- bytes
	mtime      INTEGER NOT NULL, -- nanoseconds since 1970, as ctime
	ctime      INTEGER NOT NULL,
	indexed_at INTEGER NOT NULL, -- when its stamp was read, before its content
	skipped    TEXT    NOT NULL  -- why it has no chunks; empty where it has, or where there is nothing in it
) STRICT;

-- An id is never used again: what refers to one that has gone finds nothing.
CREATE TABLE chunks (
	id     INTEGER PRIMARY KEY AUTOINCREMENT,
	file   INTEGER NOT NULL REFERENCES files (id),
	first  INTEGER NOT NULL, -- lines, from 1
	last   INTEGER NOT NULL,
	symbol TEXT    NOT NULL, -- the declaration or the headings that it stands under
	text   TEXT    NOT NULL,
	hash   BLOB    NOT NULL  -- SHA-256 of text
) STRICT;

CREATE INDEX chunks_file ON chunks (file);

CREATE INDEX chunks_hash ON chunks (hash);

-- The terms of each chunk, by its id, as package index splits and stems them: ascii only takes them apart again at the spaces between them.
CREATE VIRTUAL TABLE terms USING fts5 (
	path, symbol, body, content = '', contentless_delete = 1, tokenize = 'ascii'
);

-- Bytes of terms that are gathered before they are written.
INSERT INTO terms (terms, rank) VALUES ('hashsize', 8388608);
