package main

import (
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
)

// TestScreenMoreWords goes through the commands about what answers, what it costs and what goes on;
// the golden files show the whole of it.
func TestScreenMoreWords(t *testing.T) {
	t.Parallel()
	words := map[string][]string{
		"en": {"ready", "which agent:", "response cache of this workspace", "this chat: ", "not sent, the agent never read it:", "working", "paused; /resume goes on", "paused  /resume goes on", "closed"},
		"fr": {"prêt", "quel agent :", "cache de réponses de cet espace de travail", "cette conversation : ", "pas envoyé, l'agent ne l'a jamais lu :", "travaille", "en pause ; /resume continue", "en pause  /resume continue", "fermée"},
	}
	for _, row := range screens {
		t.Run(fmt.Sprintf("%s-%d", row.lang, row.columns), func(t *testing.T) {
			t.Parallel()
			var asked atomic.Int32
			s := newStage(t, reply("The first answer."), func(w http.ResponseWriter, r *http.Request) {
				if asked.Add(1) > 1 {
					reply("Gone on with.")(w, r)
					return
				}
				begins("It begins, ", "and it never ends.", make(chan struct{}))(w, r)
			}, begins("Once more, ", "never said.", make(chan struct{})))
			s.env = append(s.env, "REGIE_LANG="+row.lang)
			p := emulator(s, row.columns, 40, "chat")
			p.sees("›", words[row.lang][0])
			p.enter("one")
			p.sees("The first answer.", words[row.lang][0])
			p.enter("/agent")
			p.sees(words[row.lang][1], "▸ main")
			p.press("Enter")
			p.gone(words[row.lang][1])
			p.enter("/model")
			p.sees("▸ openai/scripted")
			p.press("Escape")
			p.gone("▸ openai/scripted")
			p.enter("/cache")
			p.sees(words[row.lang][2])
			p.enter("/cost")
			p.sees(words[row.lang][3])
			p.enter("two")
			p.sees("It begins,", words[row.lang][5])
			p.enter("/pause")
			p.sees(words[row.lang][6]+"\n", "  "+words[row.lang][7]+" · ") // said once, and in the line of the state
			p.enter("/resume")
			p.sees("Gone on with.", words[row.lang][0])
			p.enter("three")
			p.sees("Once more,", words[row.lang][5])
			p.enter("never mind")
			p.sees("⏳ never mind")
			p.enter("/stop")
			p.sees(words[row.lang][4], "› never mind")
			p.gone("⏳")
			p.sees("  " + words[row.lang][8] + " · ") // which comes last
			p.golden(fmt.Sprintf("words-%s-%d", row.lang, row.columns))
			p.enter("/clear")
			p.gone("The first answer.")
			p.leaves()
		})
	}
}

// TestScreenBell rings and notifies when it waits for the person, in words of ours whatever the
// model says, and never with --bell off.
func TestScreenBell(t *testing.T) {
	t.Parallel()
	for _, row := range []struct {
		lang, bell, want string
	}{
		{"en", "always", "\a\x1b]9;regie: waits for your answer\x07\x1b]777;notify;regie;regie: waits for your answer\x07"},
		{"fr", "always", "\a\x1b]9;regie: attend votre réponse\x07\x1b]777;notify;regie;regie: attend votre réponse\x07"},
		{"en", "off", ""},
	} {
		t.Run(row.lang+"-"+row.bell, func(t *testing.T) {
			t.Parallel()
			s := newStage(t, asks(`{"question": "Which colour?", "options": ["red", "green"]}`), reply("Thank \x1b]9;colour\x07you."))
			s.env = append(s.env, "REGIE_LANG="+row.lang)
			p := emulator(s, 80, 30, "chat", "--bell", row.bell)
			p.sees("›")
			raw := filepath.Join(s.dir, "raw")
			p.tmux("pipe-pane", "-t", p.name, "cat > "+raw)
			p.enter("ask me")
			p.sees("▸ 1  red")
			p.press("Enter")
			p.sees("Thank you.")
			p.leaves()
			data, err := os.ReadFile(raw)
			if err != nil {
				t.Fatal(err)
			}
			if strings.Contains(string(data), "\x1b]9;colour") || row.want == "" && strings.Contains(string(data), "\x1b]9") || !strings.Contains(string(data), row.want) {
				t.Errorf("it wrote %q, wanted %q", data, row.want)
			}
		})
	}
}

// TestScreenExits has the exit codes that a run or a chat at a terminal ends with.
func TestScreenExits(t *testing.T) {
	t.Parallel()
	asking := func() *stage { return newStage(t, reply("I write.", wanted{"a", "a.txt", "one\n"}), reply("I see.")) }
	emulator(&stage{t: t, dir: asking().dir, env: []string{"REGIE_PROVIDER=", "OLLAMA_HOST=127.0.0.1:1", "REGIE_DATA_DIR=" + t.TempDir()}}, 80, 24, "run", "hello", "</dev/null").ends(3)
	emulator(asking(), 80, 24, "run", "--on-approval", "park", "write").ends(4)
	emulator(asking(), 80, 24, "run", "--on-approval", "deny", "write").ends(5)
	emulator(asking(), 80, 24, "run", "--allow", "files.*", "--max-replies", "1", "write").ends(6)
	hanging := newStage(t, begins("It begins, ", "never.", make(chan struct{})))
	interrupted := newNewcomer(t, "regie run hello", "export REGIE_LANG=en "+strings.Join(hanging.env, " "))
	interrupted.sees("run ")
	interrupted.until("the model call", func() bool { return hanging.read() != "" })
	interrupted.press("C-c")
	interrupted.ends(130)
}
