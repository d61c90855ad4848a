package invariant

import (
	"context"
	"slices"

	"github.com/regie-run/regie"
	"github.com/regie-run/regie/internal/dialect"
	"github.com/regie-run/regie/internal/prompt"
	"github.com/regie-run/regie/internal/provider"
	"github.com/regie-run/regie/internal/store"
	"github.com/regie-run/regie/internal/tool"
	"github.com/regie-run/regie/internal/toolkit/files"
	"github.com/regie-run/regie/internal/toolkit/session"
)

// Legal returns the error of a strict vendor for a thread: providertest.Check.
type Legal func(head provider.Head, turns []provider.Turn) error

// Forks forks a session at each of its events between two, both included and cut to the log's ends
// (decision 17). Each fork must be legal for every vendor in both dialects, have a log that
// verifies, hold no message twice, and have nothing that could continue. The source's log must stay
// unchanged.
func Forks(ctx context.Context, of Case, from, to int64, legal Legal) {
	c := &check{Case: of}
	before, err := c.Store.Verify(ctx, c.Session)
	if err != nil {
		c.Fail("it cannot be forked: %v", err)
		return
	}
	media := func(a *regie.Attachment) []byte {
		data, err := c.Store.Blob(ctx, a.Blob)
		if err != nil && regie.CodeOf(err) != regie.CodeNotFound {
			c.Fail("its attachment %s: %v", a.Name, err)
		}
		return data
	}
	views := []prompt.View{
		{Names: tool.WireName, Media: media},
		{JSON: dialect.New(definitions(c), dialect.Options{Questions: true, Module: session.ParseModule})},
	}
	for at := max(1, from); at <= min(to, before.Events); at++ {
		out, err := c.Store.Fork(ctx, store.Fork{From: c.Session, At: at})
		if err != nil {
			c.Fail("it cannot be forked at %d: %v", at, err)
			return
		}
		c.saw("fork")
		if out.Open {
			c.saw("fork before an open batch")
		}
		c.checkFork(ctx, at, out.Session.ID, views, legal)
	}
	if report, err := c.Store.Verify(ctx, c.Session); err != nil || report.Events != before.Events {
		c.Fail("forks changed the log of their source: %+v, %v", report, err)
	}
}

func (c *check) checkFork(ctx context.Context, at int64, fork regie.ID, views []prompt.View, legal Legal) {
	if _, err := c.Store.Verify(ctx, fork); err != nil {
		c.Fail("the fork at %d does not verify (invariant 17): %v", at, err)
	}
	open, err := c.Store.OpenRound(ctx, fork)
	inbox, failed := c.Store.Inbox(ctx, store.InboxFilter{SessionID: fork, Closed: true})
	if err != nil || failed != nil || !open.IsZero() || len(inbox.Approvals)+len(inbox.Questions) > 0 {
		c.Fail("the fork at %d inherits a round or a wait: %v, %v, %v", at, open, err, failed)
	}
	thread, err := c.Store.Thread(ctx, fork, 0)
	if err != nil {
		c.Fail("the fork at %d cannot be read: %v", at, err)
		return
	}
	for _, v := range views {
		var turns []provider.Turn
		entries := prompt.Entries(thread.Messages, thread.Calls)
		prompt.WindowOf(entries).Shown(entries, 0, func(e prompt.Entry, _ int) { turns = append(turns, v.Show(e)...) })
		turns = append(turns, v.Turns(&regie.Message{Sender: regie.SenderUser, Text: "go on"}, nil)...)
		if err := legal(provider.Head{Level1: "You are."}, turns); err != nil {
			c.Fail("the fork at %d is not legal (invariant 18): %v", at, err)
		}
	}
}

// definitions are the tools that the JSON dialect knows.
func definitions(c *check) (out []regie.ToolDefinition) {
	builtin, err := files.Tools(nil)
	own, failed := session.Tools(c.Store.WholeResult)
	if err != nil || failed != nil {
		c.Fail("the tools: %v, %v", err, failed)
	}
	for _, t := range slices.Concat(builtin, own) {
		out = append(out, t.Definition())
	}
	return out
}
