package main

import (
	"fmt"
	"net/http"
	"testing"
)

// TestScreenModes goes through the modes with Shift-Tab and /mode, in the status line of one
// terminal and the lines of another one, and leaves plan mode with the approval of a plan.
func TestScreenModes(t *testing.T) {
	t.Parallel()
	s := newStage(t, plans("look around"), plans("look closer"), reply("Carried out."))
	p := chatAt(s, 100, 30)
	p.sees("ready")
	p.press("BTab")
	p.sees("mode accept edits: changes of files run without asking", "· mode accept edits ·")
	p.press("BTab")
	p.sees("mode plan: only queries run", "· mode plan ·")
	p.enter("plan it")
	p.sees("Carry out this plan?", "1. look around", "yes, and change files without asking", "[t] no, because…")
	other := emulator(s, 100, 30, "chat", "-c", "--plain")
	other.sees("Carry out this plan?", "a number for yes")
	p.press("t")
	p.types("look closer")
	p.press("Enter")
	p.sees("1. look closer", "· mode plan ·")
	other.sees("1. look closer")
	other.enter("2")
	other.sees("mode accept edits: changes of files run without asking", "Carried out.")
	p.sees("· mode accept edits ·", "Carried out.")
	other.enter("/mode yolo")
	other.sees(`"yolo" is not a mode`)
	other.enter("/mode ask")
	other.sees("mode ask: changes and commands are asked about")
	p.gone("· mode accept edits ·")
	other.leaves()
	p.leaves()
}

// plans is a model that asks the person to approve a plan of one step.
func plans(step string) http.HandlerFunc {
	return calls("", called{step, "session__update_plan", fmt.Sprintf(`{"steps":[{"text":%q,"status":"pending"}],"approve":true}`, step)})
}
