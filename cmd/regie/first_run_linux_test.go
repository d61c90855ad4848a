package main

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/regie-run/regie/internal/provider/providertest"
)

// newcomer is somebody who sees Regie for the first time: a terminal with one program in it, and a
// home where nothing is.
type newcomer struct {
	*pane
	home string
}

// newNewcomer starts a line of shell in a terminal of 80 columns, in an empty environment but for
// the variables.
func newNewcomer(t *testing.T, line string, variables ...string) *newcomer {
	t.Helper()
	return newNewcomerAt(t, 80, line, variables...)
}

func newNewcomerAt(t *testing.T, columns int, line string, variables ...string) *newcomer {
	t.Helper()
	needsTmux(t)
	regie, err := exec.LookPath("regie")
	if err != nil {
		t.Fatal(err)
	}
	dir, err := os.MkdirTemp("", "term") //nolint:usetesting // a socket's path is short
	if err != nil {
		t.Fatal(err)
	}
	term := &newcomer{&pane{t: t, name: "pane", env: []string{"PATH=" + os.Getenv("PATH"), "TMUX_TMPDIR=" + dir, "LC_ALL=C.UTF-8", "TERM=xterm-256color"}}, filepath.Join(dir, "home")}
	work := filepath.Join(dir, "work")
	for _, made := range []string{term.home, work} {
		if err := os.Mkdir(made, 0o700); err != nil {
			t.Fatal(err)
		}
	}
	script := filepath.Join(dir, "go.sh")
	text := fmt.Sprintf("trap : INT\ncd %s\nexport HOME=%s PATH=%s:$PATH OLLAMA_HOST=127.0.0.1:1\n%s\n%s\necho exit=$?\nexec cat\n", work, term.home, filepath.Dir(regie),
		strings.Join(variables, "\n"), line)
	if err := os.WriteFile(script, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		term.kill()
		_ = os.RemoveAll(dir)
	})
	term.tmux("-f", "/dev/null", "new-session", "-d", "-s", term.name, "-x", strconv.Itoa(columns), "-y", "60", "env", "-i", "PATH="+os.Getenv("PATH"), "TERM=xterm-256color", "LC_ALL=C.UTF-8", "sh", script)
	return term
}

// shows waits until the screen ends with, or holds, something, and returns it.
func (term *newcomer) shows(what string) (screen string) {
	term.t.Helper()
	term.until(what, func() bool {
		screen = strings.TrimRight(term.joined(), "\n ")
		return strings.HasSuffix(screen, what) || (strings.HasPrefix(what, "exit=") || what == "/help") && strings.Contains(screen, what)
	})
	return screen
}

// stored is what regie setup has stored, empty where that is nothing.
func (term *newcomer) stored() string {
	term.t.Helper()
	name := filepath.Join(term.home, ".config", "regie", "setup.yaml")
	info, err := os.Stat(name)
	if err != nil {
		return ""
	}
	if info.Mode().Perm() != 0o600 {
		term.t.Errorf("%s has mode %v", name, info.Mode())
	}
	data, err := os.ReadFile(name)
	if err != nil {
		term.t.Fatal(err)
	}
	return string(data)
}

var (
	aPort = regexp.MustCompile(`127\.0\.0\.1:\d{2,}`)
	aTemp = regexp.MustCompile(`/\S*/term\d+`)
	// aFile is one of those, on whichever line its length has put it.
	aFile = regexp.MustCompile(`[ \n](/DIR\S*)[ \n]`)
)

// shownAs compares a screen with a file.
func shownAs(t *testing.T, name, screen string) {
	t.Helper()
	screen = aTemp.ReplaceAllString(aPort.ReplaceAllString(screen, "127.0.0.1:PORT"), "/DIR") + "\n"
	screen = aFile.ReplaceAllString(screen, " $1 ")
	file := filepath.Join("testdata", name+".golden")
	if *update {
		if err := os.WriteFile(file, []byte(screen), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), screen); diff != "" {
		t.Errorf("%s (-want +got, -update writes it):\n%s", file, diff)
	}
}

// keyed is a model server that wants a key.
func keyed(t *testing.T) string {
	t.Helper()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		if r.Header.Get("Authorization") != "Bearer sk-right-canary-0123" {
			w.WriteHeader(http.StatusUnauthorized)
			fmt.Fprint(w, `{"error":{"message":"Incorrect API key provided","code":"invalid_api_key"}}`)
			return
		}
		fmt.Fprint(w, `{"object":"list","data":[{"id":"large-1","object":"model"},{"id":"small-1","object":"model"}]}`)
	}))
	t.Cleanup(server.Close)
	return server.URL + "/v1"
}

