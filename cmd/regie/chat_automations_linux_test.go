package main

import "testing"

// TestChatAutomations makes a chat an automation, in plain lines and on the drawn terminal, and
// manages it from there.
func TestChatAutomations(t *testing.T) {
	t.Parallel()
	s := newStage(t, reply("Looked."), reply("Again."))
	c := s.regie("chat")
	c.expect("> ")
	c.enter("/automations")
	c.expect("no automations in this workspace")
	c.enter("/automate daily 09:00")
	c.expect("give the agent the job once")
	c.enter("look around")
	c.expect("Looked.")
	c.expect("> ")
	c.enter("/automate sometimes")
	c.expect(`"sometimes" is not a schedule: write one such as every 15m`)
	c.enter("/automate weekly mon 09:00")
	c.expect("what you said in this chat  every Monday at 09:00 (")
	for range 5 {
		c.expect("next: Mon 20")
		c.expect(" 09:00 +")
	}
	c.expect("[y] create  [n] leave it > ")
	c.enter("n")
	c.expect("no automation was created")
	c.enter("/automations")
	c.expect("no automations in this workspace")
	c.press("\x04")
	c.ends(0)

	p := emulator(s, 100, 40, "chat", "-c")
	p.sees("ready", "Looked.")
	p.enter("/automate weekly mon 09:00")
	p.sees("every Monday at 09:00 (", "[y] create")
	p.press("y")
	p.sees("> look around", "version 1, agent main", "no regie serve runs on this data directory")
	p.enter("/automations pause last 2h")
	p.sees("[paused until ")
	p.enter("/automations pause last soon")
	p.sees(`"soon" is not a duration`)
	p.enter("/clear")
	p.enter("/automations resume")
	p.sees("next: Mon ")
	p.enter("/automations run")
	p.sees("MANUAL     RAN")
	p.enter("/automations rm")
	p.sees(`"rm" is none of run, show, pause`)
	p.enter("/automations show 00000000")
	p.sees("there is no automation 00000000 in this workspace")
	p.leaves()
	list := s.regie("automations", "list")
	list.expect("look around  every Monday at 09:00 (")
	list.ends(0)
}
