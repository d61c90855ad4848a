package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/regie-run/regie"
	"github.com/regie-run/regie/client"
	"github.com/regie-run/regie/internal/app"
	"github.com/regie-run/regie/internal/approval"
	"github.com/regie-run/regie/internal/chat"
	"github.com/regie-run/regie/internal/config"
	"github.com/regie-run/regie/internal/dispatch"
	"github.com/regie-run/regie/internal/workspace"
)

// maxStdin bounds what is read from standard input.
const maxStdin = 4 << 20

type runFlags struct {
	json    bool
	timeout time.Duration
	resume  string
	// how far the log of the run that is resumed reached when the engine began here; 0: it had
	// ended, or no engine began
	since      int64
	session    string
	agent      string
	allow      []string
	onApproval string
	network    bool
	here       bool
	limits     regie.Limits
	loop       loopFlags
	unattended bool
	timeLimit  time.Duration
	deadline   time.Time // of --timeout; zero without one
	asks       bool      // a person is asked at once what the run would wait for
}

func (c *command) runCommand() *cobra.Command {
	var f runFlags
	cmd := &cobra.Command{
		Use: `run "…"`, Args: usage(cobra.MaximumNArgs(1)),
		Short: c.text.T("Give an agent one job in this directory and wait for the answer"),
		Long:  c.text.T("Give an agent one job in this directory. What comes on standard input is appended to the job.\nProgress goes to standard error, the answer to standard output.\n\nExit codes: 0 done, 1 error, 2 usage, 3 no model, 4 the run waits for an approval or an answer, 5 an action was denied, 6 a limit was reached, 7 timeout (the run is paused), 130 interrupted."),
		RunE: func(cmd *cobra.Command, args []string) error {
			return c.run(cmd.Context(), f, args, cmd.Flags().Changed)
		},
	}
	flags := cmd.Flags()
	flags.BoolVar(&f.json, "json", false, c.text.T("print each event as a line of JSON on standard output"))
	flags.DurationVar(&f.timeout, "timeout", 0, c.text.T("pause the run after this long, such as 10m (exit code 7)"))
	flags.StringVar(&f.resume, "resume", "",
		c.text.T("go on with a paused or interrupted run, by its id, or the end of it, or last"))
	flags.StringVar(&f.session, "session", "",
		c.text.T("give the job to this session of the workspace: its id, that of a run of it, the end of one, or last"))
	flags.StringVar(&f.agent, "agent", "main", c.text.T("the agent"))
	flags.StringSliceVar(&f.allow, "allow", nil,
		c.text.T("actions that need no approval in this run: files.write_file, files.*"))
	flags.StringVar(&f.onApproval, "on-approval", "",
		c.text.T("what happens with any other action: ask (here; the default at a terminal), park (the run waits, exit code 4; the default elsewhere), deny (the agent is told) or fail (the run ends)"))
	flags.BoolVar(&f.network, "wait-network", false,
		c.text.T("wait for a model that cannot be reached, until --timeout, instead of ending"))
	flags.BoolVar(&f.here, "here", false,
		c.text.T("allow the home directory, / or a directory of the system as the workspace"))
	flags.IntVar(&f.limits.Total, "max-replies", 0, c.text.T("lower the limit of the model's replies in this run"))
	flags.IntVar(&f.limits.ContextTokens, "context-tokens", 0,
		c.text.T("lower the budget of a prompt, in tokens: above it older messages are summarised"))
	flags.Int64Var(&f.limits.Tokens, "max-tokens", 0,
		c.text.T("end the run when its replies have used this many tokens (exit code 6)"))
	flags.DurationVar(&f.timeLimit, "time-limit", 0,
		c.text.T("end the run after it has worked this long, such as 10m (exit code 6)"))
	flags.BoolVar(&f.unattended, "unattended", false,
		c.text.T("nobody is there: the agent asks nothing, waits for the network, and ends the run itself by saying that all is done"))
	c.loopFlags(cmd, &f.loop)
	c.modelFlags(cmd)
	return cmd
}

// loopFlags are how a model is talked to.
type loopFlags struct {
	dialect, relaunch string
	noCache           bool
}

func (c *command) loopFlags(cmd *cobra.Command, f *loopFlags) {
	flags := cmd.Flags()
	flags.StringVar(&f.dialect, "dialect", "",
		c.text.T("how the model replies: native (tool calls of its API) or json, for models without them; left out, the model decides"))
	flags.StringVar(&f.relaunch, "relaunch",
		"",
		c.text.T("after calls that all succeeded: chain (the tools stay there) or answer (the model has to answer)"))
	flags.BoolVar(&f.noCache, "no-cache",
		false, c.text.T("ask the model, whatever it has answered before, and keep nothing of it in the response cache"))
}

