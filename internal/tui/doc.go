// Package tui is the chat at a terminal (spec 10.1): a program that stays in the terminal's own
// scrollback. What is finished is written there once and never touched again; below it stands the
// live part, which alone is drawn anew: the end of a reply that streams in, running calls, the
// plan, what is asked, the prompt and the status line. It knows the Control and the
// conversation of internal/chat, and nothing of the engine.
//
// The pieces: markdown_blocks.go finds the blocks of Markdown that are complete, markdown.go,
// table.go and highlight.go make lines of them, style.go wraps and paints; editor.go is what the
// person writes; model.go obeys messages, view.go shows the state; events.go and renderer.go draw a
// chat.Conversation; focus.go says who has the keyboard; ask.go, question.go, undo.go and pick.go
// are what a person is asked; complete.go and history.go what they may type.
//
// All state belongs to the goroutine that runs the program's loop. What takes time runs in
// commands, each on a goroutine of the library, which hand a function back to the loop; they touch
// no state themselves. A chat.Feed follows the session on a goroutine of its own, read by one
// command at a time; Run stops it. One goroutine more hands on the signals, until Run returns.
package tui
