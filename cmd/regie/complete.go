package main

import (
	"context"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/regie-run/regie"
	"github.com/regie-run/regie/internal/app"
	"github.com/regie-run/regie/internal/config"
	"github.com/regie-run/regie/internal/control"
	"github.com/regie-run/regie/internal/plain"
	"github.com/regie-run/regie/internal/store"
)

// completeTime bounds how long a shell waits for what could come next.
const completeTime = time.Second

// maxComplete bounds what a shell is given.
const maxComplete = 100

// suggest gives what could come next in a command line. It never asks a server, starts no engine
// and makes nothing: it reads what the engine that runs says, or the store beside it, and where
// either fails it has nothing to say.
type suggest func(ctx context.Context, conn *app.Conn, root string) []string

// completed adds what shells complete beside the names of commands and flags (spec 11.5).
func (c *command) completed(root *cobra.Command) {
	root.InitDefaultCompletionCmd()
	c.inAnyBash(root)
	arguments := map[string]struct {
		what suggest
		most int // arguments that are completed so; 0: all
	}{
		"regie answer": {c.questions, 1}, "regie approve": {c.approvals, 1}, "regie deny": {c.approvals, 1},
		"regie approvals show": {c.approvals, 1},
		"regie rules revoke":   {c.ruleIDs, 0}, "regie runs show": {c.runIDs, 1},
		"regie runs replay": {c.runIDs, 1}, "regie undo": {c.runIDs, 0},
		"regie prompt show": {c.sessionIDs, 1}, "regie verify": {c.sessionIDs, 1},
		"regie sessions show": {c.sessionIDs, 1}, "regie sessions rename": {c.sessionIDs, 1},
		"regie sessions fork": {c.sessionIDs, 1}, "regie sessions rm": {c.sessionIDs, 1},
		"regie sessions export": {c.sessionIDs, 1},
		"regie agents show":     {c.agentNames, 1}, "regie tools show": {c.everyTool, 1},
	}
	flags := map[string]suggest{
		"agent": c.agentNames, "provider": c.providerNames, "model": c.modelNames,
		"allow": c.toolNames, "resume": c.sessionIDs, "session": c.sessionIDs,
	}
	words := map[string][]string{
		"bell": {"auto", "always", "off"}, "dialect": {"native", "json"}, "relaunch": {"chain", "answer"},
		"on-approval": {"park", "deny"},
	}
	each(root, func(cmd *cobra.Command) {
		if a, is := arguments[cmd.CommandPath()]; is {
			cmd.ValidArgsFunction = func(cmd *cobra.Command, args []string,
				toComplete string,
			) ([]cobra.Completion, cobra.ShellCompDirective) {
				if a.most > 0 && len(args) >= a.most {
					return nil, cobra.ShellCompDirectiveNoFileComp
				}
				return c.suggested(cmd, a.what, toComplete)
			}
		} else if cmd.Args != nil && cmd.ValidArgsFunction == nil &&
			!slices.Contains([]string{"regie trust", "regie config validate", "regie man"}, cmd.CommandPath()) {
			cmd.ValidArgsFunction = cobra.NoFileCompletions
		}
		for name, of := range words {
			if cmd.CommandPath() == "regie run" && name == "on-approval" {
				of = []string{"ask", "park", "deny", "fail"}
			}
			if cmd.Flags().Lookup(name) != nil {
				// as below
				_ = cmd.RegisterFlagCompletionFunc(name, cobra.FixedCompletions(of,
					cobra.ShellCompDirectiveNoFileComp|cobra.ShellCompDirectiveKeepOrder))
			}
		}
		for name, what := range flags {
			if flag := cmd.Flags().Lookup(name); flag == nil || flag.Value.Type() == "bool" {
				continue
			}
			_ = cmd.RegisterFlagCompletionFunc(name, func(cmd *cobra.Command, _ []string,
				toComplete string,
			) ([]cobra.Completion, cobra.ShellCompDirective) {
				return c.suggested(cmd, what, toComplete)
			}) // of a flag that is there, once
		}
	})
}

// suggested asks for what could come next, with the settings that the line so far means.
func (c *command) suggested(cmd *cobra.Command, what suggest,
	toComplete string,
) ([]cobra.Completion, cobra.ShellCompDirective) {
	const plainly = cobra.ShellCompDirectiveNoFileComp | cobra.ShellCompDirectiveKeepOrder
	settings, err := config.Load(os.Getenv, c.flags)
	if err != nil || settings.Server != "" {
		return nil, plainly
	}
	c.config = settings
	ctx, cancel := context.WithTimeout(cmd.Context(), completeTime)
	defer cancel()
	root, _ := c.directory(true) // without one nothing of a workspace is suggested
	conn, err := c.attach(ctx, app.Options{ReadOnly: true})
	if err == nil {
		defer conn.Close()
	} else {
		conn = nil
	}
	var out []cobra.Completion
	for _, one := range what(ctx, conn, root) {
		if value, _, _ := strings.Cut(one, "\t"); strings.HasPrefix(value, toComplete) && len(out) < maxComplete {
			out = append(out, one)
		}
	}
	return out, plainly
}

