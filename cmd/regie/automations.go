package main

import (
	"bytes"
	"cmp"
	"encoding/json"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/regie-run/regie"
	"github.com/regie-run/regie/internal/app"
	"github.com/regie-run/regie/internal/chat"
	"github.com/regie-run/regie/internal/dispatch"
	"github.com/regie-run/regie/internal/store"
)

// newAutomationsCommand manages jobs that run by themselves (spec 5.3).
func newAutomationsCommand(env *environment) *cobra.Command {
	cmd := newAutomationListCommand(env, "automations")
	cmd.Long = env.T("List and change automations: jobs that run on a schedule, when a webhook is called, when files change, or when you start them. Schedules, webhooks and files start runs while regie serve runs.\n\nAn ID is written as its last characters (four or more); last is the newest automation of this workspace.")
	cmd.AddCommand(newAutomationListCommand(env, "list"), newAutomationAddCommand(env), newAutomationEditCommand(env),
		newAutomationWordCommand(env, "run", env.T("Start a run of an automation now")),
		newAutomationWordCommand(env, "show", env.T("Show an automation: its job, its next runs, its settings")),
		newAutomationWordCommand(env, "runs", env.T("List the runs of an automation, and the times that had none")),
		newAutomationWordCommand(env, "pause", env.T("Pause an automation with its open runs")),
		newAutomationWordCommand(env, "resume", env.T("End the pause of an automation and of its runs")),
		newAutomationWordCommand(env, "stop", env.T("Stop the open runs of an automation; its schedule goes on")),
		newAutomationWordCommand(env, "enable", env.T("Have an automation run by itself again")),
		newAutomationWordCommand(env, "disable", env.T("Have an automation run no more by itself")),
		newAutomationWordCommand(env, "token", env.T("Give the webhook of an automation a new token, which ends the present one")),
		newAutomationWordCommand(env, "rm", env.T("Remove an automation; its runs stay")))
	return cmd
}

func newAutomationListCommand(env *environment, use string) *cobra.Command {
	var all, asJSON bool
	cmd := &cobra.Command{
		Use: use, Args: checkArgCount(0, 0), Short: env.T("List the automations with their next and last runs"),
		RunE: func(cmd *cobra.Command, _ []string) error {
			found, err := readWorkspace(cmd.Context(), env, all, []dispatch.AutomationView{},
				func(conn *app.Conn, root string) ([]dispatch.AutomationView, error) {
					return conn.Automations.List(cmd.Context(), store.AutomationFilter{Root: root})
				})
			return printResult(env, asJSON, found, err, func(p *chat.Page) { p.Everywhere = all; p.Automations(found) })
		},
	}
	addViewFlags(env, cmd, &all, &asJSON)
	return cmd
}

// newAutomationWordCommand does what its name says with an automation, and shows what came of it.
func newAutomationWordCommand(env *environment, word, short string) *cobra.Command {
	var until string
	var limit int
	var yes, wait, asJSON bool
	cmd := &cobra.Command{
		Use: word + " ID|last", Args: checkArgCount(1, 1), Short: short,
		RunE: func(cmd *cobra.Command, args []string) error {
			ctx := cmd.Context()
			var show func(*chat.Page)
			reads := word == "show" || word == "runs"
			o := app.Options{ReadOnly: reads, StoreOnly: !reads && word != "run", Resumed: env.tellResumed(regie.ID{})}
			out, err := withNamed(ctx, env, o, args[0], chat.FindAutomation,
				func(conn *app.Conn, a *dispatch.AutomationView) (_ any, err error) {
					switch word {
					case "run":
						started, err := conn.Automations.Run(ctx, dispatch.AutomationStart{ID: a.ID})
						if err == nil && started.Run != nil && (wait || conn.IsEngine()) { // no other process runs it
							env.notef("run %s in the session %s", started.Run.RoundID, started.Run.SessionID)
							err = cmp.Or(followHere(ctx, &follower{
								environment: env, control: conn, json: asJSON, network: true,
								round: started.Run.RoundID, session: started.Run.SessionID,
							}), error(exit{exitDone}))
						}
						show = func(p *chat.Page) { p.Fires(a, []store.FireView{{Fire: started.Fire}}) }
						return started, err
					case "runs":
						fires, err := conn.Automations.Fires(ctx, store.FireFilter{AutomationID: a.ID, Limit: limit})
						show = func(p *chat.Page) { p.Fires(a, fires) }
						return fires, err
					case "rm":
						if !yes {
							question := env.T("Remove the automation \"%s\" for good? [y/N] ", a.Name)
							err = env.askConfirmation(question, env.T("not removed"))
						}
						if err == nil {
							err = conn.Automations.Remove(ctx, a.ID)
						}
						show = func(*chat.Page) { _ = env.printf("the automation %s is removed", chat.Short(a.ID)) }
						return a, err
					}
					show = func(p *chat.Page) { p.Automation(a) }
					return a, chat.ChangeAutomation(ctx, conn.Client, word, a, until)
				})
			return printResult(env, asJSON, out, err, show)
		},
	}
	switch word {
	case "run":
		cmd.Long = env.T("Start a run of an automation now, also of one that is disabled or paused. While an earlier run goes on it waits for its end, unless the automation's overlap policy says otherwise.\n\n--wait follows a run that has begun to its end, with the exit codes of regie run; --json then prints each event as a line. If no other regie process runs, the run happens here and is always followed.")
		cmd.Flags().BoolVar(&wait, "wait", false, env.T("follow the run to its end"))
	case "runs":
		cmd.Flags().IntVar(&limit, "limit", 20, env.T("how many"))
	case "pause":
		cmd.Flags().StringVar(&until, "until", "", env.T("resume by itself: after 2h or 3d, or at 2026-12-01T09:00 on this machine's clock"))
	case "rm":
		cmd.Flags().BoolVarP(&yes, "yes", "y", false, env.T("do not ask"))
	}
	addJSONFlag(env, cmd, &asJSON)
	return cmd
}