// into puts the flags into a request.
func (f *loopFlags) into(request *dispatch.RunRequest) error {
	if f.dialect != "" && f.dialect != string(regie.DialectNative) && f.dialect != string(regie.DialectJSON) {
		return regie.Errorf(codeUsage, "--dialect is native or json, not %q", f.dialect)
	}
	if f.relaunch != "" && f.relaunch != string(approval.RelaunchChain) &&
		f.relaunch != string(approval.RelaunchAnswer) {
		return regie.Errorf(codeUsage, "--relaunch is chain or answer, not %q", f.relaunch)
	}
	request.NoCache = f.noCache
	request.Dialect, request.Policy.Relaunch = regie.Dialect(f.dialect), approval.Relaunch(f.relaunch)
	return nil
}

// modelFlags are the flags of every command that goes on with a run.
func (c *command) modelFlags(cmd *cobra.Command) {
	flags := cmd.Flags()
	flags.StringVar(&c.flags.Provider, "provider", "",
		c.text.T("openai (any compatible server), anthropic, gemini, ollama, demo, replay, or a name of regie.yaml (REGIE_PROVIDER)"))
	flags.StringVar(&c.flags.BaseURL, "base-url", "", c.text.T("address of the model server (REGIE_BASE_URL)"))
	flags.StringVar(&c.flags.Model, "model", "", c.text.T("name of the model, or small, medium, large (REGIE_MODEL)"))
	flags.StringVar(&c.flags.Replay, "replay", "", c.text.T("answer from this recording (REGIE_REPLAY)"))
	flags.StringVar(&c.flags.Record, "record", "",
		c.text.T("record what the model is asked and says into this file (REGIE_RECORD)"))
	flags.StringVar(&c.flags.RecordRaw,
		"record-raw", "",
		c.text.T("keep the bytes of each response in this directory, beside a recording (REGIE_RECORD_RAW)"))
}

func (c *command) run(ctx context.Context, f runFlags, args []string, changed func(flag string) bool) error {
	if err := f.validate(args, changed); err != nil {
		return err
	}
	if err := f.ask(attended(c.stdin, c.stderr)); err != nil {
		return err
	}
	ctx, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	signals := c.signals()
	defer signals.stop()
	// The clock runs from here: a job that never comes on standard input, or an engine that does
	// not answer, is also waited for.
	if f.timeout > 0 {
		f.deadline = time.Now().Add(f.timeout)
		timer := time.AfterFunc(f.timeout+connectGrace, func() { stop(errTimeout) })
		defer timer.Stop()
	}
	outcome, err := c.begin(ctx, f, args, signals)
	switch {
	case errors.Is(err, errTimeout), err != nil && errors.Is(context.Cause(ctx), errTimeout):
		fmt.Fprintln(c.stderr, c.text.T("time is up"))
		return exit{exitTimeout}
	case err != nil:
		return err
	}
	return outcome
}

// connectGrace is what storing a pause may take beyond the timeout.
const connectGrace = 10 * time.Second

var errTimeout = errors.New("time is up")

// validate refuses what would be ignored.
func (f *runFlags) validate(args []string, changed func(flag string) bool) error {
	if f.timeout < 0 || changed("timeout") && f.timeout == 0 {
		return regie.Errorf(codeUsage, "--timeout must be positive")
	}
	if changed("max-replies") && f.limits.Total < 1 {
		return regie.Errorf(codeUsage, "--max-replies must be at least 1")
	}
	if changed("context-tokens") && f.limits.ContextTokens < 1000 {
		return regie.Errorf(codeUsage, "--context-tokens must be at least 1000")
	}
	if changed("session") && f.session == "" {
		return regie.Errorf(codeUsage, "--session needs the id of a session: see regie sessions list")
	}
	if changed("max-tokens") && f.limits.Tokens < 1 {
		return regie.Errorf(codeUsage, "--max-tokens must be at least 1")
	}
	if changed("time-limit") && f.timeLimit < time.Second {
		return regie.Errorf(codeUsage, "--time-limit must be at least 1s")
	}
	f.limits.Seconds = int64(f.timeLimit / time.Second)
	if f.unattended && f.loop.relaunch == string(approval.RelaunchAnswer) {
		return regie.Errorf(codeUsage,
			"--relaunch answer wants an answer, and --unattended has nobody who reads it: leave one of them out")
	}
	if !changed("resume") {
		return nil
	}
	if len(args) > 0 {
		return regie.Errorf(codeUsage, "--resume goes on with a run as it is: give it no new job")
	}
	for _, flag := range []string{
		"allow", "on-approval", "max-replies", "context-tokens",
		"agent", "here", "wait-network", "session", "max-tokens", "time-limit", "unattended", "dialect", "relaunch",
		"no-cache",
	} {
		if changed(flag) {
			return regie.Errorf(codeUsage, "--resume goes on with a run as it is: leave --%s out", flag)
		}
	}
	return nil
}

