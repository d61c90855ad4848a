package sandbox

import (
	"context"
	"encoding/json"
	"errors"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"github.com/regie-run/regie"
)

// tryTime bounds the probes of one tier.
const tryTime = 10 * time.Second

// canary is in the environment of each try, and must not reach a probe.
const canary = "regie-probe-canary"

// canUnshare reports whether user namespaces can be made here, by making one.
func canUnshare() bool {
	cmd := exec.Command("/proc/self/exe") //nolint:noctx // it ends at once
	cmd.Args, cmd.Env = []string{probeName}, []string{}
	cmd.SysProcAttr = &syscall.SysProcAttr{Cloneflags: syscall.CLONE_NEWUSER}
	return !errors.As(cmd.Run(), new(*os.PathError)) && cmd.ProcessState != nil
}

// missingOf names what a tier lacks.
func (s *Sandbox) missingOf(tier Tier) Missing {
	switch {
	case auditArch == 0 || !staged.Load():
		return MissingSystem
	case !seccompThere():
		return MissingSeccomp
	case tier == Bubblewrap && s.findBwrap() == "":
		return MissingBwrap
	case tier == Landlock && landlockVersion() < landlockNeeded:
		return MissingLandlock
	case tier == Landlock && os.Geteuid() == 0 && !canUnshare():
		return MissingNamespaces
	default:
		return ""
	}
}

// tryTier sets a tier up and attacks it from inside.
func (s *Sandbox) tryTier(ctx context.Context, tier Tier) Check {
	check := Check{Tier: tier, Missing: s.missingOf(tier)}
	if check.Missing != "" {
		return check
	}
	check.Probes, check.Err = s.probeTier(ctx, tier)
	if check.Err != nil && tier == Bubblewrap && !canUnshare() {
		check.Missing = MissingNamespaces
	}
	if check.Err == nil {
		var bound Probe
		bound, check.Err = s.probeBounds(ctx, tier)
		check.Probes = append(check.Probes, bound)
	}
	return check
}

// probeTier makes the targets, runs the probes, and checks the targets from outside.
func (s *Sandbox) probeTier(ctx context.Context, tier Tier) (_ []Probe, err error) {
	ctx, cancel := context.WithTimeout(ctx, tryTime)
	defer cancel()
	base, err := os.MkdirTemp("", "regie-probe-")
	if err != nil {
		return nil, regie.Errorf(regie.CodeToolError, "no temporary directory can be made for the probes: %v", err)
	}
	defer removeAll(base)
	if base, err = filepath.EvalSymlinks(base); err != nil {
		return nil, err
	}
	t, err := prepareTargets(base)
	if t != nil {
		defer t.stop()
	}
	if err != nil {
		return nil, regie.Errorf(regie.CodeToolError, "the probes cannot be prepared: %v", err)
	}
	t.Offline = !s.config.Network
	told, err := json.Marshal(t.targets)
	if err != nil {
		return nil, err
	}
	inner := New(s.config)
	inner.config.Read = append([]string{filepath.Dir(t.Data)}, s.config.Read...)
	inner.config.Hidden = append([]string{t.Data}, s.config.Hidden...)
	inner.config.Environ = append([]string{
		"REGIE_PROBE_TOKEN=" + canary,
		"LANG=C-" + canary + "://user:" + canary + "@host",
	}, s.config.Environ...)
	said := NewExcerpt(1 << 20)
	result, err := inner.Run(ctx, Command{
		Argv: []string{probeName}, Root: t.Root, Dir: t.Root, Tier: tier, Timeout: tryTime,
		Output: func(p []byte) { _, _ = said.Write(p) }, probe: string(told),
	})
	if err != nil {
		return nil, err
	}
	var probes []Probe
	if json.Unmarshal(said.Head(), &probes) != nil || len(probes) != len(attacks) {
		head := said.Head()[:min(len(said.Head()), 300)]
		return nil, regie.Errorf(regie.CodeNoSandbox, "the probes could not be run (exit code %d): %s", result.Exit,
			strings.TrimSpace(string(head)))
	}
	return lookAfter(t, probes), nil
}

// prepared are targets as they lie ready.
type prepared struct {
	*targets
	received func() bool // whether a datagram has come
	stop     func()
}

// gitConfig names places of the workspace that git runs, and believes.
const gitConfig = "[core]\n\thooksPath = .husky/_\n[include]\n\tpath = ../sub/included\n"

