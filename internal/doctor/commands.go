package doctor

import (
	"context"
	"runtime"
	"strconv"

	"github.com/regie-run/regie/internal/sandbox"
)

// sandbox says what commands are confined by: which tier holds against probes from inside, and what
// the stronger ones lack (spec 8.2).
func (x *exam) sandbox(ctx context.Context) {
	if x.Commands == nil {
		return
	}
	found := x.Commands(ctx)
	for i := range found.Checks {
		if check := &found.Checks[i]; !check.Works() {
			x.lacks(check)
		}
	}
	if found.Err != nil {
		x.cause("tier", found.Err).fix("mend what stands above, or set shell.sandbox to auto")
		return
	}
	switch found.Tier {
	case sandbox.Bubblewrap:
		x.fine("tier", "commands are confined by bubblewrap: files, processes and system calls")
	case sandbox.Landlock:
		x.fine("tier", "commands are confined by Landlock and seccomp: files and system calls")
	default:
		f := x.warn("tier", "nothing confines commands: a person decides on each, and unattended runs run none").
			fix("mend what stands above, leave shell.sandbox at auto, and work in a project's own directory on Linux")
		f.Cause = found.Why
	}
	for i := range found.Checks {
		if check := &found.Checks[i]; check.Works() && check.Tier == found.Tier {
			x.fine("probes", "%s attacks from inside came to nothing", strconv.Itoa(len(check.Probes)))
		}
	}
	if x.Config.File.Shell.Network && found.Tier != sandbox.None {
		x.warn("network", "commands may reach the network, and send out what they can read").
			fix("leave shell.network out of the settings, unless they need it")
	}
}

// lacks says why a tier is not used, and what to do about it.
func (x *exam) lacks(check *sandbox.Check) {
	tier := string(check.Tier)
	switch check.Missing {
	case sandbox.MissingSystem:
		x.warn("system", "there is no sandbox for %s on %s yet", runtime.GOOS,
			runtime.GOARCH).about(tier).fix("on Linux, use amd64 or arm64")
	case sandbox.MissingBwrap:
		x.warn("bubblewrap", "bubblewrap is not installed").about(tier).
			fix("sudo apt install bubblewrap, or your system's package of that name")
	case sandbox.MissingLandlock:
		x.warn("landlock", "the kernel has no Landlock, or one that is too old to confine by itself").about(tier).
			fix("a kernel from 6.12 on, with landlock in lsm=; or bubblewrap")
	case sandbox.MissingSeccomp:
		x.warn("seccomp", "the kernel has no seccomp filters").about(tier).fix("a kernel with CONFIG_SECCOMP_FILTER")
	case sandbox.MissingNamespaces:
		x.warn("namespaces", "user namespaces cannot be made here, which %s needs", tier).about(tier).
			fix("on Ubuntu an AppArmor profile for bwrap, or sudo sysctl kernel.apparmor_restrict_unprivileged_userns=0; elsewhere sudo sysctl user.max_user_namespaces=10000; in a container its owner must allow them")
	}
	switch {
	case check.Missing != "":
	case check.Err != nil:
		x.warn("setup", "the sandbox %s does not start: %s", tier,
			check.Err.Error()).about(tier).fix("see that it may be used here; in a container its owner decides")
	default:
		for _, p := range check.Probes {
			if !p.Held {
				x.warn("escape", "the sandbox %s is not used: the attack %s from inside got through (%s)", tier,
					p.Name, p.Detail).about(p.Name).
					fix("update the kernel and bubblewrap, and report this")
			}
		}
	}
}
