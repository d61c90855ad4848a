package main

import "testing"

// TestApproveEdit shows what an edited call would do, and runs nothing of it before the person has
// said yes to that.
func TestApproveEdit(t *testing.T) {
	t.Parallel()
	s := newStage(t, reply("One file.", wanted{"a", "a.txt", "one\n"}), reply("All done."))
	s.env = append(s.env, "EDITOR=sed -i s/one/zwei/")
	c := s.regie("run", "--on-approval", "park", "write")
	c.expect("approve with:")
	c.ends(exitParked)
	p := s.regie("approve", "last", "--edit")
	p.expect("│ +zwei")
	p.expect("[y/N]")
	p.enter("n")
	p.expect("nothing is decided")
	p.ends(exitError)
	s.holds("a.txt", "")
	p = s.regie("approve", "last", "--edit")
	p.expect("[y/N]")
	p.enter("y")
	p.expect("All done.")
	p.ends(exitDone)
	s.holds("a.txt", "zwei\n")
}
