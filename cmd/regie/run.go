package main

import (
	"context"
	"errors"
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
)

// maxStdin bounds what is read from standard input.
const maxStdin = 4 << 20

type runFlags struct {
	resume, session, agent, onApproval string
	allow                              []string
	json, network, here, unattended    bool
	limits                             regie.Limits
	loop                               loopFlags
	timeout, timeLimit                 time.Duration
	deadline                           time.Time // of --timeout; zero without one
	asks                               bool      // the person at the terminal decides approvals
}

// newRunCommand gives an agent one job.
func newRunCommand(env *environment) *cobra.Command {
	var f runFlags
	cmd := &cobra.Command{
		Use: `run "…"`, Args: arguments(0, 1),
		Short: env.T("Give an agent one job in this directory and wait for the answer"),
		Long:  env.T("Give an agent one job in this directory. What comes on standard input is appended to the job.\nProgress goes to standard error, the answer to standard output.\n\nExit codes: 0 done, 1 error, 2 usage, 3 no model, 4 the run waits for an approval or an answer, 5 an action was denied, 6 a limit was reached, 7 timeout (the run is paused), 130 interrupted."),
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := f.validate(args, cmd.Flags().Changed); err != nil {
				return err
			}
			if err := f.chooseOnApproval(attended(env.stdin, env.stderr)); err != nil {
				return err
			}
			return runJob(cmd.Context(), env, f, strings.Join(args, " "))
		},
	}
	flags := cmd.Flags()
	flags.BoolVar(&f.json, "json", false, env.T("print each event as a line of JSON on standard output"))
	flags.DurationVar(&f.timeout, "timeout", 0, env.T("pause the run after this long, such as 10m (exit code 7)"))
	flags.StringVar(&f.resume, "resume", "",
		env.T("go on with a paused or interrupted run, by its id, or the end of it, or last"))
	flags.StringVar(&f.session, "session", "",
		env.T("give the job to this session of the workspace: its id, that of a run of it, the end of one, or last"))
	addAgentFlag(env, cmd, &f.agent)
	flags.StringSliceVar(&f.allow, "allow", nil,
		env.T("actions that need no approval in this run: files.write_file, files.*"))
	flags.StringVar(&f.onApproval, "on-approval", "",
		env.T("what happens with any other action: ask (here; the default at a terminal), park (the run waits, exit code 4; the default elsewhere), deny (the agent is told) or fail (the run ends)"))
	flags.BoolVar(&f.network, "wait-network", false,
		env.T("wait for a model that cannot be reached, until --timeout, instead of ending"))
	addHereFlag(env, cmd, &f.here)
	flags.IntVar(&f.limits.Total, "max-replies", 0, env.T("lower the limit of the model's replies in this run"))
	flags.IntVar(&f.limits.ContextTokens, "context-tokens", 0,
		env.T("lower the budget of a prompt, in tokens: above it older messages are summarised"))
	flags.Int64Var(&f.limits.Tokens, "max-tokens", 0,
		env.T("end the run when its replies have used this many tokens (exit code 6)"))
	flags.DurationVar(&f.timeLimit, "time-limit", 0,
		env.T("end the run after it has worked this long, such as 10m (exit code 6)"))
	flags.BoolVar(&f.unattended, "unattended", false,
		env.T("nobody is there: the agent asks nothing, waits for the network, and ends the run itself by saying that all is done"))
	addLoopFlags(env, cmd, &f.loop)
	addModelFlags(env, cmd)
	return cmd
}

// loopFlags are how a model is asked.
type loopFlags struct {
	dialect, relaunch string
	noCache           bool
}

func addLoopFlags(env *environment, cmd *cobra.Command, f *loopFlags) {
	flags := cmd.Flags()
	flags.StringVar(&f.dialect, "dialect", "",
		env.T("how the model replies: native (tool calls of its API) or json, for models without them; left out, the model decides"))
	flags.StringVar(&f.relaunch, "relaunch", "",
		env.T("after calls that all succeeded: chain (the tools stay there) or answer (the model has to answer)"))
	flags.BoolVar(&f.noCache, "no-cache", false,
		env.T("ask the model, whatever it has answered before, and keep nothing of it in the response cache"))
}

// apply puts the flags into a request.
func (f *loopFlags) apply(request *dispatch.RunRequest) error {
	request.NoCache, request.Dialect = f.noCache, regie.Dialect(f.dialect)
	request.Policy.Relaunch = approval.Relaunch(f.relaunch)
	switch request.Dialect {
	case "", regie.DialectNative, regie.DialectJSON:
		return request.Policy.Validate()
	}
	return regie.Errorf(codeUsage, "--dialect is native or json, not %q", f.dialect)
}

