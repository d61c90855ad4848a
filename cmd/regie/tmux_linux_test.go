package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"
)

var updateScreens = flag.Bool("update-screens", false, "write the golden screens anew")

// pane is the program in a real terminal emulator, as a person sees it: the screen, the scrollback
// and the keys.
type pane struct {
	t    *testing.T
	env  []string
	name string
}

// drawn is a terminal that people have: its language and width, and how the line of state is called
// there when nothing runs and when something does.
type drawn struct {
	lang           string
	columns        int
	ready, working string
}

// screens are the four in which the chat is looked at: what is drawn is held in both languages and
// at both widths.
var screens = []drawn{{"en", 80, "ready", "working"}, {"en", 200, "ready", "working"}, {"fr", 80, "prêt", "travaille"}, {"fr", 200, "prêt", "travaille"}}

// at is the same at another width.
func (d drawn) at(columns int) drawn { d.columns = columns; return d }

// emulator starts a terminal of a size with a shell that runs the program, and shows its exit code
// when it has ended.
func emulator(s *stage, columns, lines int, args ...string) *pane {
	s.t.Helper()
	command := "regie " + strings.Join(args, " ") + `; echo "exit=$?"; exec cat`
	for _, variable := range s.env {
		if strings.HasPrefix(variable, "TERM=") { // the emulator has one of its own
			command = variable + " " + command
		}
	}
	return emulatorOf(s, columns, lines, command)
}

// chatAt starts a chat in a terminal of a size.
func chatAt(s *stage, columns, lines int) *pane {
	s.t.Helper()
	p := emulator(s, columns, lines, "chat")
	p.sees("›", "ready")
	return p
}

// emulatorOf starts a terminal of a size with a command of the shell.
func emulatorOf(s *stage, columns, lines int, command string) *pane {
	s.t.Helper()
	needsTmux(s.t)
	p := &pane{t: s.t, name: "pane"}
	dir := s.t.TempDir()
	home := filepath.Join(s.dir, "home")
	if err := os.MkdirAll(home, 0o700); err != nil {
		s.t.Fatal(err)
	}
	p.env = append([]string{"PATH=" + os.Getenv("PATH"), "HOME=" + home, "REGIE_LANG=en", "TERM=screen", "LC_ALL=C.UTF-8", "TMUX_TMPDIR=" + dir, "SHELL=/bin/sh", "REGIE_BELL=off"}, s.env...)
	settings := filepath.Join(dir, "tmux.conf")
	if err := os.WriteFile(settings, []byte("set -g history-limit 20000\nset -s escape-time 0\nset -g status off\nset -g remain-on-exit on\n"), 0o600); err != nil {
		s.t.Fatal(err)
	}
	p.tmux("-f", settings, "new-session", "-d", "-s", p.name, "-x", strconv.Itoa(columns), "-y", strconv.Itoa(lines), "-c", filepath.Join(s.dir, "work"), command)
	s.t.Cleanup(p.kill)
	return p
}

// needsTmux skips a test where there is no emulator; with REGIE_CI it fails.
func needsTmux(t *testing.T) {
	t.Helper()
	if _, err := exec.LookPath("tmux"); err != nil {
		if os.Getenv("REGIE_CI") != "" {
			t.Fatal("tmux is needed here (Debian package tmux)")
		}
		t.Skip("without tmux there is no terminal emulator to look at")
	}
}

// kill ends the emulator, at the end of a test.
func (p *pane) kill() {
	cmd := exec.CommandContext(context.WithoutCancel(p.t.Context()), "tmux", "kill-server")
	cmd.Env = p.env
	_ = cmd.Run()
}

func (p *pane) tmux(args ...string) string {
	p.t.Helper()
	cmd := exec.CommandContext(p.t.Context(), "tmux", args...)
	cmd.Env = p.env
	out, err := cmd.CombinedOutput()
	if err != nil {
		p.t.Fatalf("tmux %s: %v\n%s", strings.Join(args, " "), err, out)
	}
	return string(out)
}

// screen is what is on the screen, all what is in the scrollback above it too. Lines that the
// emulator has broken are whole in joined.
func (p *pane) screen() string { return p.tmux("capture-pane", "-p", "-t", p.name) }
func (p *pane) all() string    { return p.tmux("capture-pane", "-p", "-t", p.name, "-S", "-") }
func (p *pane) joined() string { return p.tmux("capture-pane", "-p", "-J", "-t", p.name, "-S", "-") }

func (p *pane) coloured() string {
	return p.tmux("capture-pane", "-p", "-e", "-t", p.name, "-S", "-")
}

// until waits until something is so.
func (p *pane) until(what string, is func() bool) {
	p.t.Helper()
	deadline := time.Now().Add(patience)
	for !is() {
		if time.Now().After(deadline) {
			p.t.Fatalf("%s does not come:\n%s", what, p.all())
		}
		time.Sleep(10 * time.Millisecond) // between two looks
	}
}