func newAutomationAddCommand(env *environment) *cobra.Command {
	var from, source string
	var disabled bool
	cmd := newAutomationSaveCommand(env, "add [TEXT]", env.T("Add an automation and show its next runs"), 1,
		func(cmd *cobra.Command, conn *app.Conn, root string, args []string) (out dispatch.AutomationView, err error) {
			in := dispatch.NewAutomation{ID: regie.NewID(), Root: root, Disabled: disabled}
			if from != "" {
				found, wrong := chat.FindSession(cmd.Context(), conn.Client, root, from)
				in.FromSession, err = found.ID, wrong
			}
			if source != "" && err == nil {
				out, err = chat.FindAutomation(cmd.Context(), conn.Client, root, source)
				in.FromAutomation, in.When = out.ID, out.When
			}
			if err = cmp.Or(err, readProperties(env, cmd, args, &in)); err != nil {
				return out, err
			}
			in.Segments = chat.Mentions(in.Text, app.Look(root))
			return conn.Automations.Create(cmd.Context(), in)
		})
	cmd.Long = env.T("Add an automation. TEXT is what each run is to do; - reads it from standard input. Files that it mentions (@path) are read at each run. Without TEXT, --from or --copy says where it comes from.")
	cmd.Flags().StringVar(&from, "from", "", env.T("take the job from what you said in this session: its id, the last characters of it, or last"))
	cmd.Flags().StringVar(&source, "copy", "", env.T("copy this automation, except for what other flags say"))
	cmd.Flags().BoolVar(&disabled, "disabled", false, env.T("do not enable it yet"))
	return cmd
}

func newAutomationEditCommand(env *environment) *cobra.Command {
	return newAutomationSaveCommand(env, "edit ID|last [TEXT]", env.T("Change an automation; what is not named stays, and runs keep their version"), 2,
		func(cmd *cobra.Command, conn *app.Conn, root string, args []string) (dispatch.AutomationView, error) {
			now, err := chat.FindAutomation(cmd.Context(), conn.Client, root, args[0])
			in := dispatch.AutomationEdit{ID: now.ID, Version: now.Version}
			if cmd.Flags().Changed("zone") { // the same times, on another clock
				in.When = &now.When
			}
			if err = cmp.Or(err, readProperties(env, cmd, args[1:], &in)); err != nil {
				return now, err
			}
			return conn.Automations.Edit(cmd.Context(), in)
		})
}

