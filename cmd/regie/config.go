package main

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"github.com/regie-run/regie"
	"github.com/regie-run/regie/internal/app"
	"github.com/regie-run/regie/internal/config"
	"github.com/regie-run/regie/internal/plain"
)

// configCommand is what people look at their settings with (spec 10.1, 13).
func (c *command) configCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use: "config", Args: usage(cobra.NoArgs),
		Short: c.text.T("The settings: what holds and where it is from, whether files fit, their schema"),
	}
	var origin, asJSON bool
	show := &cobra.Command{
		Use: "show", Args: usage(cobra.NoArgs), Short: c.text.T("The settings that hold here"),
		Long: c.text.T("Show each setting that holds here, --origin where it is from: default, setup (what regie setup stored), system, user, or the file that --config names, project, environment, flag. Keys, tokens and passwords are never shown."),
		RunE: func(*cobra.Command, []string) error { return c.showConfig(origin, asJSON) },
	}
	show.Flags().BoolVar(&origin, "origin", false, c.text.T("say where each is from"))
	show.Flags().BoolVar(&asJSON, "json", false, c.text.T("print JSON"))
	c.modelFlags(show)
	validate := &cobra.Command{
		Use: "validate [FILE]...", Short: c.text.T("Whether the files of settings fit, with the line of what does not"),
		Long: c.text.T("Look at the files of settings that count here, or at those that are named, without using them. A file in a .regie directory is held to what a workspace's file may say.\n\nExit codes: 0 all fit, 1 one does not."),
		// Broken settings are what it is there for.
		PersistentPreRunE: func(*cobra.Command, []string) error { return nil },
		RunE:              func(_ *cobra.Command, args []string) error { return c.validateConfig(args) },
	}
	schema := &cobra.Command{
		Use: "schema", Args: usage(cobra.NoArgs), Short: c.text.T("The JSON Schema of regie.yaml, for editors"),
		PersistentPreRunE: func(*cobra.Command, []string) error { return nil },
		RunE:              func(*cobra.Command, []string) error { return writeJSON(c.stdout, config.Schema()) },
	}
	cmd.AddCommand(show, validate, schema)
	return cmd
}

// showConfig prints the settings that hold, those of the workspace's file among them with what
// becomes of each.
func (c *command) showConfig(origin, asJSON bool) error {
	if c.flags.Server != "" { // its settings are its own
		return regie.Errorf(codeUsage, "regie %s is about this machine: leave --server out", "config show")
	}
	values := c.config.Values()
	values = append(values, c.projectValues()...)
	if asJSON {
		return writeJSON(c.stdout, map[string]any{"settings": values})
	}
	p := &printer{w: c.stdout}
	for i := range values {
		v := &values[i]
		line := v.Key + ": " + oneValue(v.Value)
		if origin {
			line = fmt.Sprintf("%-44s # %s", line, c.valueOrigin(v))
		} else if v.Use != "" && v.Use != config.UseNarrows {
			continue
		}
		p.line("%s", plain.Line(line))
	}
	return p.err
}

// oneValue is a value in one line, as JSON where it is a text of several, or empty.
func oneValue(value string) string {
	if value != "" && !strings.ContainsAny(value, "\n\r\t") && strings.TrimSpace(value) == value {
		return value
	}
	text, err := json.Marshal(value)
	if err != nil {
		return "…"
	}
	return string(text)
}

// projectValues are what the workspace's file says.
func (c *command) projectValues() (out []config.Value) {
	root, err := c.directory(true)
	if err != nil || c.config.Server != "" {
		return nil
	}
	seen, err := app.LookProject(c.config, root)
	if err != nil || seen.Broken != nil || seen.Apart {
		return nil
	}
	for _, k := range seen.Keys {
		out = append(out, config.Value{
			Key: k.Key, Value: k.Text, Origin: config.OriginProject, From: filepath.Join(root, ".regie", "regie.yaml"),
			Line: k.Line, Use: k.Use, Why: k.Why,
		})
		if k.Dropped != "" { // a part of it holds
			out[len(out)-1].Value = k.Holds
			left := out[len(out)-1]
			left.Value, left.Use, left.Why = k.Dropped, config.UseNever, config.BelongsAnswer
			out = append(out, left)
		}
		if k.Use == config.UseTrusted && seen.Trusted() {
			out[len(out)-1].Use = config.UseNarrows
		}
	}
	return out
}

