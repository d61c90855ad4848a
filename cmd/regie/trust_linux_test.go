package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestTrustAtATerminal: a person sees what would count, and only a yes makes it so; the chat lists
// the skills, and the model is told of them. The workspace's slash commands, and the skills as
// such, send their messages from then on.
func TestTrustAtATerminal(t *testing.T) {
	t.Parallel()
	s := newStage(t, reply("Hello."), reply("Hello."), reply("Hello.")) //nolint:gocritic // it says the same again
	dir := filepath.Join(s.dir, "work", ".regie", "skills", "sealing")
	if err := os.MkdirAll(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "SKILL.md"), []byte("---\nname: sealing\ndescription: How letters are sealed.\n---\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	commands := filepath.Join(s.dir, "work", ".regie", "commands")
	if err := os.MkdirAll(commands, 0o700); err != nil {
		t.Fatal(err)
	}
	for name, text := range map[string]string{"review": "---\ndescription: Review a file\n---\nReview $1 with care.", "help": "never"} {
		if err := os.WriteFile(filepath.Join(commands, name+".md"), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for _, answer := range []string{"n", "", "maybe", "yes!", "\x04"} {
		c := s.regie("trust")
		c.expect("/review: Review a file")
		c.expect("sealing (.regie/skills/sealing): How letters are sealed.")
		c.expect("Trust exactly this? [y/N] ")
		if answer == "\x04" {
			c.press(answer)
		} else {
			c.enter(answer)
		}
		c.expect("not trusted")
		c.ends(exitError)
	}
	c := s.regie("chat")
	c.expect("this workspace has skills (1)")
	c.expect("slash commands of this workspace that do not count until you trust them: 2")
	c.expect("> ")
	c.enter("/review a.go")
	c.expect("there is no /review")
	c.enter("/skills")
	c.expect("no skills")
	c.expect("regie trust shows them")

	other := s.regie("trust")
	other.expect("[y/N] ")
	other.enter("y")
	other.expect("is trusted as it is now")
	other.ends(exitDone)

	c.enter("/skills")
	c.expect("sealing  How letters are sealed.")
	c.enter("/help")
	c.expect("/quit")
	c.expect("/review      Review a file")
	c.expect("/sealing     How letters are sealed.")
	for typed, sent := range map[string]string{"hello": "hello", "/review a.go": "Review a.go with care.", "/sealing the letter": "Use the skill sealing. the letter"} {
		c.enter(typed)
		c.expect("Hello.")
		if s.mu.Lock(); !strings.Contains(s.last, sent) {
			t.Errorf("%s: the model was told: %s", typed, s.last)
		}
		s.mu.Unlock()
	}
	if s.mu.Lock(); !strings.Contains(s.last, "- sealing: How letters are sealed.") {
		t.Errorf("the model was told: %s", s.last)
	}
	s.mu.Unlock()
	c.expect("> ")
	c.press("\x04")
	c.ends(exitDone)
}