// newAutomationSaveCommand has save store the properties that flags say, and shows the automation.
func newAutomationSaveCommand(env *environment, use, short string, most int,
	save func(*cobra.Command, *app.Conn, string, []string) (dispatch.AutomationView, error),
) *cobra.Command {
	var asJSON bool
	cmd := &cobra.Command{
		Use: use, Args: checkArgCount(most-1, most), Short: short,
		RunE: func(cmd *cobra.Command, args []string) error {
			root, _, err := env.findWorkspace(cmd.Context(), "", false)
			if err != nil {
				return err
			}
			saved, err := writeStore(cmd.Context(), env, func(conn *app.Conn) (dispatch.AutomationView, error) {
				saved, err := save(cmd, conn, root, args)
				if err == nil && conn.IsEngine() && env.config.Database == "" {
					env.notef("no regie serve runs on this data directory: until it does, only regie automations run starts runs")
				}
				return saved, err
			})
			return printResult(env, asJSON, saved, err, func(p *chat.Page) { p.Automation(&saved) })
		},
	}
	addJSONFlag(env, cmd, &asJSON)
	flags := cmd.Flags()
	flags.String("when", "", env.T("the schedule: every 15m, daily 09:00,18:30, weekly mon-fri 09:00, monthly 1,-1 09:00, yearly 02-28 09:00, once 2026-12-01T09:00, cron 0 9 * * 1-5; then from or until with a date"))
	flags.String("zone", "", env.T("the time zone of the schedule, such as Europe/Paris; by default that of the workspace"))
	flags.String("name", "", env.T("the name; by default the beginning of the text"))
	flags.String("agent", "", env.T("the agent; by default main"))
	flags.String("provider", "", env.T("the provider of its runs; by default the agent's"))
	flags.String("model", "", env.T("the model of its runs; by default the agent's"))
	flags.String("mode", "", env.T("what runs without asking: ask (by default), accept_edits, plan or auto"))
	flags.String("missed", "", env.T("times missed while nothing ran: once (one late run; the default), skip or each"))
	flags.String("overlap", "", env.T("a time at which an earlier run goes on: skip, queue_one (one waits; the default) or parallel"))
	flags.StringArray("on-change", nil, env.T("run when files change that match, such as inbox/**; may be repeated"))
	flags.Bool("webhook", false, env.T("run when its webhook is called; the address is shown once"))
	flags.StringSlice("allow", nil, env.T("actions that need no approval in its runs: files.write_file, files.*"))
	flags.StringSlice("ask", nil, env.T("actions that need an approval in its runs, whatever rules allow"))
	flags.String("on-approval", "", env.T("a call that needs an approval: park (it waits for a person; the default), deny, or fail (the run ends)"))
	flags.Bool("require-validation", false, env.T("ask about every call of its runs, queries too"))
	flags.Float64("usd-per-run", 0, env.T("what one run may cost in US dollars"))
	flags.StringToInt64("limit", nil, env.T("lower a limit of its runs, by its name in regie.yaml: max_tokens=50000; may be repeated"))
	return cmd
}

// readProperties sets in a request what a command's text and its flags say. Those for a new
// automation and for a change have the same JSON.
func readProperties(env *environment, cmd *cobra.Command, text []string, request any) (err error) {
	names := map[string]string{"mode": "approval_mode", "on-change": "files", "limit": "limits"}
	definition := map[string]any{}
	patch := map[string]any{"definition": definition}
	if len(text) > 0 {
		patch["text"] = text[0]
	}
	if slices.Contains(text, "-") {
		patch["text"], err = readJob(env.stdin, "")
	}
	cmd.LocalNonPersistentFlags().VisitAll(func(flag *pflag.Flag) {
		key, into := cmp.Or(names[flag.Name], strings.ReplaceAll(flag.Name, "-", "_")), definition
		var value any = flag.Value.String()
		if list, ok := flag.Value.(pflag.SliceValue); ok {
			value = slices.DeleteFunc(list.GetSlice(), func(item string) bool { return item == "" })
		}
		switch key {
		case "when", "name", "agent", "provider", "model", "approval_mode":
			into = patch
		case "webhook", "usd_per_run", "require_validation":
			value = json.RawMessage(flag.Value.String())
		case "limits":
			value, _ = cmd.Flags().GetStringToInt64(flag.Name)
		case "zone":
			key, value = "schedule", map[string]any{key: value}
		}
		if flag.Changed && !slices.Contains([]string{"from", "copy", "disabled", "json"}, key) {
			into[key] = value
		}
	})
	data, _ := json.Marshal(patch) // a number that JSON does not have leaves nothing to decode
	decoder := json.NewDecoder(bytes.NewReader(data))
	decoder.DisallowUnknownFields()
	if bad := decoder.Decode(request); bad != nil {
		err = regie.Errorf(codeUsage, "--limit or --usd-per-run does not fit: %v", bad)
	}
	return err
}
