package doctor

import (
	"context"
	"strings"
	"testing"

	"github.com/regie-run/regie"
	"github.com/regie-run/regie/internal/sandbox"
)

// TestCommands is what is said of each thing that can be found out about the sandbox.
func TestCommands(t *testing.T) {
	held := []sandbox.Probe{{Name: "mount", Held: true}, {Name: "kill", Held: true}}
	works := func(tier sandbox.Tier) sandbox.Check { return sandbox.Check{Tier: tier, Probes: held} }
	lacks := func(tier sandbox.Tier, missing sandbox.Missing) sandbox.Check {
		return sandbox.Check{Tier: tier, Missing: missing}
	}
	for _, row := range []struct {
		name   string
		found  sandbox.Found
		id     string
		status Status
		says   string
		fix    string
	}{
		{"bubblewrap", sandbox.Found{Tier: sandbox.Bubblewrap, Checks: []sandbox.Check{works(sandbox.Bubblewrap)}}, "sandbox.tier", Fine, "bubblewrap", ""},
		{"its probes", sandbox.Found{Tier: sandbox.Bubblewrap, Checks: []sandbox.Check{works(sandbox.Bubblewrap)}}, "sandbox.probes", Fine, "2 attacks from inside failed", ""},
		{"Landlock", sandbox.Found{Tier: sandbox.Landlock, Checks: []sandbox.Check{lacks(sandbox.Bubblewrap, sandbox.MissingBwrap), works(sandbox.Landlock)}}, "sandbox.tier", Fine, "Landlock", ""},
		{"no bubblewrap", sandbox.Found{Tier: sandbox.Landlock, Checks: []sandbox.Check{lacks(sandbox.Bubblewrap, sandbox.MissingBwrap), works(sandbox.Landlock)}}, "sandbox.bubblewrap", Warning, "not installed", "apt install bubblewrap"},
		{"no namespaces", sandbox.Found{Tier: sandbox.None, Checks: []sandbox.Check{lacks(sandbox.Bubblewrap, sandbox.MissingNamespaces)}}, "sandbox.namespaces", Warning, "user namespaces", "sysctl"},
		{"no Landlock", sandbox.Found{Tier: sandbox.None, Checks: []sandbox.Check{lacks(sandbox.Landlock, sandbox.MissingLandlock)}}, "sandbox.landlock", Warning, "too old", "6.12"},
		{"no seccomp", sandbox.Found{Tier: sandbox.None, Checks: []sandbox.Check{lacks(sandbox.Landlock, sandbox.MissingSeccomp)}}, "sandbox.seccomp", Warning, "seccomp", "CONFIG_SECCOMP_FILTER"},
		{"another system", sandbox.Found{Tier: sandbox.None, Checks: []sandbox.Check{lacks(sandbox.Bubblewrap, sandbox.MissingSystem)}}, "sandbox.system", Warning, "no sandbox for", "Linux"},
		{"nothing", sandbox.Found{Tier: sandbox.None}, "sandbox.tier", Warning, "commands are not confined", "fix the problems"},
		{"nothing wanted", sandbox.Found{Tier: sandbox.None, Forced: true}, "sandbox.tier", Warning, "commands are not confined", "auto"},
		{"an unfit workspace", sandbox.Found{Tier: sandbox.None, Why: regie.Errorf(regie.CodeNoSandbox, "the workspace is %s", "home")}, "sandbox.tier", Warning, "the workspace is home", "project"},
		{"a forced one that fails", sandbox.Found{Tier: sandbox.None, Forced: true, Err: regie.Errorf(regie.CodeNoSandbox, "it does not work")}, "sandbox.tier", Failed, "it does not work", "auto"},
		{"one that does not start", sandbox.Found{Tier: sandbox.None, Checks: []sandbox.Check{{Tier: sandbox.Bubblewrap, Err: regie.Errorf(regie.CodeNoSandbox, "no loopback")}}}, "sandbox.setup", Warning, "no loopback", "container"},
		{"one that leaks", sandbox.Found{Tier: sandbox.None, Checks: []sandbox.Check{{Tier: sandbox.Landlock, Probes: []sandbox.Probe{{Name: "mount"}, {Name: "kill", Held: true}}}}}, "sandbox.escape", Warning, "the attack mount", "report"},
	} {
		s := subject("", "")
		s.Commands = func(context.Context) sandbox.Found { return row.found }
		report := Examine(t.Context(), s)
		f := finding(report, row.id, row.status)
		if f == nil {
			t.Errorf("%s: no %s that is %s", row.name, row.id, row.status)
			continue
		}
		said := f.Text.String()
		if f.Cause != nil {
			said = f.Cause.Error()
		}
		if !strings.Contains(said, row.says) || !strings.Contains(fixes(f), row.fix) {
			t.Errorf("%s: %q, %q", row.name, said, fixes(f))
		}
	}
	s := subject("", "")
	s.Config.File.Shell.Network = true
	s.Commands = func(context.Context) sandbox.Found {
		return sandbox.Found{Tier: sandbox.Bubblewrap, Checks: []sandbox.Check{works(sandbox.Bubblewrap)}}
	}
	if f := finding(Examine(t.Context(), s), "sandbox.network", Warning); f == nil {
		t.Error("an allowed network is not told")
	}
}
