package main

import (
	"cmp"
	"context"
	"errors"
	"io"
	"os"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/regie-run/regie"
	"github.com/regie-run/regie/internal/app"
	"github.com/regie-run/regie/internal/approval"
	"github.com/regie-run/regie/internal/chat"
	"github.com/regie-run/regie/internal/config"
	"github.com/regie-run/regie/internal/dispatch"
	"github.com/regie-run/regie/internal/store"
)

// maxStdin limits the input from standard input.
const maxStdin = 4 << 20

type runFlags struct {
	resume, session, agent, onApproval string
	allow                              []string
	json, network, here, unattended    bool
	repin                              bool // the resumed run goes on with the chosen provider
	limits                             regie.Limits
	asked                              dispatch.RunRequest // settings of the model calls
	timeout                            time.Duration
	deadline                           time.Time // of --timeout
	asks                               bool      // the person at the terminal decides approvals
}

// newRunCommand gives an agent one job.
func newRunCommand(env *environment) *cobra.Command {
	var f runFlags
	cmd := &cobra.Command{
		Use: `run "…"`, Args: checkArgCount(0, 1),
		Short: env.T("Give an agent one job in this directory and wait for the answer"),
		Long:  env.T("Give an agent one job in this directory. Standard input is appended to the job.\nProgress goes to standard error, the answer to standard output.\n\nExit codes: 0 done, 1 error, 2 usage, 3 no model, 4 the run waits for an approval or an answer, 5 an action was denied, 6 a limit was reached, 7 timeout (the run is paused), 130 interrupted."),
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := f.checkFlags(args, cmd.Flags().Changed); err != nil {
				return err
			}
			if err := f.chooseOnApproval(isAttended(env.stdin, env.stderr)); err != nil {
				return err
			}
			return runJob(cmd.Context(), env, f, strings.Join(args, " "))
		},
	}
	flags := cmd.Flags()
	flags.BoolVar(&f.json, "json", false, env.T("print each event as a line of JSON on standard output"))
	flags.DurationVar(&f.timeout, "timeout", 0, env.T("pause the run after this long, such as 10m (exit code 7)"))
	flags.StringVar(&f.resume, "resume", "",
		env.T("resume a paused or interrupted run: its id, the last characters of its id, or last"))
	flags.StringVar(&f.session, "session", "",
		env.T("give the job to this session of the workspace: its id, the id of one of its runs, the last characters of either, or last"))
	addAgentFlag(env, cmd, &f.agent)
	flags.StringSliceVar(&f.allow, "allow", nil,
		env.T("actions that need no approval in this run: files.write_file, files.*"))
	flags.StringVar(&f.onApproval, "on-approval", "",
		env.T("how other actions are handled: ask (here; the default at a terminal), park (the run waits, exit code 4; the default elsewhere), deny (the agent is told) or fail (the run ends)"))
	flags.BoolVar(&f.network, "wait-network", false,
		env.T("wait for a model that cannot be reached, until --timeout, instead of ending"))
	addHereFlag(env, cmd, &f.here)
	flags.IntVar(&f.limits.Total, "max-replies", 0, env.T("lower the limit of the model's replies in this run"))
	flags.BoolVar(&f.unattended, "unattended", false,
		env.T("unattended: the agent asks nothing, waits for the network, and ends the run itself by declaring its work done"))
	addLoopFlags(env, cmd, &f.asked)
	for _, flag := range []string{
		"allow", "on-approval", "max-replies", "agent", "here", "wait-network", "session",
		"unattended", "dialect", "no-cache", "mode",
	} {
		cmd.MarkFlagsMutuallyExclusive("resume", flag) // a run goes on as it is
	}
	addModelFlags(env, cmd)
	return cmd
}

// addLoopFlags adds the flags of the model calls.
func addLoopFlags(env *environment, cmd *cobra.Command, asked *dispatch.RunRequest) {
	flags := cmd.Flags()
	flags.StringVar((*string)(&asked.Dialect), "dialect", "",
		env.T("how the model replies: native (tool calls of its API) or json, for models without them; left out, the model decides"))
	flags.StringVar((*string)(&asked.ApprovalMode), "mode", "",
		env.T("what runs without asking: ask (by default), accept_edits, plan (only queries, until you approve a plan) or auto (also sandboxed commands without network)"))
	flags.BoolVar(&asked.NoCache, "no-cache", false,
		env.T("ask the model instead of using the response cache, and store no answer there"))
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
}

func addAgentFlag(env *environment, cmd *cobra.Command, agent *string) {
	cmd.Flags().StringVar(agent, "agent", "main", env.T("the agent"))
}

