-- Embeddings and what they cost. They outlive Rebuild and another wordsVersion; a change here is another application id.

CREATE TABLE IF NOT EXISTS meta (
	name  TEXT PRIMARY KEY, -- generation: of the words; vectors: another value after some were deleted
	value TEXT NOT NULL
) STRICT, WITHOUT ROWID;

-- An embedder, by provider.Embedder.Space: only vectors of one space can be compared.
CREATE TABLE IF NOT EXISTS spaces (
	id         INTEGER PRIMARY KEY AUTOINCREMENT,
	name       TEXT    NOT NULL UNIQUE,
	dimensions INTEGER NOT NULL, -- 0 until there is a vector
	upto       INTEGER NOT NULL, -- every chunk up to this id has been embedded, or cannot be
	used       INTEGER NOT NULL, -- larger than that of spaces that were used before
	outdated   INTEGER NOT NULL  -- 1: the model answers with other dimensions now
) STRICT;

-- A vector belongs to a text, not to a chunk: what was moved or comes back is not embedded again. An id is never used again.
CREATE TABLE IF NOT EXISTS embeddings (
	id     INTEGER PRIMARY KEY AUTOINCREMENT,
	space  INTEGER NOT NULL REFERENCES spaces (id) ON DELETE CASCADE,
	hash   BLOB    NOT NULL, -- SHA-256 of the text
	vector BLOB,             -- little-endian 32-bit numbers, of length 1; NULL where the model cannot embed the text
	UNIQUE (space, hash)
) STRICT;

-- The signs of each vector, a bit each. They are all read into memory; beside the vectors that would read those too.
CREATE TABLE IF NOT EXISTS signs (
	id    INTEGER PRIMARY KEY REFERENCES embeddings (id) ON DELETE CASCADE,
	space INTEGER NOT NULL,
	signs BLOB    NOT NULL
) STRICT;

-- What embedding took on a day (UTC). Under a cap it is reserved before a batch is sent, so that a kill cannot make it forgotten.
CREATE TABLE IF NOT EXISTS embedding_costs (
	day      TEXT    PRIMARY KEY,
	microusd INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
