package main

import (
	"strings"
	"testing"
)

// TestChatRules allows a directory for a day, sees the rule, has another process take it back over
// the engine's socket, and is asked again; then it stops with a message in the queue, and sees its
// words again.
func TestChatRules(t *testing.T) {
	t.Parallel()
	s := newStage(t,
		reply("First.", wanted{"a", "docs/a.txt", "one\n"}), reply("One."),
		reply("Second.", wanted{"b", "docs/b.txt", "two\n"}), reply("Two."),
		reply("Third.", wanted{"c", "docs/c.txt", "three\n"}), reply("Three."),
		reply("Fourth.", wanted{"d", "docs/d.txt", "four\n"}))
	c := s.regie("chat")
	c.expect("> ")
	c.enter("/rules")
	c.expect("no standing rules in this workspace")
	c.enter("write one")
	c.expect("[l] later")
	c.enter("a")
	c.expect("  3  any file below docs/")
	c.expect("b to go back: ")
	c.enter("3 1x")
	c.expect(`"1x" is not a duration`)
	c.expect("b to go back: ")
	c.enter("3 1d")
	c.expect("One.")
	c.expect("> ")
	c.enter("/rules")
	c.expect("allows files.write_file without asking: any file below docs/")
	c.expect("expires in 24 h, made ")
	c.expect(`the answer to "write 1 line to docs/a.txt (new file)"`)
	c.enter("write two")
	c.expect("Two.") // and nothing was asked
	c.expect("> ")

	other := s.regie("rules", "revoke", "last")
	other.expect("is revoked: any file below docs/")
	other.ends(0)
	c.enter("write three")
	c.expect("write 1 line to docs/c.txt")
	c.expect("[l] later")
	c.enter("a")
	c.expect("b to go back: ")
	c.enter("3")
	c.expect("Three.")
	c.expect("> ")
	c.enter("/rules")
	c.expect("never expires, made ")
	c.enter("/revoke")
	c.expect("say which")
	c.enter("/revoke last")
	c.expect("is revoked: any file below docs/")
	c.enter("/revoke last")
	c.expect("no standing rules in this workspace")

	c.enter("write four")
	c.expect("write 1 line to docs/d.txt")
	c.expect("[l] later")
	c.enter("l")
	c.expect("it stays in the inbox")
	c.enter("and then tidy up")
	c.expect("[q] send when this run has ended")
	c.enter("q")
	c.expect("queued: ")
	c.enter("/stop")
	c.expect("not sent, the agent never read it:")
	c.expect("› and then tidy up")
	c.expect("stopped")
	c.press("\x04")
	c.ends(0)
	if n := strings.Count(c.all(), "› and then tidy up"); n != 1 {
		t.Errorf("what came back is shown %d times", n)
	}
	s.holds("docs/b.txt", "two\n")
	s.holds("docs/d.txt", "")
	if strings.Contains(s.read(), "tidy up") {
		t.Error("the agent read what was given back")
	}
}
