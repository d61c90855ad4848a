package main

import (
	"os"
	"strings"
	"testing"
)

// TestChatUndo takes runs back in a chat, their files and what was said, after a look at each;
// another terminal takes back one of its files too.
func TestChatUndo(t *testing.T) {
	t.Parallel()
	s := newStage(t,
		reply("First.", wanted{"a", "docs/a.txt", "one\n"}), reply("One."),
		reply("Second.", wanted{"b", "docs/b.txt", "two\n"}), reply("Two."))
	c := s.regie("chat", "--allow", "files.*")
	c.expect("> ")
	c.enter("/undo")
	c.expect("nothing was said in this chat")
	c.enter("write one")
	c.expect("One.")
	c.expect("> ")
	c.enter("write two")
	c.expect("Two.")
	c.expect("> ")

	c.enter("/undo")
	c.expect("undo of run ")
	c.expect("remove docs/b.txt, which did not exist before")
	c.expect("-two")
	c.expect("messages removed from the conversation (still readable): 4")
	c.expect("[y] undo  [n] leave it > ")
	c.enter("n")
	c.expect("nothing was undone")
	s.holds("docs/b.txt", "two\n")
	c.enter("/undo")
	c.expect("leave it > ")
	c.press("\x03") // Ctrl-C leaves the question, not the chat
	c.expect("nothing was undone")
	c.enter("/undo")
	c.expect("leave it > ")
	c.enter("y")
	c.expect("files put back: 1, the conversation that the agent sees has changed")
	c.expect("to revert this undo: /undo ")
	s.holds("docs/b.txt", "")
	c.mu.Lock()
	id := c.text.String()[c.seen : c.seen+8]
	c.mu.Unlock()
	c.expect("> ")
	c.enter("/undo " + id) // the way back that was given works where it was given
	c.expect("leave it > ")
	c.enter("y")
	c.expect("to revert this undo: /undo ")
	s.holds("docs/b.txt", "two\n")
	c.expect("> ")
	c.enter("/undo")
	c.expect("leave it > ")
	c.enter("y")
	c.expect("to revert this undo: /undo ")
	s.holds("docs/b.txt", "")
	s.holds("docs/a.txt", "one\n")
	c.expect("> ")

	other := s.regie("undo", "--yes")
	other.expect("docs/a.txt  removed")
	other.ends(0)
	c.expect("files put back: 1") // it was done elsewhere, and is told here
	s.holds("docs/a.txt", "")
	c.enter("/undo") // the words of that run are left
	c.expect("messages removed from the conversation (still readable): 4")
	c.expect("leave it > ")
	c.enter("y")
	c.expect("the conversation that the agent sees has changed")
	c.expect("> ")

	c.enter("once more")
	c.expect("One.")
	if read := s.read(); strings.Contains(read, "write one") || strings.Contains(read, "write two") || !strings.Contains(read, "[UNDONE]") {
		t.Errorf("the agent reads %s", read)
	}
	if err := os.WriteFile(s.work("docs/a.txt"), []byte("mine\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	c.expect("> ")
	c.enter("/undo files")
	c.expect("it has been changed since")
	c.expect("nothing was undone: of 1 files, 1 are in conflict; /undo force restores them anyway")
	s.holds("docs/a.txt", "mine\n")
	c.enter("/undo files force")
	c.expect("leave it > ")
	c.enter("y")
	c.expect("docs/a.txt  removed")
	s.holds("docs/a.txt", "")
	c.enter("/undo nonsense")
	c.expect(`"nonsense" is not an id`)
	c.press("\x04")
	c.ends(0)

	again := s.regie("chat", "-c")
	again.expect("› once more")
	again.expect("undo ")
	again.expect("> ")
	again.press("\x04")
	again.ends(0)
}
