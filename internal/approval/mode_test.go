package approval_test

import (
	"testing"

	"github.com/regie-run/regie"
	"github.com/regie-run/regie/internal/approval"
)

// TestModes holds each mode to what it may change of the verdict of ask, for every combination of
// sources: defaults that ask, and in plan mode actions. What must be asked or is forbidden stays.
func TestModes(t *testing.T) {
	files := func(in *approval.Input) { in.Undoable = true }
	command := func(confined bool) func(*approval.Input) {
		return func(in *approval.Input) { in.Runs, in.Confined, in.Risk = true, confined, regie.RiskExternal }
	}
	kinds := map[string]func(*approval.Input){
		"edit": files, "confined": command(true), "open": command(false), "other": func(*approval.Input) {},
		"query": func(in *approval.Input) { in.Kind = regie.KindQuery },
	}
	lifts := map[regie.Mode][]string{
		regie.ModeAsk: nil, "": nil, regie.ModeAcceptEdits: {"edit"}, regie.ModePlan: nil, regie.ModeAuto: {"edit", "confined"},
	}
	met := 0
	for _, one := range append([]source{{"none", "", func(*approval.Input) {}}}, sources...) {
		for _, two := range sources {
			for kind, add := range kinds {
				before := approval.Decide(call(add, one.add, two.add)).Verdict
				for mode, lifted := range lifts {
					for _, sandboxed := range []bool{true, false} {
						got := approval.Decide(call(add, one.add, two.add, func(in *approval.Input) {
							in.Mode, in.Sandboxed = mode, sandboxed
						}))
						want := before
						for _, name := range lifted {
							if name == kind && before == regie.VerdictAsk && (sandboxed || mode != regie.ModeAuto) {
								want = regie.VerdictAllow
								met++
							}
						}
						if mode == regie.ModePlan && kind != "query" {
							want = regie.VerdictForbid
						}
						if got.Verdict != want {
							t.Fatalf("%s, %s: %s in %q is %s, want %s", one.name, two.name, kind, mode, got.Verdict, want)
						}
					}
				}
			}
		}
	}
	if met == 0 {
		t.Error("no mode lifted anything")
	}
}

// TestNetwork holds a call that asks for the network to rules that say so.
func TestNetwork(t *testing.T) {
	command := regie.Command{Argv: []string{"npm", "install"}, Dir: ".", Network: true}
	offline := command
	offline.Network = false
	argv := func(c regie.Command) regie.Scope {
		return regie.Scope{Tool: writeFile, Field: regie.FieldCommand, Kind: regie.ScopeArgv, Value: c.String()}
	}
	file := approval.FileRule{Tool: "*", Argv: command.Argv, Verdict: regie.VerdictAllow}
	withNetwork := file
	withNetwork.Network = true
	for name, row := range map[string]struct {
		add  func(*approval.Input)
		want regie.Verdict
	}{
		"nothing":             {func(*approval.Input) {}, regie.VerdictMustAsk},
		"the tool is allowed": {withRule(regie.VerdictAllow), regie.VerdictMustAsk},
		"the run allows it":   {withAllowed("*"), regie.VerdictMustAsk},
		"allowed without":     {withRule(regie.VerdictAllow, scoped(argv(offline))), regie.VerdictMustAsk},
		"allowed with it":     {withRule(regie.VerdictAllow, scoped(argv(command))), regie.VerdictAllow},
		"by a file, without":  {func(in *approval.Input) { in.Files = append(in.Files, file) }, regie.VerdictMustAsk},
		"by a file, with it":  {func(in *approval.Input) { in.Files = append(in.Files, withNetwork) }, regie.VerdictAllow},
		"by a file, every call": {func(in *approval.Input) {
			in.Files = append(in.Files, approval.FileRule{Tool: "*", Cwd: "**", Verdict: regie.VerdictAllow})
		}, regie.VerdictMustAsk},
		"with it, and the model": {func(in *approval.Input) { in.Files, in.ModelAsks = append(in.Files, withNetwork), true }, regie.VerdictMustAsk},
		"in the mode auto":       {func(in *approval.Input) { in.Mode, in.Sandboxed = regie.ModeAuto, true }, regie.VerdictMustAsk},
		"forbidden without": {func(in *approval.Input) {
			in.Files = append(in.Files, approval.FileRule{Tool: "*", Argv: command.Argv, Verdict: regie.VerdictForbid})
		}, regie.VerdictForbid},
		"in plan mode, with rule": {func(in *approval.Input) { in.Mode, in.Files = regie.ModePlan, append(in.Files, withNetwork) }, regie.VerdictForbid},
	} {
		got := approval.Decide(call(func(in *approval.Input) {
			in.Runs, in.Network, in.Parts, in.Risk = true, true, []regie.Command{command}, regie.RiskExternal
			row.add(in)
		}))
		if got.Verdict != row.want {
			t.Errorf("%s: %s, want %s", name, got.Verdict, row.want)
		}
	}
	scope := argv(command)
	scope.Value = regie.CommandsValue([]regie.Command{offline, {Argv: []string{"ls"}, Dir: "."}, offline})
	for _, row := range []struct {
		c    regie.Command
		want bool
	}{{offline, true}, {regie.Command{Argv: []string{"ls"}, Dir: "."}, true}, {command, false}, {regie.Command{Argv: []string{"ls"}, Dir: "sub"}, false}} {
		if scope.Matches(writeFile, signature, map[string]any{regie.FieldCommand: row.c.String()}) != row.want {
			t.Errorf("%s in %s", row.c, scope.Value)
		}
	}
}
