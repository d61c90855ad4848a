// Package dialect is the JSON dialect of spec 3.3, for models without tool calls: their reply is
// one JSON object of the AIMessage form (spec 2.2). instructions.go explains it to the model,
// extract.go finds the object, parse.go reads it, and encode.go writes stored turns in it again
// (package prompt decides which turns).
//
// Reading is lenient about the place of the object and strict about its content. Lenient means
// exactly this: text, code fences and other objects around it, a byte order mark, a <think> block
// before it, commas before a closing bracket, raw line feeds, tabs and other control characters
// inside strings, the same object twice, empty fields (null, false, "", []) where their pattern
// does not have them, and omitted params. Everything else is a FormatError with its path, the
// expected and the found value. The reader never guesses what a command means.
//
// The package is pure, and its cost is linear in the reply.
package dialect
