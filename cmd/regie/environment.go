package main

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"os"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/regie-run/regie"
	"github.com/regie-run/regie/internal/app"
	"github.com/regie-run/regie/internal/chat"
	"github.com/regie-run/regie/internal/config"
	"github.com/regie-run/regie/internal/dispatch"
	"github.com/regie-run/regie/internal/i18n"
	"github.com/regie-run/regie/internal/sanitize"
	"github.com/regie-run/regie/internal/workspace"
)

// environment holds what the commands share: the settings, the language, the streams.
type environment struct {
	flags    config.Flags
	config   config.Config
	text     *i18n.Printer
	stdin    *os.File
	stdout   io.Writer
	stderr   io.Writer
	level    *slog.LevelVar
	logLevel string     // as --log-level says it
	detected *app.Found // the result of the search for a model; nil where none was needed
}

// T returns a sentence in the user's language.
func (env *environment) T(format string, args ...any) string { return env.text.T(format, args...) }

// joinPair joins a name and its description.
func (env *environment) joinPair(about, said string) string { return env.T("%s: %s", about, said) }

// printf prints a translated line on standard output.
func (env *environment) printf(format string, args ...any) error {
	_, err := fmt.Fprintln(env.stdout, sanitize.Strip(env.T(format, args...)))
	return err
}

// notef prints a translated line on standard error.
func (env *environment) notef(format string, args ...any) {
	fmt.Fprintln(env.stderr, sanitize.Strip(env.T(format, args...)))
}

// printWrapped prints lines on standard error, broken between words to the terminal's width.
func (env *environment) printWrapped(lines string) {
	fmt.Fprintln(env.stderr, foldLines(sanitize.Strip(lines), terminalWidth(env.stderr)))
}

// newPage returns a page of stored things on a stream.
func (env *environment) newPage(w io.Writer) *chat.Page {
	return &chat.Page{W: w, Text: env.text, Now: time.Now}
}

// printer prints lines and keeps the first failure to write.
type printer struct {
	w    io.Writer
	text *i18n.Printer
	err  error
}

func (env *environment) newPrinter() *printer { return &printer{w: env.stdout, text: env.text} }

func (p *printer) printLine(format string, args ...any) {
	if p.err == nil {
		_, p.err = fmt.Fprintln(p.w, strings.TrimRight(sanitize.Strip(fmt.Sprintf(format, args...)), " "))
	}
}

// printText prints a translated line, indented.
func (p *printer) printText(indent, format string, args ...any) {
	p.printLine("%s%s", indent, p.text.T(format, args...))
}

func writeJSON(w io.Writer, value any) error {
	encoder := json.NewEncoder(w)
	encoder.SetIndent("", "  ")
	return encoder.Encode(value)
}

// orJSON prints a result as JSON unless it failed.
func orJSON(env *environment, value any, err error) error {
	if err != nil {
		return err
	}
	return writeJSON(env.stdout, value)
}

// printResult prints a result as JSON, or as show writes it for people, unless it failed.
func printResult(env *environment, asJSON bool, value any, err error, show func(*chat.Page)) error {
	if err != nil || asJSON {
		return orJSON(env, value, err)
	}
	page := env.newPage(env.stdout)
	show(page)
	return page.Err()
}

// printLines is printResult for lines of no page.
func printLines(env *environment, asJSON bool, value any, err error, show func(*printer)) error {
	if err != nil || asJSON {
		return orJSON(env, value, err)
	}
	p := env.newPrinter()
	show(p)
	return p.err
}

// addJSONFlag adds --json.
func addJSONFlag(env *environment, cmd *cobra.Command, asJSON *bool) {
	cmd.Flags().BoolVar(asJSON, "json", false, env.T("print JSON"))
}

// addAllFlag adds --all.
func addAllFlag(env *environment, cmd *cobra.Command, all *bool) {
	cmd.Flags().BoolVar(all, "all", false, env.T("of every workspace"))
}

// addViewFlags adds --all and --json.
func addViewFlags(env *environment, cmd *cobra.Command, all, asJSON *bool) {
	addAllFlag(env, cmd, all)
	addJSONFlag(env, cmd, asJSON)
}

// addHereFlag adds --here.
func addHereFlag(env *environment, cmd *cobra.Command, here *bool) {
	cmd.Flags().BoolVar(here, "here", false,
		env.T("allow the home directory, / or a directory of the system as the workspace"))
}

// connOptions completes the options of a connection.
func (env *environment) connOptions(o app.Options) app.Options {
	o.Config = env.config
	o.Log = slog.New(slog.NewTextHandler(env.stderr, &slog.HandlerOptions{Level: env.level}))
	return o
}

// connect attaches to the engine, or becomes it. A connection that can run something looks for a
// model first.
func (env *environment) connect(ctx context.Context, o app.Options) (*app.Conn, error) {
	if !o.ReadOnly && !o.StoreOnly {
		env.detectModel(ctx)
	}
	return app.Connect(ctx, env.connOptions(o))
}

// withConn calls do with a connection and closes it.
func withConn[T any](ctx context.Context, env *environment, o app.Options, do func(*app.Conn) (T, error)) (T, error) {
	conn, err := env.connect(ctx, o)
	if err != nil {
		return *new(T), err
	}
	out, err := do(conn)
	if closing := conn.Close(); err == nil {
		err = closing
	}
	return out, err
}

