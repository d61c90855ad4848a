-- What is known of a workspace's files (spec 8.3). All of it can be made again from them: a change here is a new schemaVersion, and no migration.

CREATE TABLE meta (
	name  TEXT PRIMARY KEY,
	value ANY NOT NULL
) STRICT, WITHOUT ROWID;

-- revision counts the commits that changed chunks: who holds something of them in memory looks at it. outdated, where it is there, is the space whose
-- vectors are another model's than its name says now, so that a rebuild does not take them over.
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
	hash   BLOB    NOT NULL, -- SHA-256 of text
	text   TEXT    NOT NULL
) STRICT;

CREATE INDEX chunks_file ON chunks (file);

CREATE INDEX chunks_hash ON chunks (hash);

-- Which terms stand in which chunks, as package posting writes it: each commit has added a segment, and some were merged since. An id is never used again.
CREATE TABLE segments (
	id        INTEGER PRIMARY KEY AUTOINCREMENT,
	first     INTEGER NOT NULL, -- the ids of its chunks; no other segment has one between these
	last      INTEGER NOT NULL,
	chunks    INTEGER NOT NULL, -- how many they are, those that have gone since too
	files     BLOB    NOT NULL, -- where they lie, and how long they are
	directory BLOB    NOT NULL  -- the first term of each page
) STRICT;

CREATE TABLE pages (
	id   INTEGER PRIMARY KEY, -- the segment's, times 2^24, and the page's number
	body BLOB NOT NULL
) STRICT;

-- Chunks that have gone and are still in a segment.
CREATE TABLE gone (
	first INTEGER PRIMARY KEY, -- their ids
	last  INTEGER NOT NULL
) STRICT;

-- What turns texts into vectors, by provider.Embedder.Space: only vectors of one space can be compared.
CREATE TABLE spaces (
	id         INTEGER PRIMARY KEY AUTOINCREMENT,
	name       TEXT    NOT NULL UNIQUE,
	dimensions INTEGER NOT NULL, -- 0 until there is a vector
	upto       INTEGER NOT NULL  -- every chunk up to this id has been embedded, or cannot be; newer ones have larger ids
) STRICT;

-- A vector belongs to a text and not to the chunk that has it, so that what was moved, or comes back, is not embedded again. An id is never used again.
CREATE TABLE embeddings (
	id     INTEGER PRIMARY KEY AUTOINCREMENT,
	space  INTEGER NOT NULL REFERENCES spaces (id),
	hash   BLOB    NOT NULL, -- SHA-256 of the text
	vector BLOB,             -- little-endian 32-bit numbers, of length 1; NULL where the model cannot embed the text
	UNIQUE (space, hash)
) STRICT;

-- The texts that a model cannot embed: they are few, and each search has to know whether there are any.
CREATE INDEX embeddings_refused ON embeddings (space, hash) WHERE vector IS NULL;

-- The signs of each vector, a bit each, apart from it: they are all read into memory, which beside the vectors would read those too.
CREATE TABLE signs (
	id    INTEGER PRIMARY KEY REFERENCES embeddings (id),
	space INTEGER NOT NULL,
	signs BLOB    NOT NULL
) STRICT;

-- What embedding took on a day (UTC): under a cap it is reserved before a batch is sent, so that a kill cannot make it forgotten.
CREATE TABLE embedding_costs (
	day      TEXT    PRIMARY KEY,
	microusd INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
