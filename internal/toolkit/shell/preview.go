package shell

import (
	"context"
	"slices"
	"strings"

	"github.com/regie-run/regie"
	"github.com/regie-run/regie/internal/sandbox"
	"github.com/regie-run/regie/internal/tool"
)

// preview shows a command and, plainly, what it runs under (spec 8.2). A command that is not
// literal, or that nothing confines, is allowed once.
func (k *toolkit) preview(ctx context.Context, inv *tool.Invocation, a args) (regie.Preview, error) {
	if err := runnable(a); err != nil {
		return regie.Preview{}, err
	}
	found, err := k.confined(ctx, inv, a)
	if err != nil {
		return regie.Preview{}, err
	}
	dir, err := place(inv, a)
	if err != nil {
		return regie.Preview{}, err
	}
	network := k.box(a).Network()
	p := regie.Preview{
		Sentence:      k.sentence(found, a, dir),
		Diff:          "$ " + a.Command + "\n",
		Preconditions: []regie.Precondition{{Kind: regie.PreconditionSandbox, Name: k.label(found, a)}},
		Once:          found.Tier == sandbox.None,
	}
	switch {
	case found.Why != nil:
		p.Warnings = append(p.Warnings, regie.Say("it is not confined: %s", found.Why.Error()))
	case found.Tier == sandbox.None:
		p.Warnings = append(p.Warnings, regie.Say(
			"it is not confined: it can read, change and send anything you can; regie doctor says why"))
	case network:
		p.Warnings = append(p.Warnings, regie.Say("it can reach the network and send anything it can read"))
	}
	if k.snapshots == nil {
		p.Warnings = append(p.Warnings, regie.Say("undo cannot restore the files that it changes"))
	}
	command := k.command(ctx, inv, a)
	switch {
	case len(command.Parts) == 0:
		p.Once = true
		p.Warnings = append(p.Warnings, regie.Say("it runs in a shell, so it can only be allowed once"))
	case found.Tier != sandbox.None:
		p.Scopes = []regie.Scope{{
			Field: regie.FieldCommand, Kind: regie.ScopeArgv, Value: regie.CommandsValue(command.Parts),
			Sentence: scopeSentence(command, dir),
		}}
	}
	return p, nil
}

// scopeSentence says what the proposed rule of a call covers.
func scopeSentence(command tool.CommandLine, dir string) regie.Sentence {
	said := make([]string, len(command.Parts))
	for i, part := range command.Parts {
		said[i] = quoted(part.Argv)
	}
	all := strings.Join(slices.Compact(said), ", ")
	switch alone := len(said) == 1; {
	case alone && command.Network:
		return regie.Say("the command %s in %s, with the network and any timeout", all, directory(dir))
	case alone:
		return regie.Say("the command %s in %s, with any timeout", all, directory(dir))
	case command.Network:
		return regie.Say("the commands %s in %s, each alone or joined, with the network", all, directory(dir))
	default:
		return regie.Say("the commands %s in %s, each alone or joined", all, directory(dir))
	}
}

// runnable refuses an invalid command before any approval or preparation.
func runnable(a args) error {
	var err error
	switch {
	case strings.TrimSpace(a.Command) == "":
		err = regie.Errorf(regie.CodeBadArguments, "the command is empty")
	case strings.IndexByte(a.Command, 0) >= 0:
		err = regie.Errorf(regie.CodeBadArguments, "the command holds a NUL character")
	default:
		return nil
	}
	return tool.Advice{Err: err, Param: "command"}
}

// sentence says what is run and what confines it.
func (k *toolkit) sentence(found sandbox.Found, a args, dir string) regie.Sentence {
	command, dir := short(a.Command), directory(dir)
	switch {
	case found.Tier == sandbox.None:
		return regie.Say("run %s in %s, WITHOUT a sandbox", command, dir)
	case k.box(a).Network():
		return regie.Say("run %s in %s, confined by %s, with the network", command, dir, string(found.Tier))
	default:
		return regie.Say("run %s in %s, confined by %s, without network", command, dir, string(found.Tier))
	}
}

// maxShort bounds a command in a sentence, in bytes; the whole command follows below it.
const maxShort = 300

func short(command string) string {
	if len(command) <= maxShort {
		return command
	}
	return strings.ToValidUTF8(command[:maxShort], "") + "…"
}

// directory is a directory of the workspace in words.
func directory(dir string) string {
	if dir == "." {
		return "./"
	}
	return dir + "/"
}

// quoted writes a literal command so that each argument can be told from the next.
func quoted(argv []string) string {
	out := make([]string, len(argv))
	for i, arg := range argv {
		if out[i] = arg; arg == "" || strings.Trim(arg, bare) != "" {
			out[i] = "'" + strings.ReplaceAll(arg, "'", `'\''`) + "'"
		}
	}
	return strings.Join(out, " ")
}