// checkFlags refuses flags that would be ignored.
func (f *runFlags) checkFlags(args []string, changed func(flag string) bool) error {
	for flag, fits := range map[string]bool{
		"max-replies": f.limits.Total > 0, "timeout": f.timeout > 0,
		"session": f.session != "", "resume": f.resume != "" && len(args) == 0,
	} {
		if changed(flag) && !fits {
			return regie.Errorf(codeUsage, "--%s does not take this value with a job (see --help)", flag)
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

// forever is the --timeout of a run without one.
const forever = 10 * 365 * 24 * time.Hour

// runJob runs a job within its time. The clock also covers the wait for standard input and for an
// engine.
func runJob(ctx context.Context, env *environment, f runFlags, job string) error {
	signals := catchSignals()
	defer signals.stop()
	f.deadline = time.Now().Add(cmp.Or(f.timeout, forever))
	ctx, stop := context.WithDeadlineCause(ctx, f.deadline.Add(connectGrace), errTimeout)
	defer stop()
	err := startRun(ctx, env, f, job, signals)
	if errors.Is(err, errTimeout) || err != nil && errors.Is(context.Cause(ctx), errTimeout) {
		env.notef("time is up")
		return exit{exitTimeout}
	}
	return err
}

// startRun reads the job, attaches to an engine and follows the run to its end.
func startRun(ctx context.Context, env *environment, f runFlags, job string, signals signals) (err error) {
	if f.unattended {
		ctx = dispatch.WithUnattended(ctx)
	}
	var request dispatch.RunRequest
	var resumed store.RoundView // as it was before an engine of this process went on with it
	attaching, cancel := context.WithDeadlineCause(ctx, f.deadline, errTimeout)
	defer cancel()
	if f.resume == "" {
		request, err = newJobRequest(attaching, env, f, job, signals.first)
	} else {
		resumed, err = readStore(attaching, env, func(conn *app.Conn) (store.RoundView, error) {
			_, partial := regie.ParseID(f.resume)
			return findRun(attaching, env, conn.Client, partial == nil, f.resume)
		})
	}
	if err != nil {
		return errors.Join(err, context.Cause(attaching))
	}
	conn, err := env.connect(attaching, app.Options{Resumed: env.tellResumed(resumed.Round.ID)})
	if err != nil {
		return errors.Join(err, context.Cause(attaching))
	}
	request.Segments, err = chat.AttachImages(attaching, conn.Client, app.ReadImage(request.Root), request.Segments)
	if err == nil {
		err = followRun(ctx, env, conn, f, request, &resumed, signals.first)
	}
	env.drainCalls(ctx, conn, signals.first, signals.ending.Load())
	return errors.Join(err, conn.Close())
}

// newJobRequest returns the request of a job: the argument, and what comes on standard input.
func newJobRequest(ctx context.Context, env *environment, f runFlags, typed string,
	signals <-chan os.Signal,
) (dispatch.RunRequest, error) {
	if err := env.requireModel(ctx); err != nil {
		return dispatch.RunRequest{}, err
	}
	env.offerModel(ctx)
	job, err := awaitJob(ctx, env, typed, signals)
	if err != nil {
		return dispatch.RunRequest{}, err
	}
	request, err := newRequest(ctx, env, "", f.here, f.agent, approval.Policy{
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
	request.Dialect, request.NoCache, request.ApprovalMode = f.asked.Dialect, f.asked.NoCache, f.asked.ApprovalMode
	return request, nil
}

// newRequest returns the request of a message to an agent in the workspace of a directory, empty
// for the current one.
func newRequest(ctx context.Context, env *environment, dir string, here bool, agent string,
	policy approval.Policy,
) (dispatch.RunRequest, error) {
	root, foundBy, err := env.findWorkspace(ctx, dir, here)
	if err = cmp.Or(policy.Validate(), err); err != nil {
		return dispatch.RunRequest{}, err
	}
	request := dispatch.RunRequest{
		ClientID: regie.NewID().String(), SessionID: regie.NewID(), Root: root, FoundBy: foundBy, Agent: agent,
		Provider: env.config.Provider, Model: env.config.Model, Policy: policy, Here: here,
		ModelDefault: !env.config.ModelChosen(),
	}
	if env.config.Server != "" {
		return request, nil
	}
	tellProject(env, root)
	request.Settings = env.settingsOfModel()
	return request, nil
}

// settingsOfModel returns the fingerprint of the chosen provider's settings, zero where a server
// has them and for the demo, which has none.
func (env *environment) settingsOfModel() regie.Hash {
	if env.config.Provider == "" || env.config.Provider == config.ProviderDemo || env.config.Server != "" {
		return regie.Hash{}
	}
	return env.config.Fingerprint()
}

// awaitJob reads the job within the timeout. A read that does not end is left behind: the process
// ends.
func awaitJob(ctx context.Context, env *environment, typed string, signals <-chan os.Signal) (string, error) {
	read := make(chan struct{})
	var text string
	var failed error
	go func() {
		text, failed = readJob(env.stdin, typed)
		close(read)
	}()
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
		return "", regie.Errorf(codeUsage, "say what to do: regie run \"…\"")
	}
	return job, nil
}
