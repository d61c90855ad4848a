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
	"github.com/regie-run/regie/internal/plain"
	"github.com/regie-run/regie/internal/store"
)

const (
	completeTime = time.Second // how long a shell waits
	maxComplete  = 100         // suggestions
)

// suggest returns suggestions for a word of a command line, from the store alone: it starts no
// engine and makes nothing.
type suggest func(ctx context.Context, env *environment, conn *app.Conn, root string) ([]string, error)

type directive = cobra.ShellCompDirective

// addCompletions adds what shells complete besides the names of commands and flags (spec 11.5).
func addCompletions(env *environment, root *cobra.Command) {
	root.InitDefaultCompletionCmd()
	arguments := map[string]suggest{
		"answer": completeInbox, "approve": completeInbox, "deny": completeInbox,
		"approvals show": completeInbox, "runs show": completeRuns, "runs replay": completeRuns,
		"undo": completeRuns, "prompt show": completeSessions, "verify": completeSessions,
		"sessions show": completeSessions, "sessions fork": completeSessions,
		"sessions rm": completeSessions, "sessions export": completeSessions, "tools show": completeTools,
	}
	flags := map[string]suggest{"allow": completeTools, "resume": completeSessions, "session": completeSessions}
	visitCommands(root, func(cmd *cobra.Command) {
		path := strings.TrimPrefix(cmd.CommandPath(), "regie ")
		if what, is := arguments[path]; is {
			cmd.ValidArgsFunction = completeWith(env, what)
		} else if cmd.Args != nil && cmd.ValidArgsFunction == nil &&
			!slices.Contains([]string{"trust", "config validate", "man"}, path) {
			cmd.ValidArgsFunction = cobra.NoFileCompletions
		}
		for name, what := range flags {
			if flag := cmd.Flags().Lookup(name); flag != nil && flag.Value.Type() != "bool" {
				_ = cmd.RegisterFlagCompletionFunc(name, completeWith(env, what))
			}
		}
	})
}

// completeWith suggests what begins with a word, by the settings of the line so far.
func completeWith(env *environment, what suggest) cobra.CompletionFunc {
	return func(cmd *cobra.Command, _ []string, word string) ([]string, directive) {
		const listed = cobra.ShellCompDirectiveNoFileComp | cobra.ShellCompDirectiveKeepOrder
		var err error
		if env.config, err = config.Load(os.Getenv, env.flags); err != nil || env.config.Server != "" {
			return nil, listed
		}
		ctx, cancel := context.WithTimeout(cmd.Context(), completeTime)
		defer cancel()
		found, err := readWorkspace(ctx, env, false, nil, func(conn *app.Conn, root string) ([]string, error) {
			return what(ctx, env, conn, root)
		})
		if err != nil {
			return nil, listed
		}
		found = slices.DeleteFunc(found, func(one string) bool { return !strings.HasPrefix(one, word) })
		return found[:min(len(found), maxComplete)], listed
	}
}

// described returns a suggestion with a description.
func described(value, about string) string {
	return value + "\t" + strings.ReplaceAll(oneLine(plain.Line(about), 60), "\t", " ")
}

// describeAll returns a suggestion for each element of a list, after the word last.
func describeAll[T any](env *environment, list []T, of func(*T) (id regie.ID, about string)) (out []string) {
	if len(list) > 0 {
		out = append(out, described("last", env.T("the newest")))
	}
	for i := range list {
		id, about := of(&list[i])
		out = append(out, described(id.String(), about))
	}
	return out
}

func completeSessions(ctx context.Context, env *environment, conn *app.Conn, root string) ([]string, error) {
	found, err := conn.Sessions(ctx, store.SessionFilter{Root: root})
	return describeAll(env, found, func(s *store.SessionSummary) (regie.ID, string) { return s.ID, s.Name }), err
}

func completeRuns(ctx context.Context, env *environment, conn *app.Conn, root string) ([]string, error) {
	found, err := conn.List(ctx, store.RoundFilter{Root: root, Limit: maxComplete})
	return describeAll(env, found, func(r *store.RoundSummary) (regie.ID, string) { return r.Round.ID, r.Text }), err
}

func completeInbox(ctx context.Context, env *environment, conn *app.Conn, root string) ([]string, error) {
	inbox, err := conn.Inbox(ctx, store.InboxFilter{Root: root, Brief: true})
	asked := describeAll(env, inbox.Approvals, func(a *regie.Approval) (regie.ID, string) {
		return a.ID, env.text.Sentence(a.Reviews[0].Preview.Sentence)
	})
	return append(asked, describeAll(env, inbox.Questions, func(q *regie.Question) (regie.ID, string) {
		return q.ID, q.Module.Text
	})...), err
}

func completeTools(ctx context.Context, _ *environment, conn *app.Conn, _ string) (out []string, err error) {
	definitions, err := conn.Tools(ctx)
	for i := range definitions {
		out = append(out, described(definitions[i].Name, definitions[i].Description))
	}
	return out, err
}
