package main

import (
	"context"
	"fmt"
	"os"
	"runtime"
	"time"

	"github.com/spf13/cobra"

	"github.com/regie-run/regie/internal/app"
	"github.com/regie-run/regie/internal/chat"
	"github.com/regie-run/regie/internal/config"
	"github.com/regie-run/regie/internal/doctor"
	"github.com/regie-run/regie/internal/plain"
)

func (c *command) doctorCommand() *cobra.Command {
	var asJSON bool
	var failed error
	cmd := &cobra.Command{
		Use: "doctor", Annotations: map[string]string{ofThisMachine: "yes"},
		Args: usage(cobra.NoArgs), Short: c.text.T("What is right and wrong on this machine, and what to do about it"),
		Long: c.text.T("Look at the configuration, the model, the data directory, its disk and database, the clock, the engine, the workspace, and what commands could be confined with. Nothing is changed, and nobody is asked but the configured servers and this machine. ✓ is fine, ! is worth a look, ✗ needs what stands below it.\n\nExit codes: 0 nothing needs doing, 1 something does."),
		// Broken settings are what it is there for.
		PersistentPreRunE: func(cmd *cobra.Command, _ []string) error {
			c.hinted()
			env, err := c.environment(cmd)
			if err == nil {
				c.config, failed = config.Load(env, c.flags)
			}
			return err
		},
		RunE: func(cmd *cobra.Command, _ []string) error {
			report := app.Examine(cmd.Context(), c.subject(failed))
			if err := c.diagnosed(cmd.Context(), report, asJSON); err != nil {
				return err
			}
			if report.Count(doctor.Failed) > 0 {
				return exit{exitError}
			}
			return nil
		},
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, c.text.T("print JSON"))
	c.modelFlags(cmd)
	return cmd
}

// subject is what the doctor looks at from here.
func (c *command) subject(failed error) doctor.Subject {
	dir, err := os.Getwd()
	if err != nil {
		dir = ""
	}
	return doctor.Subject{
		Config: c.config, ConfigError: failed, ConfigFlag: c.flags.Config, Env: os.Getenv,
		Environ: os.Environ(), Dir: dir, Now: time.Now,
		Stuck: func(ctx context.Context) (ids []string) {
			runs, err := c.stuckRuns(ctx, "")
			if err != nil { // the other checks say why
				return nil
			}
			for i := range runs {
				ids = append(ids, chat.Short(runs[i].Round.ID))
			}
			return ids
		},
		Terminals: [3]bool{isTerminal(c.stdin), isTerminal(c.stdout), isTerminal(c.stderr)},
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
	ID     string   `json:"id"`
	Group  string   `json:"group"`
	Status string   `json:"status"` // ok, warning, failed
	Code   string   `json:"code,omitempty"`
	About  string   `json:"about,omitempty"`
	Text   string   `json:"text"`
	Fixes  []string `json:"fixes,omitempty"`
}

// diagnosed prints a report.
func (c *command) diagnosed(_ context.Context, report doctor.Report, asJSON bool) error {
	out := diagnosis{Version: version, Failed: report.Count(doctor.Failed), Warnings: report.Count(doctor.Warning)}
	out.OK = out.Failed == 0
	for i := range report {
		f := &report[i]
		one := checked{
			ID: f.ID, Group: f.Group, Status: string(f.Status), Code: string(f.Code), About: f.About,
			Text: c.text.Sentence(f.Text),
		}
		if f.Cause != nil {
			one.Text = c.text.Error(f.Cause)
		}
		for _, fix := range f.Fixes {
			if fix.Command != "" {
				one.Fixes = append(one.Fixes, c.text.Typed(fix.Command))
			} else {
				one.Fixes = append(one.Fixes, c.text.Sentence(fix.Text))
			}
		}
		out.Checks = append(out.Checks, one)
	}
	if asJSON {
		return writeJSON(c.stdout, out)
	}
	p := &printer{w: c.stdout}
	p.line("regie %s (%s, %s/%s)", version, runtime.Version(), runtime.GOOS, runtime.GOARCH)
	group := ""
	for _, one := range out.Checks {
		if one.Group != group {
			group = one.Group
			p.line("")
			p.line("%s", c.groupName(group))
		}
		mark := map[string]string{
			string(doctor.Fine): "✓", string(doctor.Warning): "!",
			string(doctor.Failed): "✗",
		}[one.Status]
		p.line("  %s %s", mark, plain.Strip(one.Text))
		for _, fix := range one.Fixes {
			p.line("      → %s", plain.Strip(fix))
		}
	}
	p.line("")
	switch {
	case out.Failed > 0:
		p.line("%s", c.text.T("to be mended (✗): %d; worth a look (!): %d", out.Failed, out.Warnings))
	case out.Warnings > 0:
		p.line("%s", c.text.T("nothing has to be mended; worth a look (!): %d", out.Warnings))
	default:
		p.line("%s", c.text.T("all is well"))
	}
	if p.err != nil {
		return fmt.Errorf("the report could not be written: %w", p.err)
	}
	return nil
}

func (c *command) groupName(group string) string {
	switch group {
	case doctor.Settings:
		return c.text.T("Configuration")
	case doctor.Model:
		return c.text.T("Model")
	case doctor.Data:
		return c.text.T("Data directory")
	case doctor.Disk:
		return c.text.T("Disk")
	case doctor.Clock:
		return c.text.T("Clock")
	case doctor.Database:
		return c.text.T("Database")
	case doctor.Engine:
		return c.text.T("Engine")
	case doctor.Workspace:
		return c.text.T("Workspace")
	case doctor.Sandbox:
		return c.text.T("Confining commands")
	default:
		return c.text.T("Terminal")
	}
}