// valueOrigin says where a value is from.
func (c *command) valueOrigin(v *config.Value) string {
	word := map[config.ValueOrigin]string{
		config.OriginDefault: c.text.T("default"), config.OriginSetup: c.text.T("regie setup"),
		config.OriginSystem: c.text.T("system"),
		config.OriginUser:   c.text.T("user"), config.OriginNamed: c.text.T("named file"),
		config.OriginProject:     c.text.T("project"),
		config.OriginEnvironment: c.text.T("environment"), config.OriginFlag: c.text.T("flag"),
		config.OriginKeyring: c.text.T("keyring"),
	}[v.Origin]
	if v.From != "" {
		word += " " + v.From
	}
	if v.Line > 0 {
		word += fmt.Sprintf(":%d", v.Line)
	}
	switch v.Use {
	case config.UseNever:
		word += ": " + c.use(config.ProjectKey{Use: v.Use, Why: v.Why}, false)
	case config.UseTrusted:
		word += ": " + c.text.T("counts once it is trusted")
	}
	return word
}

// validateConfig looks at files of settings.
func (c *command) validateConfig(args []string) error {
	p := &printer{w: c.stdout}
	var found []config.Checked
	for _, name := range args {
		if filepath.Base(filepath.Dir(name)) == ".regie" {
			found = append(found, checkProject(name))
		} else {
			found = append(found, config.CheckFile(config.LayerNamed, name))
		}
	}
	if len(args) == 0 {
		found = config.Check(os.Getenv, c.flags)
		if dir, err := os.Getwd(); err == nil {
			if root, _, err := app.Workspace(dir, os.Getenv("HOME"), true); err == nil {
				if name := filepath.Join(root, ".regie", "regie.yaml"); isFile(name) {
					found = append(found, checkProject(name))
				}
			}
		}
	}
	broken := false
	for i := range found {
		f := &found[i]
		broken = broken || f.Err != nil
		switch {
		case f.Err == nil:
			p.line("✓ %s", plain.Line(f.Path))
		case f.Line > 0:
			p.line("✗ %s", plain.Line(fmt.Sprintf("%s:%d: %s", f.Path, f.Line, c.text.Error(f.Err))))
		default:
			p.line("✗ %s", plain.Line(f.Path+": "+c.text.Error(f.Err)))
		}
	}
	if len(args) == 0 && !broken {
		if err := c.together(); err != nil {
			broken = true
			p.line("✗ %s", plain.Line(c.text.Error(err)))
		} else if len(found) == 0 {
			p.line("%s", c.text.T("there is no file of settings; the defaults hold"))
		}
	}
	if broken && p.err == nil {
		return exit{exitError}
	}
	return p.err
}

// together is what is wrong with settings whose files fit each by itself.
func (c *command) together() error {
	settings, err := config.Load(os.Getenv, c.flags)
	if err != nil {
		return err
	}
	return app.CheckServers(settings)
}

// checkProject looks at a workspace's file.
func checkProject(name string) config.Checked {
	data, err := os.ReadFile(name)
	if err != nil {
		err = regie.Errorf(regie.CodeBadRequest, "the configuration %s cannot be read: %v", name, err)
	} else {
		_, err = config.ParseProject(name, data)
	}
	out := config.Checked{Path: name, Err: err}
	if err != nil {
		out.Line = config.LineOf(name, err)
	}
	return out
}

func isFile(name string) bool {
	info, err := os.Stat(name)
	return err == nil && info.Mode().IsRegular()
}
