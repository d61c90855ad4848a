// Package tui is the chat at a terminal (spec 10.1): a program that stays in the terminal's own
// scrollback. What is finished is written there once and never touched again; below it stands the
// live part, which alone is drawn anew: the end of a reply that streams in, running calls, the
// plan, what is asked, the prompt and the status line. It knows the Control and the
// conversation of internal/chat, and nothing of the engine.
//
// The pieces: markdown.go cuts Markdown where a block is complete and makes lines of it, with
// table.go and highlight.go; style.go wraps and paints; editor.go is what the person writes;
// model.go obeys messages, view.go shows the state; events.go and renderer.go draw a
// chat.Conversation; dialog.go says who has the keyboard and what a key decides, approval.go,
// question.go and choice.go what a person is asked; complete.go and history.go what they may type.
//
// All state belongs to the goroutine that runs the program's loop. What takes time runs in
// commands, each on a goroutine of the library, which hand a function back to the loop; they touch
// no state themselves. A chat.Feed follows the session on a goroutine of its own, read by one
// command at a time; Run stops it.
package tui