// readStore calls do with a connection that changes nothing.
func readStore[T any](ctx context.Context, env *environment, do func(*app.Conn) (T, error)) (T, error) {
	return withConn(ctx, env, app.Options{ReadOnly: true}, do)
}

// writeStore calls do with a connection that changes stored data and runs nothing.
func writeStore[T any](ctx context.Context, env *environment, do func(*app.Conn) (T, error)) (T, error) {
	return withConn(ctx, env, app.Options{StoreOnly: true}, do)
}

// readStoreOr returns readStore, with a result for the time before the first run, without a store.
func readStoreOr[T any](ctx context.Context, env *environment, empty T, do func(*app.Conn) (T, error)) (T, error) {
	connected := false
	out, err := readStore(ctx, env, func(conn *app.Conn) (T, error) {
		connected = true
		return do(conn)
	})
	if !connected && regie.CodeOf(err) == regie.CodeNotFound {
		return empty, nil
	}
	return out, err
}

// readWorkspace returns readStoreOr for the workspace of the current directory, or with all for
// all.
func readWorkspace[T any](ctx context.Context, env *environment, all bool, empty T,
	do func(conn *app.Conn, root string) (T, error),
) (out T, err error) {
	root, err := env.commandRoot(ctx, all)
	if err != nil {
		return out, err
	}
	return readStoreOr(ctx, env, empty, func(conn *app.Conn) (T, error) { return do(conn, root) })
}

// findWorkspace returns the workspace of a directory, empty for the current one or the one that
// --workspace names on the server's machine; here allows the home directory and / too.
func (env *environment) findWorkspace(ctx context.Context, dir string, here bool) (root, foundBy string, err error) {
	if dir == "" {
		if dir, err = env.workspaceDir(); err != nil {
			return "", "", err
		}
	}
	if env.config.Server == "" {
		return workspace.Detect(dir, os.Getenv("HOME"), here)
	}
	place, err := withConn(ctx, env, app.Options{}, func(conn *app.Conn) (regie.Workspace, error) {
		return conn.Workspaces.Open(ctx, dispatch.WorkspaceRequest{Path: dir, Here: here})
	})
	return place.Root, place.FoundBy, err
}

// localWorkspace returns workspace for commands on this machine's own files.
func (env *environment) localWorkspace(here bool) (root string, err error) {
	if env.config.Server != "" {
		return "", regie.Errorf(codeUsage, "this works on the files of this machine: leave --server (REGIE_SERVER) out")
	}
	root, _, err = env.findWorkspace(context.Background(), "", here)
	return root, err
}

// commandRoot returns the root of the workspace that a command looks in; empty for all of them.
func (env *environment) commandRoot(ctx context.Context, all bool) (root string, err error) {
	if !all {
		root, _, err = env.findWorkspace(ctx, "", true)
	}
	return root, err
}

// workspaceDir returns the directory that --workspace names, or the current one.
func (env *environment) workspaceDir() (string, error) {
	if env.flags.Workspace != "" {
		return env.flags.Workspace, nil
	}
	dir, err := os.Getwd()
	if err != nil {
		return "", regie.Errorf(regie.CodeFileNotFound, "the current directory cannot be read: %v", err)
	}
	return dir, nil
}

// askConfirmation asks a question at the terminal and returns an exit unless the answer is yes.
// Without a terminal it returns a usage error.
func (env *environment) askConfirmation(question, refused string) error {
	if !isAttended(env.stdin, env.stderr) {
		return regie.Errorf(codeUsage, "there is no terminal to ask on: use --yes")
	}
	fmt.Fprint(env.stderr, question)
	line, err := bufio.NewReader(env.stdin).ReadString('\n')
	if err != nil {
		fmt.Fprintln(env.stderr)
	}
	switch strings.ToLower(strings.TrimSpace(line)) {
	case "y", "yes", "o", "oui":
		return nil
	}
	fmt.Fprintln(env.stderr, refused)
	return exit{exitError}
}

// drainGrace bounds the wait for model calls after a signal that ends the process.
const drainGrace = 5 * time.Second

// drainCalls waits, before this process's engine closes, for the model calls and actions under way
// in it. A further signal, or the end of ctx, ends the wait.
func (env *environment) drainCalls(ctx context.Context, conn *app.Conn, signals <-chan os.Signal, ending bool) {
	ctx, cancel := context.WithCancel(ctx)
	if ending {
		ctx, cancel = context.WithTimeout(ctx, drainGrace)
	}
	defer cancel()
	go func() {
		select {
		case <-signals:
			cancel()
		case <-ctx.Done():
		}
	}()
	conn.Drain(ctx, func() {
		env.notef("waiting at most a minute for a model call or an action in progress in this engine (Ctrl-C: leave now; a model call is then repeated)")
	})
}

// tellResumed returns a callback that reports the runs that a new engine resumes, but for the one
// that the person resumes.
func (env *environment) tellResumed(except regie.ID) func(rounds []regie.ID) {
	return func(rounds []regie.ID) {
		for _, id := range rounds {
			if id != except {
				env.notef("resuming the interrupted run %s", id)
			}
		}
	}
}

// oneLine shortens text to n characters on one line.
func oneLine(s string, n int) string {
	runes := []rune(strings.Join(strings.Fields(s), " "))
	if len(runes) > n {
		return string(runes[:n-1]) + "…"
	}
	return string(runes)
}
