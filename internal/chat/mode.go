package chat

import (
	"cmp"
	"context"
	"slices"

	"github.com/regie-run/regie"
	"github.com/regie-run/regie/internal/dispatch"
	"github.com/regie-run/regie/internal/i18n"
)

// ModeWords returns the name of a mode and what it means (decision 71).
func ModeWords(t *i18n.Printer, mode regie.Mode) (name, about string) {
	switch mode {
	case regie.ModeAcceptEdits:
		return t.T("accept edits"), t.T("changes of files run without asking; /undo restores them")
	case regie.ModePlan:
		return t.T("plan"), t.T("only queries run, until you approve the plan")
	case regie.ModeAuto:
		return t.T("auto"), t.T("changes of files and sandboxed commands without network run without asking")
	default:
		return t.T("ask"), t.T("changes and commands are asked about unless a rule allows them")
	}
}

// chooseMode sets the mode that is named, or has the person choose one.
func chooseMode(c *Conversation, name string) {
	if name != "" {
		c.SetMode(regie.Mode(name))
		return
	}
	now, _ := ModeWords(c.Text, c.Mode)
	choice := &Choice{
		Title: c.Text.T("which mode:"), Note: c.Text.T("the mode is %s; /mode NAME sets another one", now),
		Then: func(value string) { c.SetMode(regie.Mode(value)) },
	}
	for _, mode := range regie.Modes() {
		_, about := ModeWords(c.Text, mode)
		choice.Options = append(choice.Options, Option{string(mode), string(mode) + "  " + about})
	}
	c.Renderer.Choose(choice)
}

// SetMode gives the session another mode; one without messages begins with it. What has become of
// it an event tells.
func (c *Conversation) SetMode(mode regie.Mode) {
	if err := regie.CheckMode(mode); err != nil {
		c.Renderer.ShowError(err)
		return
	}
	if !isStored(c) {
		takeMode(c, mode)
		return
	}
	in := dispatch.SessionChange{SessionID: c.Session, ApprovalMode: mode}
	loadBeside(c, func(ctx context.Context) (struct{}, error) {
		return struct{}{}, c.Control.ChangeSession(ctx, in)
	}, func(struct{}) {})
}

// CycleMode gives a conversation's session the next mode.
func CycleMode(c *Conversation) {
	all := regie.Modes()
	c.SetMode(all[(slices.Index(all, cmp.Or(c.Mode, regie.ModeAsk))+1)%len(all)])
}

// isStored reports whether the session has had a message: until then it has no row.
func isStored(c *Conversation) bool { return c.Feed != nil || !c.Last.IsZero() }

// takeMode takes the mode of the session.
func takeMode(c *Conversation, mode regie.Mode) {
	before := cmp.Or(c.Mode, regie.ModeAsk)
	if c.Mode = cmp.Or(mode, regie.ModeAsk); c.Mode != before && c.past == nil {
		c.Renderer.ShowMode(ModeWords(c.Text, c.Mode))
	}
}