// prepareTargets makes the targets.
func prepareTargets(base string) (*prepared, error) {
	t := &targets{
		Root: filepath.Join(base, "workspace"), Outside: filepath.Join(base, "outside"),
		Data: filepath.Join(base, "shared", "data"), Canary: canary,
	}
	for _, dir := range []string{".git/hooks", ".git/rebase-merge", ".husky/_", ".regie", "sub", "../shared/data"} {
		if err := os.MkdirAll(filepath.Join(t.Root, dir), 0o700); err != nil {
			return nil, err
		}
	}
	err := os.Mkdir(t.Outside, 0o700)
	for path, text := range map[string]string{
		filepath.Join(t.Root, ".git", "config"): gitConfig, filepath.Join(t.Root, "sub", "included"): "# kept\n",
		filepath.Join(t.Root, ".git", "rebase-merge", "git-rebase-todo"): "kept\n",
		filepath.Join(t.Data, "secret"):                                  "kept\n",
		filepath.Join(t.Outside, "secret"):                               "kept\n",
	} {
		err = errors.Join(err, os.WriteFile(path, []byte(text), 0o600))
	}
	if err != nil {
		return nil, err
	}
	t.Unix, t.Abstract = filepath.Join(t.Outside, "socket"), "regie-probe-"+filepath.Base(base)
	var open []func()
	stop := func() {
		for _, f := range open {
			f()
		}
	}
	listen := func(network, address string) net.Listener {
		l, failed := net.Listen(network, address)
		if failed != nil {
			err = errors.Join(err, failed)
			return nil
		}
		open = append(open, func() { _ = l.Close() })
		return l
	}
	listen("unix", t.Unix)
	listen("unix", "@"+t.Abstract)
	if l := listen("tcp", "127.0.0.1:0"); l != nil {
		t.TCP = l.Addr().String()
	}
	c, failed := new(net.ListenConfig).ListenPacket(context.Background(), "udp", "127.0.0.1:0")
	if failed == nil {
		open = append(open, func() { _ = c.Close() })
		t.UDP = c.LocalAddr().String()
	}
	err = errors.Join(err, failed)
	t.Victim = os.Getpid()
	t.Processes, _ = os.Readlink("/proc/self/ns/pid") // where it cannot be read it is no other one
	received := func() bool {
		_ = c.SetReadDeadline(time.Now().Add(20 * time.Millisecond)) // what was sent on this machine has arrived
		_, _, failed := c.ReadFrom(make([]byte, 16))
		return failed == nil
	}
	return &prepared{t, received, stop}, err
}

// lookAfter compares the targets with their earlier state: a probe may be wrong about itself.
func lookAfter(t *prepared, probes []Probe) []Probe {
	broken := func(name, detail string) {
		for i := range probes {
			if probes[i].Name == name {
				probes[i].Held, probes[i].Detail = false, detail
			}
		}
	}
	untouched := func(name, path, want string) {
		data, err := os.ReadFile(path)
		if (err == nil) != (want != "") || string(data) != want {
			broken(name, filepath.Base(path)+" is not what it was")
		}
	}
	putBack := func(name, path, want string) { // the guard has done so, where the tier itself does not refuse it
		for i := range probes {
			if data, err := os.ReadFile(path); probes[i].Name == name && (err == nil) == (want != "") &&
				string(data) == want && !probes[i].Held {
				probes[i].Held, probes[i].Detail = true, "it was put back"
			}
		}
		untouched(name, path, want)
	}
	if t.Offline && t.received() {
		broken("datagrams", "a datagram came through")
	}
	untouched("write-outside", filepath.Join(t.Outside, "written"), "")
	putBack("write-git-hook", filepath.Join(t.Root, ".git", "hooks", "pre-commit"), "")
	putBack("write-git-config", filepath.Join(t.Root, ".git", "config"), gitConfig)
	putBack("write-git-named-hook", filepath.Join(t.Root, ".husky", "_", "pre-commit"), "")
	putBack("write-git-included", filepath.Join(t.Root, "sub", "included"), "# kept\n")
	putBack("write-git-rebase", filepath.Join(t.Root, ".git", "rebase-merge", "git-rebase-todo"), "kept\n")
	putBack("write-regie", filepath.Join(t.Root, ".regie", "regie.yaml"), "")
	putBack("make-git-store", filepath.Join(t.Root, ".git", "modules", "x", "hooks", "post-checkout"), "")
	putBack("make-repository", filepath.Join(t.Root, "sub", "bare", "hooks", "post-checkout"), "")
	untouched("make-repository", filepath.Join(t.Root, "sub", "bare", "config"), "")
	untouched("refuse-work", filepath.Join(t.Root, "new"), "probe\n")
	untouched("read-outside", filepath.Join(t.Outside, "secret"), "kept\n")
	return probes
}
