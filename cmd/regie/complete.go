package main

import (
	"context"
	"io"
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

// suggest returns suggestions for a word of a command line. It asks no server, starts no engine and
// makes nothing. conn is nil where no store can be read.
type suggest func(ctx context.Context, env *environment, conn *app.Conn, root string) ([]string, error)

type directive = cobra.ShellCompDirective

// addCompletions adds what shells complete besides the names of commands and flags (spec 11.5).
func addCompletions(env *environment, root *cobra.Command) {
	root.InitDefaultCompletionCmd()
	addBareBash(env, root)
	runs, sessions := stored(completeRuns), stored(completeSessions)
	arguments := map[string]suggest{
		"answer": stored(completeQuestions), "approve": stored(completeApprovals), "deny": stored(completeApprovals),
		"approvals show": stored(completeApprovals), "rules revoke": stored(completeRules),
		"runs show": runs, "runs replay": runs, "undo": runs, "prompt show": sessions, "verify": sessions,
		"sessions show": sessions, "sessions rename": sessions, "sessions fork": sessions, "sessions rm": sessions,
		"sessions export": sessions, "agents show": completeAgents, "tools show": completeTools,
	}
	flags := map[string]suggest{
		"agent": completeAgents, "provider": completeProviders, "model": completeModels,
		"allow": stored(completeActions), "resume": sessions, "session": sessions,
	}
	words := map[string][]string{
		"bell": {"auto", "always", "off"}, "dialect": {"native", "json"}, "relaunch": {"chain", "answer"},
		"on-approval": {"park", "deny"},
	}
	visitCommands(root, func(cmd *cobra.Command) {
		path := strings.TrimPrefix(cmd.CommandPath(), "regie ")
		if what, is := arguments[path]; is {
			cmd.ValidArgsFunction = func(cmd *cobra.Command, args []string, word string) ([]string, directive) {
				if len(args) > 0 && path != "rules revoke" && path != "undo" {
					return nil, cobra.ShellCompDirectiveNoFileComp
				}
				return completeWith(env, cmd, what, word)
			}
		} else if cmd.Args != nil && cmd.ValidArgsFunction == nil &&
			!slices.Contains([]string{"trust", "config validate", "man"}, path) {
			cmd.ValidArgsFunction = cobra.NoFileCompletions
		}
		for name, of := range words {
			if path == "run" && name == "on-approval" {
				of = []string{"ask", "park", "deny", "fail"}
			}
			if cmd.Flags().Lookup(name) != nil {
				_ = cmd.RegisterFlagCompletionFunc(name, cobra.FixedCompletions(of,
					cobra.ShellCompDirectiveNoFileComp|cobra.ShellCompDirectiveKeepOrder))
			}
		}
		for name, what := range flags {
			if flag := cmd.Flags().Lookup(name); flag != nil && flag.Value.Type() != "bool" {
				_ = cmd.RegisterFlagCompletionFunc(name,
					func(cmd *cobra.Command, _ []string, word string) ([]string, directive) {
						return completeWith(env, cmd, what, word)
					})
			}
		}
	})
}

// completeWith returns the suggestions that begin with a word, by the settings of the line so far.
func completeWith(env *environment, cmd *cobra.Command, what suggest, word string) ([]string, directive) {
	const listed = cobra.ShellCompDirectiveNoFileComp | cobra.ShellCompDirectiveKeepOrder
	var err error
	if env.config, err = config.Load(os.Getenv, env.flags); err != nil || env.config.Server != "" {
		return nil, listed
	}
	ctx, cancel := context.WithTimeout(cmd.Context(), completeTime)
	defer cancel()
	root, _ := env.localWorkspace(true) // without one nothing of a workspace is suggested
	conn, err := env.connect(ctx, app.Options{ReadOnly: true})
	if err == nil {
		defer conn.Close()
	} else {
		conn = nil
	}
	found, err := what(ctx, env, conn, root)
	if err != nil {
		return nil, listed
	}
	found = slices.DeleteFunc(found, func(one string) bool { return !strings.HasPrefix(one, word) })
	return found[:min(len(found), maxComplete)], listed
}

// stored returns a suggest that has no suggestions where no store can be read.
func stored(what suggest) suggest {
	return func(ctx context.Context, env *environment, conn *app.Conn, root string) ([]string, error) {
		if conn == nil {
			return nil, nil
		}
		return what(ctx, env, conn, root)
	}
}

// described returns a suggestion with a description.
func described(value, about string) string {
	return value + "\t" + strings.ReplaceAll(oneLine(plain.Line(about), 60), "\t", " ")
}

// describeAll returns a suggestion for each element of a list.
func describeAll[T any](list []T, of func(*T) (id regie.ID, about string)) (out []string) {
	for i := range list {
		id, about := of(&list[i])
		out = append(out, described(id.String(), about))
	}
	return out
}

// withLast puts the word last before suggestions, where there are any.
func withLast(env *environment, out []string) []string {
	if len(out) == 0 {
		return nil
	}
	return append([]string{described("last", env.T("the newest"))}, out...)
}

func completeSessions(ctx context.Context, env *environment, conn *app.Conn, root string) ([]string, error) {
	found, err := conn.Sessions(ctx, store.SessionFilter{Root: root})
	return withLast(env, describeAll(found, func(s *store.SessionSummary) (regie.ID, string) {
		return s.ID, s.Name
	})), err
}

func completeRuns(ctx context.Context, env *environment, conn *app.Conn, root string) ([]string, error) {
	found, err := conn.List(ctx, store.RoundFilter{Root: root, Limit: maxComplete})
	return withLast(env, describeAll(found, func(r *store.RoundSummary) (regie.ID, string) {
		return r.Round.ID, r.Text
	})), err
}

func completeApprovals(ctx context.Context, env *environment, conn *app.Conn, root string) ([]string, error) {
	inbox, err := conn.Inbox(ctx, store.InboxFilter{Root: root, Brief: true})
	return describeAll(inbox.Approvals, func(a *regie.Approval) (regie.ID, string) {
		var about []string
		for i := range a.Reviews {
			about = append(about, env.text.Sentence(a.Reviews[i].Preview.Sentence))
		}
		return a.ID, strings.Join(about, "; ")
	}), err
}

func completeQuestions(ctx context.Context, _ *environment, conn *app.Conn, root string) ([]string, error) {
	inbox, err := conn.Inbox(ctx, store.InboxFilter{Root: root, Brief: true})
	return describeAll(inbox.Questions, func(q *regie.Question) (regie.ID, string) { return q.ID, q.Module.Text }), err
}

func completeRules(ctx context.Context, _ *environment, conn *app.Conn, root string) ([]string, error) {
	found, err := conn.Rules(ctx, store.RuleFilter{Root: root})
	return describeAll(found.Rules, func(r *store.StandingRule) (regie.ID, string) { return r.ID, r.Scope.Tool }), err
}

// completeProviders suggests the configured providers and the types.
func completeProviders(_ context.Context, env *environment, _ *app.Conn, _ string) ([]string, error) {
	names := append(env.config.ProviderNames(), config.TypeNames(true)...)
	slices.Sort(names)
	return slices.Compact(names), nil
}

// completeModels suggests the models of the settings; no server is asked.
func completeModels(_ context.Context, env *environment, _ *app.Conn, _ string) (out []string, _ error) {
	p, _ := env.config.Named(env.config.Provider)
	for size, name := range p.Models {
		out = append(out, described(size, name), name)
	}
	if env.config.Model != "" {
		out = append(out, env.config.Model)
	}
	slices.Sort(out)
	return slices.Compact(out), nil
}

func completeAgents(_ context.Context, env *environment, _ *app.Conn, _ string) (out []string, _ error) {
	for _, a := range app.Agents(env.config) {
		out = append(out, a.Name)
	}
	return out, nil
}

func completeTools(ctx context.Context, env *environment, conn *app.Conn, _ string) (out []string, err error) {
	definitions, err := app.HouseTools(env.config)
	if conn != nil {
		definitions, err = conn.Tools(ctx)
	}
	for i := range definitions {
		out = append(out, described(definitions[i].Name, definitions[i].Description))
	}
	return out, err
}

// completeActions suggests the tools that need an approval, and the pattern of each toolkit.
func completeActions(ctx context.Context, _ *environment, conn *app.Conn, _ string) (out []string, err error) {
	definitions, err := conn.Tools(ctx)
	for i := range definitions {
		if d := &definitions[i]; d.Kind == regie.KindAction && d.Role == "" {
			toolkit, _, _ := strings.Cut(d.Name, ".")
			out = append(out, described(d.Name, d.Description), toolkit+".*")
		}
	}
	slices.Sort(out)
	return slices.Compact(out), err
}

// bareBash has cobra's script work without the package bash-completion, which it takes the words of
// the line from: = and : part words for bash, and not for us.
const bareBash = `
if ! declare -F _get_comp_words_by_ref >/dev/null 2>&1; then
__regie_init_completion()
{
    local line=${COMP_LINE:0:COMP_POINT} i gap part last
    COMPREPLY=() words=() cur="" prev="" cword=0
    for ((i = 0; i <= COMP_CWORD; i++)); do
        if ((i < COMP_CWORD)); then
            part=${COMP_WORDS[i]}
            gap=${line%%"$part"*}
        else
            gap=${line%%[![:space:]]*}
            part=${line#"$gap"}
        fi
        line=${line#"$gap$part"}
        last=$((${#words[@]} - 1))
        if ((last > 0)) && [[ -z $gap && ($part == [=:]* || ${words[last]} == *[=:]) ]]; then
            words[last]+=$part
        else
            words+=("$part")
        fi
    done
    cword=$((${#words[@]} - 1))
    cur=${words[cword]}
    ((cword == 0)) || prev=${words[cword - 1]}
}
fi
`

// addBareBash adds bareBash to the script for bash.
func addBareBash(env *environment, root *cobra.Command) {
	bash, _, err := root.Find([]string{"completion", "bash"})
	if err != nil {
		return
	}
	script := bash.RunE
	bash.RunE = func(cmd *cobra.Command, args []string) error {
		if err := script(cmd, args); err != nil {
			return err
		}
		_, err := io.WriteString(env.stdout, bareBash)
		return err
	}
}
