package main

import (
	"os"
	"testing"
)

// TestChatCoversNoLink answers for all of docs/: a call of the same reply that leads out of it
// through a link is asked about all the same.
func TestChatCoversNoLink(t *testing.T) {
	t.Parallel()
	s := newStage(t,
		reply("Two files.", wanted{"a", "docs/a.txt", "one\n"}, wanted{"b", "docs/link/b.txt", "two\n"}, wanted{"c", "docs/c.txt", "three\n"}),
		reply("All done."))
	for _, dir := range []string{"docs", "src"} {
		if err := os.Mkdir(s.work(dir), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Symlink("../src", s.work("docs/link")); err != nil {
		t.Fatal(err)
	}
	c := s.regie("chat")
	c.expect("> ")
	c.enter("write")
	c.expect("call 1 of 3:")
	c.expect("[l] later")
	c.enter("s")
	c.expect("  3  any file below docs/")
	c.expect("b to go back: ")
	c.enter("3")
	c.expect("this also allows the calls 3") // that one was not shown before
	c.enter("y")
	c.expect("this covers, and allows, the calls 3")
	c.expect("call 2 of 3:")
	c.expect("docs/link/b.txt leads through a link to src/b.txt")
	c.expect("[l] later")
	c.enter("n")
	c.expect("All done.")
	c.expect("> ")
	c.press("\x04")
	c.ends(0)
	s.holds("docs/a.txt", "one\n")
	s.holds("src/b.txt", "")
	s.holds("docs/c.txt", "three\n")
}

// TestChatTwoPeople has somebody else answer one call of three while a person looks at it, who then
// answers all of them: they are told, nothing of their answer is taken as given, and they are asked
// about the two that are left.
func TestChatTwoPeople(t *testing.T) {
	t.Parallel()
	s := newStage(t,
		reply("Three files.", wanted{"a", "a.txt", "one\n"}, wanted{"b", "b.txt", "two\n"}, wanted{"c", "c.txt", "three\n"}),
		reply("All done."))
	c := s.regie("chat")
	c.expect("> ")
	c.enter("write")
	c.expect("call 1 of 3:")
	c.expect("[l] later")
	other := s.regie("deny", "last", "1", "--reason", "not that one")
	other.expect("denied: 1 call(s)")
	other.ends(0)
	c.enter("Y")
	c.expect("│ +three")
	c.expect("[Y] again allows these 3 calls")
	c.enter("y") // not that
	c.expect("[Y] again allows these 3 calls")
	c.enter("Y")
	c.expect("has already answered this: deny")
	c.expect("call 2 of 3:")
	c.expect("write 1 line to b.txt")
	c.expect("[l] later")
	c.enter("Y")
	c.expect("All done.")
	c.expect("> ")
	c.press("\x04")
	c.ends(0)
	s.holds("a.txt", "")
	s.holds("b.txt", "two\n")
	s.holds("c.txt", "three\n")
}

// TestChatSecondThoughts: a call that cannot run as it was edited does not run as it was proposed
// by the next yes, and what is asked once more takes a no.
func TestChatSecondThoughts(t *testing.T) {
	t.Parallel()
	s := newStage(t, reply("Two files.", wanted{"a", "a.txt", "one\n"}, wanted{"b", "b.txt", "two\n"}), reply("All done."))
	s.env = append(s.env, `EDITOR=sed -i 's/"content"/content/'`)
	c := s.regie("chat")
	c.expect("> ")
	c.enter("write")
	c.expect("call 1 of 2:")
	c.expect("[l] later")
	c.enter("e")
	c.expect("the edited arguments are not JSON")
	c.expect("[b] as it was proposed")
	c.enter("y")
	c.expect("it cannot run as you have edited it")
	c.expect("[b] as it was proposed")
	s.holds("a.txt", "")
	c.enter("b")
	c.expect("│ +one")
	c.expect("[l] later")
	c.enter("Y")
	c.expect("│ +two")
	c.expect("[Y] again allows these 2 calls")
	c.enter("what?")
	c.expect("[Y] again allows these 2 calls")
	c.enter("no")
	c.expect("[l] later")
	c.enter("n")
	c.expect("call 2 of 2:")
	c.expect("[l] later")
	c.enter("y")
	c.expect("All done.")
	c.expect("> ")
	c.press("\x04")
	c.ends(0)
	s.holds("a.txt", "")
	s.holds("b.txt", "two\n")
}
