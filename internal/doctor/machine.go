package doctor

import (
	"context"
	"os"
	"os/exec"
	"runtime"
	"strings"
)

// sandbox says what is there to confine commands with. Nothing needs it yet: the shell comes later.
func (x *exam) sandbox(ctx context.Context) {
	x.fine("shell", "no tool of this version runs commands; the shell comes later, and will be confined by what is here")
	if runtime.GOOS != "linux" {
		x.warn("system", "on %s commands cannot be confined: each will be asked about", runtime.GOOS).fix("nothing to do today")
		return
	}
	if path, err := exec.LookPath("bwrap"); err == nil {
		x.fine("bubblewrap", "bubblewrap: %s", path)
	} else {
		x.warn("bubblewrap", "bubblewrap is not installed").fix("when the shell comes: sudo apt install bubblewrap, or your system's package of that name")
	}
	if abi, err := landlock(); err == nil {
		x.fine("landlock", "Landlock, version %s of its interface", count(abi))
	} else {
		x.warn("landlock", "the kernel has no Landlock (%s)", reason(err)).fix("when the shell comes: a kernel from 5.13 on, with landlock in lsm=")
	}
	if err := seccomp(); err == nil {
		x.fine("seccomp", "seccomp filters")
	} else {
		x.warn("seccomp", "the kernel has no seccomp filters (%s)", reason(err)).fix("when the shell comes: a kernel with CONFIG_SECCOMP_FILTER")
	}
	if err := userNamespaces(ctx); err == nil {
		x.fine("namespaces", "user namespaces")
	} else {
		f := x.warn("namespaces", "user namespaces cannot be made here (%s)", reason(err))
		switch {
		case sysctl("kernel/apparmor_restrict_unprivileged_userns") == "1":
			f.fix("when the shell comes: an AppArmor profile for bwrap, or sudo sysctl kernel.apparmor_restrict_unprivileged_userns=0")
		case sysctl("kernel/unprivileged_userns_clone") == "0":
			f.fix("when the shell comes: sudo sysctl kernel.unprivileged_userns_clone=1")
		default:
			f.fix("when the shell comes: sudo sysctl user.max_user_namespaces=10000; in a container its owner must allow them")
		}
	}
}

// sysctl reads a setting of the kernel, "" where it has none.
func sysctl(name string) string {
	data, err := os.ReadFile("/proc/sys/" + name)
	if err != nil {
		return ""
	}
	return strings.TrimSpace(string(data))
}

// terminal says what the screen is, as far as it changes what is shown.
func (x *exam) terminal(context.Context) {
	if origin := x.Config.Origin["language"]; origin != "" {
		x.fine("language", "language %s (from %s)", x.Config.Language, origin)
	} else {
		x.fine("language", "English, because no variable names a language")
	}
	if locale := locale(x.Env); !utf8Locale(locale) {
		x.warn("encoding", "the locale %s has no UTF-8: ✓ and accents may look wrong", locale).run("export LC_ALL=C.UTF-8")
	}
	names := []string{"stdin", "stdout", "stderr"}
	var there []string
	for i, is := range x.Terminals {
		if is {
			there = append(there, names[i])
		}
	}
	if x.Terminals[0] && x.Terminals[2] {
		x.fine("streams", "a person can be asked here (%s)", strings.Join(there, ", "))
	} else {
		x.fine("streams", "nobody can be asked here: standard input or standard error is no terminal")
	}
	if x.Env("NO_COLOR") != "" {
		x.fine("colour", "NO_COLOR is set: no colours")
	}
	if x.Env("TERM") == "dumb" {
		x.fine("dumb", "TERM is dumb: plain lines")
	}
}

// locale is what decides on letters: the first of these that is set.
func locale(env func(string) string) string {
	for _, name := range []string{"LC_ALL", "LC_CTYPE", "LANG"} {
		if value := env(name); value != "" {
			return value
		}
	}
	return "C"
}

func utf8Locale(name string) bool {
	name = strings.ToLower(strings.ReplaceAll(name, "-", ""))
	return strings.Contains(name, "utf8") || runtime.GOOS == "darwin"
}
