// Package chat is the terminal's side of a session in plain lines (spec 10.1): it shows what waits
// for a person, puts approvals and questions to them, and holds a conversation. It knows the
// Control and the catalogue, and nothing of the engine.
//
// Conversation holds the state of a session, and what a person can do in it; a Renderer draws it.
// Page writes what waits, Asker puts it to the person, Stream writes what happens as it happens,
// Chat is the Renderer in plain lines. All of them run on their caller's goroutine.
//
// There are two goroutines. Input starts one that reads the terminal; it ends with the input, or
// soon after Close. Between Pause and Resume it does not read, so that an editor has the terminal
// alone. Feed starts one that follows a session's events; Stop ends it and waits for it.
package chat
