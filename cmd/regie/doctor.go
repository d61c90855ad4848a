package main

import (
	"os"
	"runtime"

	"github.com/spf13/cobra"

	"github.com/regie-run/regie/internal/app"
	"github.com/regie-run/regie/internal/doctor"
)

// newDoctorCommand checks this machine.
func newDoctorCommand(env *environment) *cobra.Command {
	var asJSON bool
	var failed error
	cmd := &cobra.Command{
		Use: "doctor", Annotations: map[string]string{localOnly: "yes"},
		Args: checkArgCount(0, 0), Short: env.T("Check this machine and suggest fixes"),
		Long: env.T("Check the configuration, the model, the data directory, its disk and database, the engine, the workspace and the sandbox. Nothing is changed; only the chosen server and this machine are contacted. ✓ is fine, ! is a warning, ✗ is a problem, with its fix below.\n\nExit codes: 0 no problem, 1 at least one."),
		PersistentPreRunE: func(cmd *cobra.Command, _ []string) error {
			failed = loadConfig(env, cmd)
			if env.flags.Server != "" {
				return failed
			}
			return nil // broken settings are part of the report
		},
		RunE: func(cmd *cobra.Command, _ []string) error {
			out := newDiagnosis(env, app.Examine(cmd.Context(), examinedSubject(env, failed)))
			err := printLines(env, asJSON, out, nil, func(p *printer) { printDiagnosis(env, p, out) })
			if err == nil && out.Failed > 0 {
				return exit{exitError}
			}
			return err
		},
	}
	addJSONFlag(env, cmd, &asJSON)
	addModelFlags(env, cmd)
	return cmd
}

// examinedSubject builds the subject of the doctor.
func examinedSubject(env *environment, failed error) doctor.Subject {
	dir, _ := os.Getwd() // empty where it cannot be read
	return doctor.Subject{
		Config: env.config, ConfigError: failed, ConfigFlag: env.flags.Config, Env: os.Getenv, Dir: dir,
	}
}

// diagnosis is a report as programs read it. The ids never change; the sentences are for people and
// in their language.
type diagnosis struct {
	Version  string    `json:"version"`
	OK       bool      `json:"ok"` // nothing failed
	Failed   int       `json:"failed"`
	Warnings int       `json:"warnings"`
	Checks   []checked `json:"checks"`
}

type checked struct {
	ID     string        `json:"id"`
	Group  string        `json:"group"`
	Status doctor.Status `json:"status"` // ok, warning, failed
	Code   string        `json:"code,omitempty"`
	About  string        `json:"about,omitempty"`
	Text   string        `json:"text"`
	Fixes  []string      `json:"fixes,omitempty"`
}

// newDiagnosis translates a report.
func newDiagnosis(env *environment, report doctor.Report) diagnosis {
	out := diagnosis{Version: version, Failed: report.Count(doctor.Failed), Warnings: report.Count(doctor.Warning)}
	out.OK = out.Failed == 0
	for i := range report {
		f := &report[i]
		one := checked{
			ID: f.ID, Group: f.Group, Status: f.Status, Code: string(f.Code), About: f.About,
			Text: env.text.Sentence(f.Text),
		}
		if f.Cause != nil {
			one.Text = env.text.Error(f.Cause)
		}
		for _, fix := range f.Fixes {
			if fix.Command != "" {
				one.Fixes = append(one.Fixes, fix.Command)
			} else {
				one.Fixes = append(one.Fixes, env.text.Sentence(fix.Text))
			}
		}
		out.Checks = append(out.Checks, one)
	}
	return out
}

func printDiagnosis(env *environment, p *printer, out diagnosis) {
	p.printLine("regie %s (%s, %s/%s)", version, runtime.Version(), runtime.GOOS, runtime.GOARCH)
	marks := map[doctor.Status]string{doctor.Fine: "✓", doctor.Warning: "!", doctor.Failed: "✗"}
	titles := map[string]string{
		doctor.Settings: env.T("Configuration"), doctor.Model: env.T("Model"), doctor.Data: env.T("Data directory"),
		doctor.Disk: env.T("Disk"), doctor.Database: env.T("Database"),
		doctor.Engine: env.T("Engine"), doctor.Workspace: env.T("Workspace"),
		doctor.Sandbox: env.T("Confining commands"),
	}
	group := ""
	for _, one := range out.Checks {
		if one.Group != group {
			group = one.Group
			p.printLine("\n%s", titles[group])
		}
		p.printLine("  %s %s", marks[one.Status], one.Text)
		for _, fix := range one.Fixes {
			p.printLine("      → %s", fix)
		}
	}
	p.printText("\n", "problems (✗): %d; warnings (!): %d", out.Failed, out.Warnings)
}
