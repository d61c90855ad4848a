// Package tui is the chat at a terminal (spec 10.1): a program that stays in the terminal's own
// scrollback. It writes finished text there once and never touches it again. Only the live part
// below is redrawn: the end of a streaming reply, running calls, the plan, the open dialog, the
// prompt and the status line. It knows the Control and the conversation of internal/chat, and
// nothing of the engine.
//
// The pieces: markdown.go cuts Markdown where a block is complete and makes lines of it, with
// table.go and highlight.go; style.go wraps and paints; editor.go is what the person writes;
// model.go obeys messages, view.go shows the state; events.go and renderer.go draw a
// chat.Conversation; dialog.go says who has the keyboard and what a key decides; approval.go,
// question.go and choice.go are the dialogs; complete.go and history.go offer text to the prompt.
//
// All state belongs to the goroutine that runs the program's loop. What takes time runs in
// commands, each on a goroutine of the library, which hand a function back to the loop; they touch
// no state themselves. A chat.Feed follows the session on a goroutine of its own, read by one
// command at a time; Run stops it.
package tui