// TestFirstMinute is what a new user sees (spec 10.1), in each language: no model anywhere, a wrong
// key, a right one; a key in the environment; Ollama on this machine; no terminal.
func TestFirstMinute(t *testing.T) {
	t.Parallel()
	for lang, words := range map[string]map[string]string{
		"en": {"which": "Which? (Enter for 1):", "address": "http://127.0.0.1:8000/v1):", "key": "empty for none):", "model": "Enter for large-1):", "prompt": "/help", "openai": "using openai with the model gpt-5.4 (OPENAI_API_KEY)", "ollama": "using ollama with the model qwen3:8b (found on this machine)"},
		"fr": {"which": "Lequel ? (Entrée pour 1) :", "address": "http://127.0.0.1:8000/v1) :", "key": "vide s'il n'y en a pas) :", "model": "Entrée pour large-1) :", "prompt": "/help", "openai": "openai répond avec le modèle gpt-5.4 (OPENAI_API_KEY)", "ollama": "ollama répond avec le modèle qwen3:8b (trouvé sur cette machine)"},
	} {
		for _, columns := range []int{40, 80, 200} { // at each width lines end at words: the terminal breaks none
			at := fmt.Sprintf("%s-%d", lang, columns)
			t.Run("no-terminal-"+at, func(t *testing.T) {
				t.Parallel()
				term := newNewcomerAt(t, columns, "regie < /dev/null", "export REGIE_LANG="+lang)
				screen := term.shows("exit=3")
				shownAs(t, "first.pipe."+at, screen)
				if got := strings.TrimRight(term.screen(), "\n "); got != screen {
					t.Errorf("the terminal breaks a line:\n%s", got)
				}
			})
			if columns >= 80 {
				firstMinute(t, lang, columns, words)
			}
		}
	}
}

// firstMinute are the cases at a terminal.
func firstMinute(t *testing.T, lang string, columns int, words map[string]string) {
	t.Helper()
	const right, wrong = "sk-right-canary-0123", "sk-wrong-canary-0123"
	at := fmt.Sprintf("%s-%d", lang, columns)
	t.Run("none-"+at, func(t *testing.T) {
		t.Parallel()
		address := keyed(t)
		term := newNewcomerAt(t, columns, "regie setup", "export REGIE_LANG="+lang)
		for _, key := range []string{wrong, right} {
			term.shows(words["which"])
			term.enter("2")
			term.shows(words["address"])
			term.enter(address)
			term.shows(words["key"])
			if term.enter(key); key == right {
				continue
			}
			if term.shows(words["which"]); term.stored() != "" {
				t.Errorf("a wrong key is stored: %s", term.stored())
			}
		}
		term.shows(words["model"])
		term.enter("2")
		screen := term.shows("exit=0")
		shownAs(t, "first.none."+at, screen)
		if strings.Contains(screen, "canary") {
			t.Error("a key is shown")
		}
		if s := term.stored(); !strings.Contains(s, right) || strings.Contains(s, wrong) || !strings.Contains(s, "small-1") {
			t.Errorf("stored: %s", s)
		}
	})
	t.Run("key-"+at, func(t *testing.T) {
		t.Parallel()
		term := newNewcomerAt(t, columns, "echo what stood there; echo before; regie", "export REGIE_LANG="+lang, "export OPENAI_API_KEY=sk-canary-0123456789")
		term.sees("regie main ", words["prompt"])
		screen := term.joined()
		if !strings.Contains(screen, words["openai"]) || strings.Contains(screen, "canary") {
			t.Errorf("a key is shown, or not that it was found:\n%s", screen)
		}
		if !strings.HasPrefix(screen, "what stood there\nbefore\n") || !strings.HasPrefix(term.screen(), "what stood there\n") {
			t.Errorf("the chat draws over what the terminal shows of others:\n%s", screen)
		}
	})
	t.Run("ollama-"+at, func(t *testing.T) {
		t.Parallel()
		var format providertest.Format
		for _, f := range providertest.Formats() {
			if f.Name == "ollama" {
				format = f
			}
		}
		server := providertest.NewServer(t, &format)
		server.Models = []string{"nomic-embed-text", "qwen3:8b"}
		term := newNewcomerAt(t, columns, "regie", "export REGIE_LANG="+lang, "export OLLAMA_HOST="+server.URL)
		if screen := term.shows(words["prompt"]); !strings.Contains(screen, words["ollama"]) {
			t.Errorf("it does not say what was found:\n%s", screen)
		}
	})
}