// sees waits until texts are on the screen together; gone until one is not.
func (p *pane) sees(wanted ...string) {
	p.t.Helper()
	p.until(fmt.Sprintf("%q", wanted), func() bool {
		screen := p.screen()
		for _, want := range wanted {
			if !strings.Contains(screen, want) {
				return false
			}
		}
		return true
	})
}

func (p *pane) gone(text string) {
	p.t.Helper()
	p.until("the end of "+text, func() bool { return !strings.Contains(p.screen(), text) })
}

// once waits until a text stands exactly once in the scrollback and on the screen: a look at a
// screen that is being drawn may miss a line.
func (p *pane) once(text string) {
	p.t.Helper()
	p.until(fmt.Sprintf("%q just once", text), func() bool { return strings.Count(p.joined(), text) == 1 })
}

// types types letters, press keys by their names.
func (p *pane) types(text string) { p.t.Helper(); p.tmux("send-keys", "-t", p.name, "-l", text) }

func (p *pane) press(keys ...string) {
	p.t.Helper()
	p.tmux(append([]string{"send-keys", "-t", p.name}, keys...)...)
}

// enter types a message and sends it.
func (p *pane) enter(text string) {
	p.t.Helper()
	p.types(text)
	p.press("Enter")
}

// allows enters what is asked about, and allows it once.
func (p *pane) allows(text string) {
	p.t.Helper()
	p.enter(text)
	p.sees("[l]")
	p.press("y")
}

// leaves ends a chat at its empty prompt.
func (p *pane) leaves() {
	p.t.Helper()
	p.press("C-d")
	p.ends(0)
}

func (p *pane) resize(columns, lines int) {
	p.t.Helper()
	p.tmux("resize-window", "-t", p.name, "-x", strconv.Itoa(columns), "-y", strconv.Itoa(lines))
}

// knowsItsSize waits until the emulator has told the program its size, some time after the screen
// has it.
func (p *pane) knowsItsSize(columns, lines int) {
	p.t.Helper()
	file := strings.TrimSpace(p.tmux("display-message", "-p", "-t", p.name, "#{pane_tty}"))
	p.until("the new size", func() bool {
		said, err := exec.CommandContext(p.t.Context(), "stty", "-F", file, "size").Output()
		if err != nil {
			p.t.Fatal(err)
		}
		return string(said) == fmt.Sprintf("%d %d\n", lines, columns)
	})
}

// rests waits until nothing but the seconds has changed on the terminal for a while.
func (p *pane) rests() {
	p.t.Helper()
	last, since := "", time.Now()
	p.until("rest", func() bool {
		now := aNumber.ReplaceAllString(p.all(), "N")
		if now != last {
			last, since = now, time.Now()
		}
		return time.Since(since) >= 350*time.Millisecond
	})
}

// ends waits for the end of the program and expects its exit code.
func (p *pane) ends(code int) {
	p.t.Helper()
	p.until("the end", func() bool { return strings.Contains(p.all(), "exit=") })
	if all := p.all(); !strings.Contains(all, fmt.Sprintf("exit=%d\n", code)) {
		p.t.Fatalf("it did not exit %d:\n%s", code, all)
	}
}

// varying is what is another one each time: ids, times, the directory.
var varying = []struct {
	of *regexp.Regexp
	as string
}{
	{regexp.MustCompile(`[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}`), "ID"},
	{regexp.MustCompile(`\b[0-9a-f]{8}\b`), "SHORT"},
	{regexp.MustCompile(`[0-9]+(?:[,.\x{a0}\x{202f} ]?[0-9]{3})*[.,][0-9] ms`), "N ms"},
	{regexp.MustCompile(`(in|dans) /\S*(\n\S*work)?`), "$1 DIR"},
	{regexp.MustCompile(`[0-9]+ s  `), "N s  "},
}

// golden compares all that was written with a file, as far as it is the same each time.
func (p *pane) golden(name string) {
	p.t.Helper()
	got := p.joined()
	for _, v := range varying {
		got = v.of.ReplaceAllString(got, v.as)
	}
	lines := strings.Split(got, "\n")
	for i := range lines {
		lines[i] = strings.TrimRight(lines[i], " ")
	}
	got = strings.TrimRight(strings.Join(lines, "\n"), "\n") + "\n"
	path := filepath.Join("testdata", "screens", name+".txt")
	if *updateScreens {
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			p.t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(got), 0o644); err != nil {
			p.t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		p.t.Fatal(err)
	}
	if got != string(want) {
		p.t.Errorf("the screen is not %s (go test ./cmd/regie -run %s -update-screens writes it anew):\n%s", path, p.t.Name(), got)
	}
}