// onAsk is the word of --on-approval for asking at the terminal. It is the surface's own: the run
// itself waits.
const onAsk = "ask"

// ask settles what happens with what needs an approval, or an answer.
func (f *runFlags) ask(attended bool) error {
	attended = attended && !f.json && !f.unattended
	switch {
	case f.onApproval == onAsk && !attended:
		return regie.Errorf(codeUsage,
			"--on-approval ask needs a terminal, no --json and no --unattended: use park, deny or fail")
	case f.onApproval == onAsk, f.onApproval == "" && attended:
		f.asks, f.onApproval = true, string(approval.Park)
	case f.onApproval == "":
		f.onApproval = string(approval.Park)
	}
	return nil
}

// timed bounds a context by --timeout.
func (f *runFlags) timed(ctx context.Context) (context.Context, context.CancelFunc) {
	if f.deadline.IsZero() {
		return context.WithCancel(ctx)
	}
	return context.WithDeadlineCause(ctx, f.deadline, errTimeout)
}

// begin reads the job, attaches to an engine and follows the run to its end.
func (c *command) begin(ctx context.Context, f runFlags, args []string, signals signals) (outcome, err error) {
	if f.unattended {
		ctx = dispatch.WithUnattended(ctx)
	}
	var request dispatch.RunRequest
	if f.resume == "" {
		if request, err = c.request(ctx, f, args, signals.first); err != nil {
			return nil, err
		}
	}
	attaching, cancel := f.timed(ctx)
	defer cancel()
	engine, end := c.runStays()
	defer end()
	taken, starting := c.since(attaching, f.resume)
	conn, err := c.connect(attaching, app.Options{Engine: engine, Starting: starting, Resumed: func(rounds []regie.ID) {
		for _, id := range rounds {
			if id.String() != taken.id {
				fmt.Fprintln(c.stderr, c.text.T("resuming the interrupted run %s", id))
			}
		}
	}})
	if err != nil {
		return nil, errors.Join(err, context.Cause(attaching))
	}
	if err := c.takeUp(attaching, conn, &f, taken); err != nil {
		return nil, errors.Join(err, conn.Close())
	}
	outcome, err = c.follow(ctx, conn, f, request, signals.first)
	c.drain(ctx, conn, signals.first, signals.ended.Load())
	if closing := conn.Close(); err == nil {
		err = closing
	}
	return outcome, err
}

// taken is the run that --resume names, as an engine found it that begins in this process.
type taken struct {
	id   string // empty where it was not found, or no engine begins here
	head int64  // how far its log reached; 0 where it had ended
}

// since finds the run that --resume names, and how far its log reaches, before an engine that
// begins here goes on with it: all that comes then is shown, also what happens before anybody
// listens.
func (c *command) since(ctx context.Context, name string) (*taken, func(stored *client.Client)) {
	out := &taken{}
	if name == "" {
		return out, nil
	}
	return out, func(stored *client.Client) {
		id, err := c.resumed(ctx, stored, name)
		if err != nil {
			return // it is said later
		}
		round, err := regie.ParseID(id)
		if err != nil {
			return
		}
		view, err := stored.Get(ctx, round)
		if err != nil {
			return
		}
		if out.id = id; view.Round.State != regie.RoundEnded {
			out.head = view.Head
		}
	}
}

// takeUp has --resume name the run that was found before the engine began: the last one may be
// another by now.
func (c *command) takeUp(ctx context.Context, control chat.Control, f *runFlags, taken *taken) (err error) {
	if f.since = taken.head; taken.id != "" {
		f.resume = taken.id
		return nil
	}
	f.resume, err = c.resumed(ctx, control, f.resume)
	return err
}

// resumed is the whole id of the run that --resume names as other commands do: by all of its id or
// a part of it, or as last.
func (c *command) resumed(ctx context.Context, control chat.Control, name string) (string, error) {
	if name == "" {
		return "", nil
	}
	root, err := c.scope(ctx, false)
	if err != nil {
		return "", err
	}
	id, err := runID(ctx, control, root, name)
	return id.String(), err
}

// request makes the job: the argument, and what comes on standard input.
func (c *command) request(ctx context.Context, f runFlags, args []string,
	signals <-chan os.Signal,
) (dispatch.RunRequest, error) {
	if err := c.requireModel(ctx); err != nil {
		return dispatch.RunRequest{}, err
	}
	job, err := c.awaitJob(ctx, f, args, signals)
	if err != nil {
		return dispatch.RunRequest{}, err
	}
	policy := approval.Policy{
		Allow: f.allow, OnApproval: approval.OnApproval(f.onApproval),
		Questions: f.asks, WaitNetwork: f.network,
	}
	request, err := c.start(ctx, f.here, f.agent, policy)
	if err != nil {
		return request, err
	}
	request.Text, request.Limits = job, f.limits
	typed := strings.Join(args, " ") // what comes on standard input names nothing
	if request.Segments = chat.Mentions(typed, app.Look(request.Root)); request.Segments != nil {
		request.Text = ""
		if rest := strings.TrimPrefix(job, typed); rest != "" {
			request.Segments = append(request.Segments, regie.Segment{Text: rest})
		}
	}
	if f.unattended {
		request.Type = regie.SessionAutomation
	}
	err = f.loop.into(&request)
	return request, err
}

