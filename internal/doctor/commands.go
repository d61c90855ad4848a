package doctor

import (
	"context"
	"runtime"
	"strconv"

	"github.com/regie-run/regie/internal/sandbox"
)

// checkSandbox reports the sandbox of commands: which tier withstands probes from inside, and what
// the stronger ones lack (spec 8.2).
func (x *exam) checkSandbox(ctx context.Context) {
	if x.Commands == nil {
		return
	}
	found := x.Commands(ctx)
	for i := range found.Checks {
		if check := &found.Checks[i]; !check.Works() {
			x.explainTier(check)
		}
	}
	if found.Err != nil {
		x.addError("tier", found.Err).addFix("fix the problems above, or set shell.sandbox to auto")
		return
	}
	switch found.Tier {
	case sandbox.Bubblewrap:
		x.addFine("tier", "commands are confined by bubblewrap: files, processes and system calls")
	case sandbox.Landlock:
		x.addFine("tier", "commands are confined by Landlock and seccomp: files and system calls")
	default:
		f := x.addWarning("tier", "commands are not confined: a person decides on each, and unattended runs run none").
			addFix("fix the problems above, leave shell.sandbox at auto, and work in a project's own directory on Linux")
		f.Cause = found.Why
	}
	for i := range found.Checks {
		if check := &found.Checks[i]; check.Works() && check.Tier == found.Tier {
			x.addFine("probes", "%s attacks from inside failed", strconv.Itoa(len(check.Probes)))
		}
	}
	if x.Config.File.Shell.Network && found.Tier != sandbox.None {
		x.addWarning("network", "commands can reach the network and send anything they can read").
			addFix("remove shell.network from the settings, unless commands need it")
	}
}

// explainTier says why a tier is not used, and what to do about it.
func (x *exam) explainTier(check *sandbox.Check) {
	tier := string(check.Tier)
	switch check.Missing {
	case sandbox.MissingSystem:
		x.addWarning("system", "there is no sandbox for %s on %s yet", runtime.GOOS,
			runtime.GOARCH).setSubject(tier).addFix("on Linux, use amd64 or arm64")
	case sandbox.MissingBwrap:
		x.addWarning("bubblewrap", "bubblewrap is not installed").setSubject(tier).
			addFix("sudo apt install bubblewrap, or your system's package of that name")
	case sandbox.MissingLandlock:
		x.addWarning("landlock", "the kernel has no Landlock, or one that is too old to confine by itself").setSubject(tier).
			addFix("a kernel from 6.12 on, with landlock in lsm=; or bubblewrap")
	case sandbox.MissingSeccomp:
		x.addWarning("seccomp", "the kernel has no seccomp filters").setSubject(tier).
			addFix("a kernel with CONFIG_SECCOMP_FILTER")
	case sandbox.MissingNamespaces:
		x.addWarning("namespaces", "user namespaces cannot be made here, which %s needs", tier).setSubject(tier).
			addFix("on Ubuntu an AppArmor profile for bwrap, or sudo sysctl kernel.apparmor_restrict_unprivileged_userns=0; elsewhere sudo sysctl user.max_user_namespaces=10000; in a container its owner must allow them")
	}
	switch {
	case check.Missing != "":
	case check.Err != nil:
		x.addWarning("setup", "the sandbox %s does not start: %s", tier,
			check.Err.Error()).setSubject(tier).addFix("make sure that it may be used here; in a container its owner decides")
	default:
		for _, p := range check.Probes {
			if !p.Held {
				x.addWarning("escape", "the sandbox %s is not used: the attack %s from inside succeeded (%s)", tier,
					p.Name, p.Detail).setSubject(p.Name).
					addFix("update the kernel and bubblewrap, and report this")
			}
		}
	}
}
