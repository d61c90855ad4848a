package main

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"io"
	"os"
	"strings"

	"github.com/spf13/cobra"
	"go.yaml.in/yaml/v3"

	"github.com/regie-run/regie"
	"github.com/regie-run/regie/internal/app"
	"github.com/regie-run/regie/internal/chat"
	"github.com/regie-run/regie/internal/control"
	"github.com/regie-run/regie/internal/dispatch"
	"github.com/regie-run/regie/internal/sanitize"
)

// newAgentsCommand lists and changes agents; before the first run the settings say which there are.
func newAgentsCommand(env *environment) *cobra.Command {
	cmd := newAgentListCommand(env, "agents")
	cmd.AddCommand(newAgentListCommand(env, "list"), newAgentShowCommand(env), newAgentAddCommand(env),
		newAgentEditCommand(env), newAgentRemoveCommand(env))
	return cmd
}

func newAgentListCommand(env *environment, use string) *cobra.Command {
	var asJSON bool
	cmd := &cobra.Command{
		Use: use, Args: checkArgCount(0, 0), Short: env.T("List the agents and their models"),
		RunE: func(cmd *cobra.Command, _ []string) error {
			env.detectModel(cmd.Context())
			agents, err := readWorkspace(cmd.Context(), env, false, control.SettingsAgents(env.config),
				func(conn *app.Conn, root string) ([]dispatch.AgentView, error) {
					return conn.Agents.List(cmd.Context(), dispatch.AgentFilter{Root: root})
				})
			return printLines(env, asJSON, agents, err, func(p *printer) {
				for i := range agents {
					a := &agents[i]
					p.printLine("%-16s %s", sanitize.Line(a.Name), sanitize.Line(describeAgent(env, a)))
					if a.Description != "" {
						p.printLine("%-16s %s", "", sanitize.Line(a.Description))
					}
				}
			})
		},
	}
	addJSONFlag(env, cmd, &asJSON)
	addModelFlags(env, cmd)
	return cmd
}

// describeAgent says in a line what answers for an agent and where it is defined.
func describeAgent(env *environment, a *dispatch.AgentView) string {
	said := env.T("no model is chosen")
	if a.Provider != "" {
		said = env.T("%s, model %s", a.Provider, cmp.Or(a.Model, "-"))
	}
	switch {
	case a.Version > 0:
		said += "  " + env.T("(version %d, by %s)", a.Version, a.By)
	case a.Path != "":
		said += "  (" + a.Path + ")"
	}
	if a.Problem != "" {
		said += "  ✗ " + a.Problem
	}
	return said
}

func newAgentShowCommand(env *environment) *cobra.Command {
	var asJSON bool
	var version int
	cmd := &cobra.Command{
		Use: "show NAME", Args: checkArgCount(1, 1), Short: env.T("Show the definition of an agent"),
		RunE: func(cmd *cobra.Command, args []string) error {
			var known dispatch.AgentView // before the first run
			for _, agent := range control.SettingsAgents(env.config) {
				if agent.Name == args[0] {
					known = agent
				}
			}
			found, err := readWorkspace(cmd.Context(), env, false, known,
				func(conn *app.Conn, root string) (dispatch.AgentView, error) {
					return conn.Agents.Get(cmd.Context(), dispatch.AgentQuery{
						Name: args[0], Root: root, Version: version,
					})
				})
			if err == nil && found.Name == "" {
				return regie.Errorf(regie.CodeNotFound, "there is no agent %q here: regie agents list names them", args[0])
			}
			return printLines(env, asJSON, found, err, func(p *printer) {
				p.printLine("%s  %s", sanitize.Line(found.Name), sanitize.Line(describeAgent(env, &found)))
				for line := range strings.Lines(string(definitionYAML(found.Definition))) {
					p.printLine("  %s", sanitize.Strip(strings.TrimRight(line, "\n")))
				}
			})
		},
	}
	addJSONFlag(env, cmd, &asJSON)
	cmd.Flags().IntVar(&version, "version", 0, env.T("this version of an agent in the database"))
	return cmd
}

// definitionYAML returns a definition as it is written in regie.yaml.
func definitionYAML(definition json.RawMessage) []byte {
	var node yaml.Node
	if yaml.Unmarshal(definition, &node) != nil || len(node.Content) == 0 {
		return nil
	}
	setBlockStyle(&node)
	out, _ := yaml.Marshal(&node) // of what was just read
	return out
}

// setBlockStyle drops the quotes and braces of JSON.
func setBlockStyle(node *yaml.Node) {
	node.Style = 0
	for _, part := range node.Content {
		setBlockStyle(part)
	}
}

