-- The files of a workspace, their chunks and terms. Rebuild and another wordsVersion make these tables anew.

DROP TABLE IF EXISTS terms;

DROP TABLE IF EXISTS chunks;

DROP TABLE IF EXISTS files;

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

-- An id is never used again, so newer chunks have larger ones.
CREATE TABLE chunks (
	id     INTEGER PRIMARY KEY AUTOINCREMENT,
	file   INTEGER NOT NULL REFERENCES files (id),
	first  INTEGER NOT NULL, -- lines, from 1
	last   INTEGER NOT NULL,
	symbol TEXT    NOT NULL, -- the declaration or the headings that it stands under
	hash   BLOB    NOT NULL, -- SHA-256 of text
	text   TEXT    NOT NULL
) STRICT;

CREATE INDEX chunks_file ON chunks (file);

CREATE INDEX chunks_hash ON chunks (hash);

-- The terms of each chunk by its id, split and stemmed by the splitter; ascii takes them apart at the spaces between them.
CREATE VIRTUAL TABLE terms USING fts5 (
	path, symbol, body, content = '', tokenize = 'ascii'
);

INSERT INTO terms (terms, rank) VALUES ('hashsize', 8388608); -- bytes that are gathered before they are written

-- generation tells these tables from those that were here before.
INSERT OR REPLACE INTO meta (name, value) VALUES ('generation', hex(randomblob(8))), ('vectors', hex(randomblob(8)));

DELETE FROM spaces WHERE outdated;

UPDATE spaces SET upto = 0;
