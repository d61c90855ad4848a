// Package dialect is the JSON dialect of spec 3.3, for models without tool calls: their reply is
// one JSON object of the AIMessage form (spec 2.2). What the model is told about it is in
// instructions.go, how the object is found in extract.go, how it is read in parse.go, and how
// stored turns are written in it again in encode.go (package prompt decides which turns those are).
//
// Reading is lenient about where the object stands and strict about what it says. Lenient means
// exactly this: text, code fences and other objects around it, a byte order mark, a <think> block
// before it, commas before a closing bracket, raw line feeds, tabs and other control characters
// inside strings, the same object twice, fields that say nothing (null, false, "", []) where their
// pattern does not have them, and params that are left out. Everything else is a FormatError with
// its path, what was expected and what was found. Nothing is ever guessed about what a command
// means.
//
// The package is pure, and its cost is linear in the reply.
package dialect