// TestSetupInterrupted: Ctrl-C in the middle leaves nothing half stored, and what was stored before
// as it was.
func TestSetupInterrupted(t *testing.T) {
	t.Parallel()
	address := keyed(t)
	term := newNewcomer(t, "regie setup --provider demo; regie setup", "export REGIE_LANG=en")
	term.shows("Which? (Enter for 1):")
	before := term.stored()
	term.enter("2")
	term.shows("http://127.0.0.1:8000/v1):")
	term.enter(address)
	term.shows("empty for none):")
	term.types("sk-right-can")
	term.press("C-c")
	term.shows("exit=130")
	if before == "" || term.stored() != before {
		t.Errorf("stored: %q, before %q", term.stored(), before)
	}
	if screen := term.screen(); strings.Contains(screen, "sk-right") {
		t.Errorf("a key is shown:\n%s", screen)
	}
}

// TestSetup_AddressEdited: an address needs no scheme and is corrected with the arrow keys; one of
// another machine is asked about. Enter takes what each question offers.
func TestSetup_AddressEdited(t *testing.T) {
	t.Parallel()
	host := strings.TrimSuffix(strings.TrimPrefix(keyed(t), "http://1"), "/v1")
	term := newNewcomer(t, "regie setup", "export REGIE_LANG=en")
	term.shows("Which? (Enter for 1):")
	term.enter("2")
	term.shows("http://127.0.0.1:8000/v1):")
	term.types(host)
	for range host {
		term.press("Left")
	}
	term.enter("1")
	term.shows("empty for none):")
	term.enter("sk-right-canary-0123")
	term.shows("Enter for large-1):")
	term.enter("")
	term.shows("exit=0")
	if got := term.stored(); !strings.Contains(got, "base_url: http://1"+host) || !strings.Contains(got, "large-1") {
		t.Errorf("stored: %s", got)
	}
	other := newNewcomer(t, "regie setup", "export REGIE_LANG=en")
	other.shows("Which? (Enter for 1):")
	other.enter("2")
	other.shows("http://127.0.0.1:8000/v1):")
	other.enter("models.example:8000")
	other.sees("1. https://models.example:8000", "2. http://models.example:8000 (others on the network can read everything")
}

// TestDemo_OffersModel: a key that appears after the demo was chosen is offered.
func TestDemo_OffersModel(t *testing.T) {
	t.Parallel()
	term := newNewcomer(t, "regie setup --provider demo; regie run hello; export OPENAI_API_KEY=sk-canary-0123456789; regie", "export REGIE_LANG=en")
	term.shows("Choose it now? [y/N]")
	if got := strings.Count(term.joined(), "although a model could: openai; regie setup"); got != 1 {
		t.Errorf("offered %d times:\n%s", got, term.joined())
	}
	term.enter("y")
	term.shows("Which? (Enter for 1):")
	if screen := term.joined(); !strings.Contains(screen, "1. openai, as it is configured (OPENAI_API_KEY)") {
		t.Errorf("%s", screen)
	}
}

// TestChat_FinishedMeanwhile: what finished without a person opens the next visits, until it was
// looked at.
func TestChat_FinishedMeanwhile(t *testing.T) {
	t.Parallel()
	term := newNewcomer(t, "for job in a b c d; do regie run --provider demo \"hello $job\" < /dev/null > /dev/null 2>&1; done; regie --provider demo --plain\n"+
		"regie sessions show last; regie --provider demo --plain", "export REGIE_LANG=en")
	term.shows(">")
	line := regexp.MustCompile(`finished while you were away: hello d \(\w{8}\), hello c \(\w{8}\), hello b \(\w{8}\), 1\s+more; see regie sessions list, show ID`)
	if got := strings.Join(strings.Fields(term.joined()), " "); !line.MatchString(got) {
		t.Errorf("%s", got)
	}
	term.press("C-d")
	term.until("another visit", func() bool { return strings.Count(term.joined(), "finished while you were away: hello c (") == 1 })
	if got := term.joined(); strings.Count(got, "hello d (") != 1 { // it was shown
		t.Errorf("%s", got)
	}
}

// TestSetupOverruled: where the person's own file names another provider, setup says that it goes
// first.
func TestSetupOverruled(t *testing.T) {
	t.Parallel()
	term := newNewcomer(t, "mkdir -p $HOME/.config/regie; echo 'agents: {main: {provider: ollama, model: m}}' > $HOME/.config/regie/regie.yaml; regie setup --provider demo", "export REGIE_LANG=en")
	if screen := term.shows("exit=0"); !strings.Contains(strings.Join(strings.Fields(screen), " "), "regie.yaml overrides it") {
		t.Errorf("%s", screen)
	}
}