// addModelFlags adds the flags that choose a model.
func addModelFlags(env *environment, cmd *cobra.Command) {
	flags := cmd.Flags()
	flags.StringVar(&env.flags.Provider, "provider", "",
		env.T("openai (any compatible server), anthropic, gemini, ollama, demo, replay, or a name of regie.yaml (REGIE_PROVIDER)"))
	flags.StringVar(&env.flags.BaseURL, "base-url", "", env.T("address of the model server (REGIE_BASE_URL)"))
	flags.StringVar(&env.flags.Model, "model", "", env.T("name of the model, or small, medium, large (REGIE_MODEL)"))
	flags.StringVar(&env.flags.Replay, "replay", "", env.T("answer from this recording (REGIE_REPLAY)"))
	flags.StringVar(&env.flags.Record, "record", "",
		env.T("record what the model is asked and says into this file (REGIE_RECORD)"))
	flags.StringVar(&env.flags.RecordRaw, "record-raw", "",
		env.T("keep the bytes of each response in this directory, beside a recording (REGIE_RECORD_RAW)"))
}

func addAgentFlag(env *environment, cmd *cobra.Command, agent *string) {
	cmd.Flags().StringVar(agent, "agent", "main", env.T("the agent"))
}

// validate refuses flags that would be ignored.
func (f *runFlags) validate(args []string, changed func(flag string) bool) error {
	for _, limit := range []struct {
		flag, least string
		below       bool
	}{
		{"max-replies", "1", f.limits.Total < 1},
		{"context-tokens", "1000", f.limits.ContextTokens < 1000},
		{"max-tokens", "1", f.limits.Tokens < 1},
		{"time-limit", "1s", f.timeLimit < time.Second},
		{"timeout", "1ns", f.timeout <= 0},
	} {
		if changed(limit.flag) && limit.below {
			return regie.Errorf(codeUsage, "--%s must be at least %s", limit.flag, limit.least)
		}
	}
	f.limits.Seconds = int64(f.timeLimit / time.Second)
	if changed("session") && f.session == "" {
		return regie.Errorf(codeUsage, "--session needs the id of a session: see regie sessions list")
	}
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
		"allow", "on-approval", "max-replies", "context-tokens", "agent", "here", "wait-network", "session",
		"max-tokens", "time-limit", "unattended", "dialect", "relaunch", "no-cache",
	} {
		if changed(flag) {
			return regie.Errorf(codeUsage, "--resume goes on with a run as it is: leave --%s out", flag)
		}
	}
	return nil
}

// onAsk is the value of --on-approval for asking at the terminal. The run itself waits.
const onAsk = "ask"

// chooseOnApproval decides what happens with an action that needs an approval, or a question.
func (f *runFlags) chooseOnApproval(attended bool) error {
	attended = attended && !f.json && !f.unattended
	if f.onApproval == onAsk && !attended {
		return regie.Errorf(codeUsage,
			"--on-approval ask needs a terminal, no --json and no --unattended: use park, deny or fail")
	}
	f.asks = attended && (f.onApproval == onAsk || f.onApproval == "")
	if f.asks || f.onApproval == "" {
		f.onApproval = string(approval.Park)
	}
	return nil
}

// connectGrace bounds the storing of a pause beyond the timeout.
const connectGrace = 10 * time.Second

var errTimeout = errors.New("time is up")

// withDeadline bounds a context by --timeout.
func (f *runFlags) withDeadline(ctx context.Context) (context.Context, context.CancelFunc) {
	if f.deadline.IsZero() {
		return context.WithCancel(ctx)
	}
	return context.WithDeadlineCause(ctx, f.deadline, errTimeout)
}

// runJob runs a job within its time. The clock also covers the wait for standard input and for an
// engine.
func runJob(ctx context.Context, env *environment, f runFlags, job string) error {
	ctx, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	signals := catchSignals()
	defer signals.stop()
	if f.timeout > 0 {
		f.deadline = time.Now().Add(f.timeout)
		timer := time.AfterFunc(f.timeout+connectGrace, func() { stop(errTimeout) })
		defer timer.Stop()
	}
	outcome, err := startRun(ctx, env, f, job, signals)
	if errors.Is(err, errTimeout) || err != nil && errors.Is(context.Cause(ctx), errTimeout) {
		env.notef("time is up")
		return exit{exitTimeout}
	}
	if err != nil {
		return err
	}
	return outcome
}

// startRun reads the job, attaches to an engine and follows the run to its end.
func startRun(ctx context.Context, env *environment, f runFlags, job string, signals signals) (outcome, err error) {
	if f.unattended {
		ctx = dispatch.WithUnattended(ctx)
	}
	var request dispatch.RunRequest
	var resumed *resumedRun
	if f.resume == "" {
		if request, err = newJobRequest(ctx, env, f, job, signals.first); err != nil {
			return nil, err
		}
	} else {
		resumed = &resumedRun{name: f.resume}
	}
	attaching, cancel := f.withDeadline(ctx)
	defer cancel()
	engine, end := refuseStop(env)
	defer end()
	options := app.Options{Engine: engine, Resumed: env.tellResumed(resumed)}
	if resumed != nil {
		options.Starting = func(stored *client.Client) { resumed.findStored(attaching, env, stored) }
	}
	conn, err := env.connect(attaching, options)
	if err != nil {
		return nil, errors.Join(err, context.Cause(attaching))
	}
	if resumed != nil {
		if err := resumed.find(attaching, env, conn.Client); err != nil {
			return nil, errors.Join(err, conn.Close())
		}
	}
	outcome, err = followRun(ctx, env, conn, f, request, resumed, signals.first)
	env.drain(ctx, conn, signals.first, signals.ending.Load())
	if closing := conn.Close(); err == nil {
		err = closing
	}
	return outcome, err
}

