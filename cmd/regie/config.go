package main

import (
	"cmp"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/regie-run/regie"
	"github.com/regie-run/regie/internal/app"
	"github.com/regie-run/regie/internal/config"
	"github.com/regie-run/regie/internal/sanitize"
)

// newConfigCommand shows and checks the settings (spec 10.1, 13).
func newConfigCommand(env *environment) *cobra.Command {
	cmd := &cobra.Command{
		Use: "config", Short: env.T("Show and check the settings"),
	}
	var origin, asJSON bool
	show := &cobra.Command{
		Use: "show", Args: checkArgCount(0, 0), Short: env.T("Show the settings in force here and their sources"),
		Long: env.T("Show each setting in force here; --origin adds its source: default, setup (stored by regie setup), system, user or the file that --config names, project, environment, flag. Keys, tokens and passwords are never shown."),
		RunE: func(*cobra.Command, []string) error { return showConfig(env, origin, asJSON) },
	}
	show.Flags().BoolVar(&origin, "origin", false, env.T("show the source of each setting"))
	addJSONFlag(env, show, &asJSON)
	addModelFlags(env, show)
	validate := &cobra.Command{
		Use: "validate [FILE]...", Short: env.T("Check the settings files and name the faulty lines"),
		Long:              env.T("Check the settings files in force here, or the named ones, without using them.\n\nExit codes: 0 all are valid, 1 one is not."),
		PersistentPreRunE: skipConfig,
		RunE:              func(_ *cobra.Command, args []string) error { return validateConfig(env, args) },
	}
	schema := &cobra.Command{
		Use: "schema", Args: checkArgCount(0, 0), Short: env.T("Print the JSON Schema of regie.yaml for editors"),
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
			p.printLine("%s", sanitize.Line(line))
		}
	})
}

// projectValues returns the values of the workspace's file.
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
			Line: k.Line, Use: k.Use,
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
		key := config.ProjectKey{Use: v.Use}
		word += ": " + env.text.Sentence(key.Effect(false))
	}
	return word
}

// validateConfig checks the named files of settings, or the active files and their combination.
func validateConfig(env *environment, files []string) error {
	p := env.newPrinter()
	var together error
	if len(files) == 0 {
		settings, err := config.Load(os.Getenv, env.flags)
		if together = err; err == nil {
			together = app.CheckServers(settings)
		}
		files = countedFiles(env, &settings)
	}
	broken := false
	for _, file := range files {
		if err := config.CheckFile(file); err != nil {
			broken = true
			p.printLine("✗ %s", sanitize.Line(env.text.Error(err)))
		} else {
			p.printLine("✓ %s", sanitize.Line(file))
		}
	}
	if together != nil && !broken {
		return together
	}
	if broken {
		return exit{exitError}
	}
	return p.err
}

// countedFiles returns the files of settings that count here and are there.
func countedFiles(env *environment, settings *config.Config) []string {
	file, setup := config.Paths(os.Getenv, env.flags.Config)
	found := []string{setup, file}
	if !settings.Apart {
		found = append(found, cmp.Or(env.flags.System, config.SystemFile))
	}
	if root, err := env.localWorkspace(true); err == nil {
		found = append(found, filepath.Join(root, ".regie", "regie.yaml"))
	}
	return slices.DeleteFunc(found, func(name string) bool {
		_, err := os.Stat(name)
		return name != file && err != nil || name == ""
	})
}