// start is what a message to an agent in this directory is sent with.
func (c *command) start(ctx context.Context, here bool, agent string,
	policy approval.Policy,
) (dispatch.RunRequest, error) {
	if err := policy.Validate(); err != nil {
		return dispatch.RunRequest{}, err
	}
	root, foundBy, err := c.workspace(ctx, here)
	if err != nil {
		return dispatch.RunRequest{}, err
	}
	request := c.startIn(root, foundBy, agent, policy)
	request.Here = here
	return request, nil
}

// startIn is what a message to an agent in a workspace is sent with.
func (c *command) startIn(root, foundBy, agent string, policy approval.Policy) dispatch.RunRequest {
	if c.config.Server == "" {
		c.tellProject(root)
	}
	request := dispatch.RunRequest{
		ClientID: regie.NewID().String(), SessionID: regie.NewID(), Root: root, FoundBy: foundBy, Agent: agent,
		Provider: c.config.Provider, Model: c.config.Model, Policy: policy,
	}
	// the demo is the same everywhere
	if c.config.Server == "" && c.config.Provider != "" && c.config.Provider != config.ProviderDemo {
		request.Settings = c.config.Fingerprint()
	}
	return request
}

// workspace is that of the current directory, or of the one that --workspace names on a server's
// machine; here takes the home directory or / too.
func (c *command) workspace(ctx context.Context, here bool) (root, foundBy string, err error) {
	dir := c.flags.Workspace
	if dir == "" {
		if dir, err = workingDirectory(); err != nil {
			return "", "", err
		}
	}
	if c.config.Server != "" {
		return c.served(ctx, dir, here)
	}
	return workspace.Detect(dir, os.Getenv("HOME"), here)
}

func workingDirectory() (string, error) {
	dir, err := os.Getwd()
	if err != nil {
		return "", regie.Errorf(regie.CodeFileNotFound, "the current directory cannot be read: %v", err)
	}
	return dir, nil
}

// directory is workspace for what works on this machine's own files.
func (c *command) directory(here bool) (root string, err error) {
	if c.config.Server != "" {
		return "", regie.Errorf(codeUsage, "this works on the files of this machine: leave --server (REGIE_SERVER) out")
	}
	root, _, err = c.workspace(context.Background(), here)
	return root, err
}

// served is the workspace of a directory of a server's machine.
func (c *command) served(ctx context.Context, dir string, here bool) (root, foundBy string, err error) {
	conn, err := c.attach(ctx, app.Options{})
	if err != nil {
		return "", "", err
	}
	place, err := conn.OpenWorkspace(ctx, dispatch.WorkspaceRequest{Path: dir, Here: here})
	return place.Root, place.FoundBy, errors.Join(err, conn.Close())
}

// awaitJob waits for the job no longer than the timeout. What reads standard input then is left
// behind: the process ends.
func (c *command) awaitJob(ctx context.Context, f runFlags, args []string, signals <-chan os.Signal) (string, error) {
	type job struct {
		text string
		err  error
	}
	read := make(chan job, 1)
	go func() {
		text, err := c.job(args)
		read <- job{text, err}
	}()
	ctx, cancel := f.timed(ctx)
	defer cancel()
	select {
	case j := <-read:
		return j.text, j.err
	case <-signals:
		return "", exit{exitInterrupted}
	case <-ctx.Done():
		return "", context.Cause(ctx)
	}
}

func (c *command) job(args []string) (string, error) {
	job := strings.Join(args, " ")
	info, err := c.stdin.Stat()
	if err == nil && info.Mode()&os.ModeCharDevice == 0 {
		data, err := io.ReadAll(io.LimitReader(c.stdin, maxStdin+1))
		switch {
		case err != nil:
			return "", regie.Errorf(regie.CodeBadRequest, "standard input cannot be read: %v", err)
		case len(data) > maxStdin:
			return "", regie.Errorf(regie.CodeBadRequest,
				"standard input has more than %d bytes: put it into a file and name the file", maxStdin)
		case len(data) > 0 && job != "":
			job += "\n\n" + string(data)
		case len(data) > 0:
			job = string(data)
		}
	}
	if strings.TrimSpace(job) == "" {
		return "", regie.Errorf(codeUsage, "say what is to be done: regie run \"…\"")
	}
	return job, nil
}