// resumedRun is the run that --resume names.
type resumedRun struct {
	name string
	id   regie.ID // zero until it is found
	// head is the last event of its log when an engine began in this process; 0 where the run had
	// ended, or no engine began.
	head int64
}

// find finds the run by its id, a part of it, or last, unless findStored has found it.
func (r *resumedRun) find(ctx context.Context, env *environment, control chat.Control) error {
	if !r.id.IsZero() {
		return nil
	}
	root, err := env.scope(ctx, false)
	if err == nil {
		r.id, err = runID(ctx, control, root, r.name)
	}
	return err
}

// findStored finds the run before an engine of this process goes on with it, so that everything
// after that is shown. It leaves errors to find.
func (r *resumedRun) findStored(ctx context.Context, env *environment, stored chat.Control) {
	if r.find(ctx, env, stored) != nil {
		return
	}
	view, err := stored.Get(ctx, r.id)
	if err != nil {
		r.id = regie.ID{}
	} else if view.Round.State != regie.RoundEnded {
		r.head = view.Head
	}
}

// newJobRequest returns the request of a job: the argument, and what comes on standard input.
func newJobRequest(ctx context.Context, env *environment, f runFlags, typed string,
	signals <-chan os.Signal,
) (dispatch.RunRequest, error) {
	if err := env.requireModel(ctx); err != nil {
		return dispatch.RunRequest{}, err
	}
	job, err := awaitJob(ctx, env, f, typed, signals)
	if err != nil {
		return dispatch.RunRequest{}, err
	}
	request, err := newRequest(ctx, env, f.here, f.agent, approval.Policy{
		Allow: f.allow, OnApproval: approval.OnApproval(f.onApproval), Questions: f.asks, WaitNetwork: f.network,
	})
	if err != nil {
		return request, err
	}
	request.Text, request.Limits = job, f.limits
	// standard input mentions no files
	if request.Segments = chat.Mentions(typed, app.Look(request.Root)); request.Segments != nil {
		request.Text = ""
		if rest := strings.TrimPrefix(job, typed); rest != "" {
			request.Segments = append(request.Segments, regie.Segment{Text: rest})
		}
	}
	if f.unattended {
		request.Type = regie.SessionAutomation
	}
	err = f.loop.apply(&request)
	return request, err
}

// newRequest returns the request of a message to an agent in this directory.
func newRequest(ctx context.Context, env *environment, here bool, agent string,
	policy approval.Policy,
) (dispatch.RunRequest, error) {
	if err := policy.Validate(); err != nil {
		return dispatch.RunRequest{}, err
	}
	root, foundBy, err := env.workspace(ctx, here)
	if err != nil {
		return dispatch.RunRequest{}, err
	}
	request := newRequestIn(env, root, foundBy, agent, policy)
	request.Here = here
	return request, nil
}

// newRequestIn returns the request of a message to an agent in a workspace.
func newRequestIn(env *environment, root, foundBy, agent string, policy approval.Policy) dispatch.RunRequest {
	request := dispatch.RunRequest{
		ClientID: regie.NewID().String(), SessionID: regie.NewID(), Root: root, FoundBy: foundBy, Agent: agent,
		Provider: env.config.Provider, Model: env.config.Model, Policy: policy,
	}
	if env.config.Server != "" {
		return request
	}
	tellProject(env, root)
	if env.config.Provider != "" && env.config.Provider != config.ProviderDemo { // the demo has no settings
		request.Settings = env.config.Fingerprint()
	}
	return request
}

// awaitJob reads the job within the timeout. A read that does not end is left behind: the process
// ends.
func awaitJob(ctx context.Context, env *environment, f runFlags, typed string,
	signals <-chan os.Signal,
) (string, error) {
	read := make(chan struct{})
	var text string
	var failed error
	go func() {
		text, failed = readJob(env.stdin, typed)
		close(read)
	}()
	ctx, cancel := f.withDeadline(ctx)
	defer cancel()
	select {
	case <-read:
		return text, failed
	case <-signals:
		return "", exit{exitInterrupted}
	case <-ctx.Done():
		return "", context.Cause(ctx)
	}
}

// readJob appends standard input to a job, unless it is a terminal.
func readJob(stdin *os.File, job string) (string, error) {
	info, err := stdin.Stat()
	if err == nil && info.Mode()&os.ModeCharDevice == 0 {
		data, err := io.ReadAll(io.LimitReader(stdin, maxStdin+1))
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