func newAgentAddCommand(env *environment) *cobra.Command {
	var file string
	cmd := &cobra.Command{
		Use: "add NAME", Args: checkArgCount(1, 1),
		Short: env.T("Add an agent: its definition as under agents.NAME in regie.yaml, in $EDITOR or from a file"),
		RunE: func(cmd *cobra.Command, args []string) error {
			var definition json.RawMessage
			var err error
			if file == "-" && isAttended(env.stdin, env.stderr) {
				definition, err = editDefinition(cmd.Context(), newDefinition)
			} else {
				definition, err = readDefinition(env, file)
			}
			if err != nil {
				return err
			}
			_, err = withConn(cmd.Context(), env, app.Options{}, func(conn *app.Conn) (dispatch.AgentView, error) {
				return conn.Agents.Create(cmd.Context(), dispatch.NewAgent{Name: args[0], Definition: definition})
			})
			return printLines(env, false, 0, err, func(p *printer) {
				p.printLine("%s", env.T("the agent %s is there: regie run --agent %s \"…\"", args[0], args[0]))
			})
		},
	}
	cmd.Flags().StringVarP(&file, "file", "f", "-", env.T("the file with the definition, - for standard input"))
	return cmd
}

// newDefinition is what a person begins a new agent with.
var newDefinition = json.RawMessage(`{"description": "", "instructions": "", "tools": ["files.*"]}`)

// readDefinition reads a definition in YAML or JSON, and returns it as JSON.
func readDefinition(env *environment, file string) (json.RawMessage, error) {
	in := env.stdin
	if file != "-" {
		opened, err := os.Open(file)
		if err != nil {
			return nil, regie.Errorf(regie.CodeBadRequest, "the definition %s cannot be read: %v", file, err)
		}
		defer opened.Close()
		in = opened
	}
	data, err := io.ReadAll(io.LimitReader(in, 1<<20))
	if err != nil {
		return nil, regie.Errorf(regie.CodeBadRequest, "the definition %s cannot be read: %v", file, err)
	}
	return jsonOfYAML(data)
}

func jsonOfYAML(data []byte) (json.RawMessage, error) {
	keys := map[string]any{}
	if err := yaml.Unmarshal(data, &keys); err != nil {
		return nil, regie.Errorf(regie.CodeBadRequest, "the definition is not valid YAML: %v", err)
	}
	return json.Marshal(keys)
}

func newAgentEditCommand(env *environment) *cobra.Command {
	var file string
	cmd := &cobra.Command{
		Use: "edit NAME", Args: checkArgCount(1, 1),
		Short: env.T("Change an agent in $EDITOR, or replace its definition by a file"),
		RunE: func(cmd *cobra.Command, args []string) error {
			changed, err := withConn(cmd.Context(), env, app.Options{}, func(conn *app.Conn) (
				dispatch.AgentView, error,
			) {
				now, err := conn.Agents.Get(cmd.Context(), dispatch.AgentQuery{Name: args[0]})
				if err != nil {
					return now, err
				}
				var definition json.RawMessage
				if file != "" {
					definition, err = readDefinition(env, file)
				} else {
					definition, err = editDefinition(cmd.Context(), now.Definition)
				}
				if err != nil {
					return now, err
				}
				if definition, err = dispatch.PatchTo(now.Definition, definition); err != nil {
					return now, err
				}
				return conn.Agents.Edit(cmd.Context(), dispatch.AgentEdit{
					Name: args[0], Definition: definition, Version: now.Version,
				})
			})
			return printLines(env, false, 0, err, func(p *printer) {
				p.printLine("%s", env.T("the agent %s has version %d, for sessions that begin from now on", args[0], changed.Version))
			})
		},
	}
	cmd.Flags().StringVarP(&file, "file", "f", "", env.T("the file with the definition, - for standard input"))
	return cmd
}

// editDefinition has the person change a definition in an editor.
func editDefinition(ctx context.Context, definition json.RawMessage) (json.RawMessage, error) {
	temp, err := os.CreateTemp("", "regie-agent-*.yaml")
	if err != nil {
		return nil, err
	}
	defer os.Remove(temp.Name())
	_, err = temp.Write(definitionYAML(definition))
	if err = errors.Join(err, temp.Close()); err != nil {
		return nil, err
	}
	if err := chat.Command(chat.EditorLine(os.Getenv))(ctx, temp.Name()); err != nil {
		return nil, regie.Errorf(regie.CodeToolError, "the editor failed, so nothing was changed: %v", err)
	}
	edited, err := os.ReadFile(temp.Name())
	if err != nil {
		return nil, err
	}
	return jsonOfYAML(edited)
}

func newAgentRemoveCommand(env *environment) *cobra.Command {
	return &cobra.Command{
		Use: "rm NAME", Args: checkArgCount(1, 1), Short: env.T("Remove an agent; its sessions keep their version"),
		RunE: func(cmd *cobra.Command, args []string) error {
			_, err := withConn(cmd.Context(), env, app.Options{}, func(conn *app.Conn) (int, error) {
				return 0, conn.Agents.Delete(cmd.Context(), args[0])
			})
			return printLines(env, false, 0, err, func(p *printer) {
				p.printLine("%s", env.T("the agent %s is removed", args[0]))
			})
		},
	}
}