// described is a suggestion with a few words on what it is.
func described(value, about string) string {
	return value + "\t" + strings.ReplaceAll(oneLine(plain.Line(about), 60), "\t", " ")
}

func (c *command) sessionIDs(ctx context.Context, conn *app.Conn, root string) (out []string) {
	if conn == nil || root == "" {
		return nil
	}
	found, err := conn.Sessions(ctx, store.SessionFilter{Root: root})
	if err != nil || len(found) == 0 {
		return nil
	}
	out = append(out, described("last", c.text.T("the newest")))
	for i := range found {
		out = append(out, described(found[i].ID.String(), found[i].Name))
	}
	return out
}

func (c *command) runIDs(ctx context.Context, conn *app.Conn, root string) (out []string) {
	if conn == nil || root == "" {
		return nil
	}
	found, err := conn.List(ctx, store.RoundFilter{Root: root, Limit: maxComplete})
	if err != nil || len(found) == 0 {
		return nil
	}
	out = append(out, described("last", c.text.T("the newest")))
	for i := range found {
		out = append(out, described(found[i].Round.ID.String(), found[i].Text))
	}
	return out
}

func (c *command) approvals(ctx context.Context, conn *app.Conn, root string) (out []string) {
	inbox := inboxOf(ctx, conn, root)
	for i := range inbox.Approvals {
		a := &inbox.Approvals[i]
		var about []string
		for _, r := range a.Reviews {
			about = append(about, c.text.Sentence(r.Preview.Sentence))
		}
		out = append(out, described(a.ID.String(), strings.Join(about, "; ")))
	}
	return out
}

func (c *command) questions(ctx context.Context, conn *app.Conn, root string) (out []string) {
	inbox := inboxOf(ctx, conn, root)
	for i := range inbox.Questions {
		out = append(out, described(inbox.Questions[i].ID.String(), inbox.Questions[i].Module.Text))
	}
	return out
}

func inboxOf(ctx context.Context, conn *app.Conn, root string) store.Inbox {
	if conn == nil {
		return store.Inbox{}
	}
	inbox, err := conn.Inbox(ctx, store.InboxFilter{Root: root, Brief: true})
	if err != nil {
		return store.Inbox{}
	}
	return inbox
}

func (c *command) ruleIDs(ctx context.Context, conn *app.Conn, root string) (out []string) {
	if conn == nil {
		return nil
	}
	found, err := conn.Rules(ctx, store.RuleFilter{Root: root})
	if err != nil {
		return nil
	}
	for i := range found.Rules {
		out = append(out, described(found.Rules[i].ID.String(), found.Rules[i].Scope.Tool))
	}
	return out
}

// providerNames are those that are configured, and the types.
func (c *command) providerNames(context.Context, *app.Conn, string) []string {
	names := append(c.config.ProviderNames(), config.TypeNames(true)...)
	slices.Sort(names)
	return slices.Compact(names)
}

// modelNames are those that the settings name: no server is asked.
func (c *command) modelNames(context.Context, *app.Conn, string) (out []string) {
	p, _ := c.config.Named(c.config.Provider)
	for size, name := range p.Models {
		out = append(out, described(size, name), name)
	}
	if c.config.Model != "" {
		out = append(out, c.config.Model)
	}
	slices.Sort(out)
	return slices.Compact(out)
}

// agentNames are the agents of the settings.
func (c *command) agentNames(context.Context, *app.Conn, string) (out []string) {
	for _, a := range control.Agents(c.config) {
		out = append(out, a.Name)
	}
	return out
}

// everyTool are the tools that an agent can call, those too that ask nobody.
func (c *command) everyTool(ctx context.Context, conn *app.Conn, _ string) (out []string) {
	definitions, err := app.HouseTools(c.config)
	if conn != nil {
		definitions, err = conn.Tools(ctx)
	}
	if err != nil {
		return nil
	}
	for i := range definitions {
		out = append(out, described(definitions[i].Name, definitions[i].Description))
	}
	return out
}

// toolNames are the tools that an agent has here, and the pattern of each toolkit.
func (c *command) toolNames(ctx context.Context, conn *app.Conn, _ string) (out []string) {
	if conn == nil {
		return nil
	}
	definitions, err := conn.Tools(ctx)
	if err != nil {
		return nil
	}
	for i := range definitions {
		if d := &definitions[i]; d.Kind == regie.KindAction && d.Role == "" {
			toolkit, _, _ := strings.Cut(d.Name, ".")
			out = append(out, described(d.Name, d.Description), toolkit+".*")
		}
	}
	slices.Sort(out)
	return slices.Compact(out)
}
