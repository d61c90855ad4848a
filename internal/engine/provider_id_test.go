package engine

import (
	"testing"

	"github.com/regie-run/regie"
)

// TestGuardSameID is ANTI_LOOP_ID in both directions (decision 9).
func TestGuardSameID(t *testing.T) {
	const refused = "ANTI_LOOP"
	for _, c := range []guardCase{
		{name: "an action", tell: func(s *story) {
			s.batch(wire(s.done(send, "x", "sent"), "id1"))
			s.newRound()
			s.batch(s.done(send, "y", "sent"))
		}, tool: send, id: "id1", want: refused, says: []string{"ANTI_LOOP_ID", "sent"}},
		{name: "a query", tell: func(s *story) { s.batch(wire(s.done(read, "x", "text"), "id1")) }, tool: read, id: "id1", want: refused, says: []string{"text"}},
		{name: "one that failed", tell: func(s *story) { s.batch(wire(s.failed(read, "x", true), "id1")) }, tool: read, id: "id1", want: "ANTI_LOOP ANTI_LOOP_ID", says: []string{"NO_PERMISSION: no permission for x"}},
		{name: "one of unknown outcome", tell: func(s *story) { s.batch(wire(s.unknown(send, "x"), "id1")) }, tool: send, id: "id1", want: "ANTI_LOOP ANTI_LOOP_ID ask", says: []string{"outcome is not known"}},
		{name: "an edited one", tell: func(s *story) { s.batch(wire(edited(s.done(send, "x", "sent"), "y"), "id1")) }, tool: send, id: "id1", want: refused},
		{name: "twice", tell: func(s *story) {
			s.batch(wire(s.done(read, "x", "text"), "id1"))
			again := s.notRun(read, "x", regie.NotRunAntiLoop)
			s.batch(wire(again, "call_"+again.ID.String()))
		}, tool: read, id: "id1", want: refused},

		{name: "one that was undone", tell: func(s *story) {
			s.batch(wire(s.done(write, "x", "ok"), "id1"))
			s.system(regie.SystemUndone)
		}, tool: write, id: "id1"},
		{name: "one of unknown outcome, behind an undo", tell: func(s *story) {
			s.batch(wire(s.unknown(send, "x"), "id1"))
			s.system(regie.SystemUndone)
		}, tool: send, id: "id1", want: "ask"},
		{name: "another id", tell: func(s *story) { s.batch(wire(s.done(read, "x", "text"), "id1")) }, tool: read, id: "id2"},
		{name: "no id", tell: func(s *story) { s.batch(wire(s.done(read, "x", "text"), "")) }, tool: read, id: noID},
		{name: "the same id with another signature", tell: func(s *story) { s.batch(wire(s.done(read, "y", "text"), "id1")) }, tool: read, id: "id1"},
		{name: "an action behind another of its id that failed", tell: func(s *story) {
			s.batch(wire(s.done(send, "x", "sent"), "id1"))
			s.batch(reissue(s.failed(write, "y", true)))
		}, tool: send, id: "id1", want: refused, says: []string{"ANTI_LOOP_ID", "sent"}},
		{name: "a failed action behind another of its id", tell: func(s *story) {
			s.batch(wire(s.failed(send, "x", true), "id1"))
			s.batch(reissue(s.done(write, "y", "ok")))
			s.newRound()
		}, tool: send, id: "id1", want: "ANTI_LOOP ANTI_LOOP_ID", says: []string{"NO_PERMISSION"}},
		{name: "an action behind calls without ids", tell: func(s *story) {
			s.batch(wire(s.done(send, "x", "sent"), "id1"))
			s.batch(reissue(s.done(read, "y", "text")), reissue(s.notRun(write, "y", regie.NotRunDenied)))
			s.batch(s.done(write, "y", "ok"))
		}, tool: send, id: "id1", want: refused},
		{name: "an action whose own id repeated another's", tell: func(s *story) {
			s.batch(wire(s.done(send, "y", "sent"), "id1"))
			s.batchAs("id1", reissue(s.done(send, "x", "sent too")))
			s.batch(s.done(write, "y", "ok"))
		}, tool: send, id: "id1", want: refused, says: []string{"sent too"}},
		{name: "an action behind the undo of another round", tell: func(s *story) {
			s.batch(wire(s.done(send, "x", "sent"), "id1"))
			s.newRound()
			s.batch(s.done(write, "y", "ok"))
			s.undone(s.round)
		}, tool: send, id: "id1", want: refused},
		{name: "an action whose id came again with other arguments", tell: func(s *story) {
			s.batch(wire(s.done(send, "y", "sent"), "id1"))
			s.batch(s.done(write, "y", "ok"))
		}, tool: send, id: "id1"},
		{name: "an action whose round was undone", tell: func(s *story) {
			s.batch(wire(s.done(write, "x", "ok"), "id1"))
			s.undone(s.round)
		}, tool: write, id: "id1"},
		{name: "one that was not run", tell: func(s *story) { s.batch(wire(s.notRun(send, "x", regie.NotRunInterrupted), "id1")) }, tool: send, id: "id1"},
		{name: "a provider that counts from one in every reply", tell: func(s *story) {
			s.batch(wire(s.done(read, "x", "before"), "call_0"))
			s.batch(reissue(s.done(write, "x", "ok"))) // came as call_0 too
		}, tool: read, id: "call_0"},
	} {
		t.Run(c.name, c.check)
	}
}
