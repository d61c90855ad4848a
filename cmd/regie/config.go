package main

import (
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

// newConfigCommand shows and checks the settings (spec 10.1, 13).
func newConfigCommand(env *environment) *cobra.Command {
	cmd := &cobra.Command{
		Use: "config", Short: env.T("The settings: what holds and where it is from, whether files fit, their schema"),
	}
	var origin, asJSON bool
	show := &cobra.Command{
		Use: "show", Args: arguments(0, 0), Short: env.T("The settings that hold here"),
		Long: env.T("Show each setting that holds here, --origin where it is from: default, setup (what regie setup stored), system, user, or the file that --config names, project, environment, flag. Keys, tokens and passwords are never shown."),
		RunE: func(*cobra.Command, []string) error { return showConfig(env, origin, asJSON) },
	}
	show.Flags().BoolVar(&origin, "origin", false, env.T("say where each is from"))
	addJSONFlag(env, show, &asJSON)
	addModelFlags(env, show)
	validate := &cobra.Command{
		Use: "validate [FILE]...", Short: env.T("Whether the files of settings fit, with the line of what does not"),
		Long:              env.T("Look at the files of settings that count here, or at those that are named, without using them. A file in a .regie directory is held to what a workspace's file may say.\n\nExit codes: 0 all fit, 1 one does not."),
		PersistentPreRunE: skipConfig,
		RunE:              func(_ *cobra.Command, args []string) error { return validateConfig(env, args) },
	}
	schema := &cobra.Command{
		Use: "schema", Args: arguments(0, 0), Short: env.T("The JSON Schema of regie.yaml, for editors"),
		PersistentPreRunE: skipConfig,
		RunE:              func(*cobra.Command, []string) error { return writeJSON(env.stdout, config.Schema()) },
	}
	cmd.AddCommand(show, validate, schema)
	return cmd
}

// showConfig prints the settings, with the workspace's file and which of its settings count.
func showConfig(env *environment, origin, asJSON bool) error {
	if env.flags.Server != "" { // its settings are its own
		return regie.Errorf(codeUsage, "regie %s is about this machine: leave --server out", "config show")
	}
	values := append(env.config.Values(), projectValues(env)...)
	return printLines(env, asJSON, map[string]any{"settings": values}, nil, func(p *printer) {
		for i := range values {
			v := &values[i]
			line := v.Key + ": " + strings.ReplaceAll(v.Value, "\n", " ")
			if origin {
				line = fmt.Sprintf("%-44s # %s", line, describeOrigin(env, v))
			} else if v.Use != "" && v.Use != config.UseNarrows {
				continue
			}
			p.line("%s", plain.Line(line))
		}
	})
}

// projectValues are what the workspace's file says.
func projectValues(env *environment) (out []config.Value) {
	root, err := env.localWorkspace(true)
	if err != nil {
		return nil
	}
	seen, err := app.LookProject(env.config, root)
	if err != nil || seen.Broken != nil || seen.Apart {
		return nil
	}
	for _, k := range seen.Keys {
		v := config.Value{
			Key: k.Key, Value: k.Text, Origin: config.OriginProject, From: filepath.Join(root, ".regie", "regie.yaml"),
			Line: k.Line, Use: k.Use, Why: k.Why,
		}
		if k.Use == config.UseTrusted && seen.Trusted() {
			v.Use = config.UseNarrows
		}
		out = append(out, v)
	}
	return out
}

// describeOrigin says where a value is from.
func describeOrigin(env *environment, v *config.Value) string {
	word := map[config.ValueOrigin]string{
		config.OriginDefault: env.T("default"), config.OriginSetup: env.T("regie setup"),
		config.OriginSystem: env.T("system"), config.OriginUser: env.T("user"), config.OriginNamed: env.T("named file"),
		config.OriginProject: env.T("project"), config.OriginEnvironment: env.T("environment"),
		config.OriginFlag: env.T("flag"), config.OriginKeyring: env.T("keyring"),
	}[v.Origin]
	if v.From != "" {
		word += " " + v.From
	}
	if v.Line > 0 {
		word += fmt.Sprintf(":%d", v.Line)
	}
	if v.Use == config.UseNever || v.Use == config.UseTrusted {
		word += ": " + describeUse(env, config.ProjectKey{Use: v.Use}, false)
	}
	return word
}

// validateConfig checks files of settings, and whether those that count here fit together.
func validateConfig(env *environment, args []string) error {
	p := env.printer()
	broken := false
	report := func(path string, err error) {
		if err == nil {
			p.line("✓ %s", plain.Line(path))
			return
		}
		p.line("✗ %s", plain.Line(env.text.Error(err)))
		broken = true
	}
	found := checkFiles(env, args)
	for i := range found {
		report(found[i].Path, found[i].Err)
	}
	if len(args) == 0 && !broken {
		settings, err := config.Load(os.Getenv, env.flags)
		if err == nil {
			err = app.CheckServers(settings)
		}
		if err != nil {
			return err
		}
	}
	if broken {
		return exit{exitError}
	}
	return p.err
}

// checkFiles checks the named files, or those that count here.
func checkFiles(env *environment, args []string) (found []config.Checked) {
	for _, name := range args {
		if filepath.Base(filepath.Dir(name)) == ".regie" {
			found = append(found, checkProject(name))
		} else {
			found = append(found, config.CheckFile(name))
		}
	}
	if len(args) > 0 {
		return found
	}
	found = config.Check(os.Getenv, env.flags)
	if root, err := env.localWorkspace(true); err == nil {
		name := filepath.Join(root, ".regie", "regie.yaml")
		if info, err := os.Stat(name); err == nil && info.Mode().IsRegular() {
			found = append(found, checkProject(name))
		}
	}
	return found
}

// checkProject looks at a workspace's file.
func checkProject(name string) config.Checked {
	data, err := os.ReadFile(name)
	if err != nil {
		err = regie.Errorf(regie.CodeBadRequest, "the configuration %s cannot be read: %v", name, err)
	} else {
		_, err = config.ParseProject(name, data)
	}
	return config.Checked{Path: name, Err: err}
}
