//go:build faults

package crash

import (
	"encoding/json"
	"errors"
	"fmt"
	"hash/fnv"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/regie-run/regie"
	"github.com/regie-run/regie/internal/approval"
	"github.com/regie-run/regie/internal/store"
)

// kinds are the scenarios. A session's seed chooses one of them in turn, so that a short run has
// each.
var kinds = []string{
	"allowed",    // the policy allows everything, as nobody is there
	"answers",    // it asks; a person answers in several requests
	"disputed",   // and a second person answers otherwise
	"messages",   // messages come while the round runs or waits
	"stopped",    // it is interrupted or stopped
	"paused",     // it is paused and goes on
	"late",       // approvals and questions expire, some before the answer
	"questions",  // the model asks the person
	"left",       // nobody answers for now
	"busy",       // everything is allowed, messages come and it is stopped
	"json",       // the model replies in JSON, sometimes not, and asks
	"automation", // nobody watches, in either dialect
	"long",       // the prompts pass their budget again and again
	"undone",     // what the last run did is taken back, and brought again
	"named",      // messages name files and directories, which are read first
	"queued",     // chats share one slot: each lets the next one go first, is queued, and goes on
	"commands",   // commands change files, and what the last run did is taken back, and brought again
}

// plan is what happens in one session beside what the model proposes. It follows from the seed
// alone: the harness, the model and each process of the person have the same.
type plan struct {
	seed   uint64
	kind   string
	policy approval.Policy
	ttl    time.Duration // of approvals and questions; zero: as long as by default
	notes  []note
	word   regie.StopRequest // said once
	wordAt int64             // when the log has reached this
	second bool              // another process is attached

	session regie.SessionType
	dialect regie.Dialect
	budget  int // of a prompt, in tokens; 0 as by default

	undos int  // how often something is undone once all has ended, each time but the first the undo before
	talk  bool // with what was said
}

// note is a message beside the first.
type note struct {
	id   string // the client's
	text string
	when store.WhenBusy
	at   int64 // sent when the log has reached this
}

func planOf(seed uint64) plan {
	random := rand.New(rand.NewPCG(seed, 3))
	p := plan{seed: seed, kind: kinds[seed%uint64(len(kinds))], second: random.IntN(3) == 0}
	p.policy.Questions = p.kind == "questions" || p.kind == "late"
	if p.kind == "json" || p.kind == "automation" && random.IntN(2) == 0 {
		p.dialect = regie.DialectJSON
	}
	if p.kind == "automation" {
		p.session = regie.SessionAutomation
	}
	if p.kind == "long" {
		p.budget = 1000
	}
	if p.kind == "undone" || p.kind == "commands" {
		p.undos, p.talk = 1+random.IntN(3), random.IntN(2) == 0
	}
	if p.kind == "undone" || p.kind == "commands" || p.kind == "allowed" || p.kind == "queued" || p.kind == "busy" || p.kind == "automation" || p.kind == "long" || p.kind == "named" && random.IntN(2) == 0 {
		p.policy.Allow = []string{"*.*"}
	}
	if p.kind == "late" {
		p.ttl = time.Duration(5+random.IntN(120)) * time.Millisecond
	}
	if p.kind == "messages" || p.kind == "busy" || p.kind == "named" || random.IntN(4) == 0 {
		for i := range 1 + random.IntN(3) {
			id := fmt.Sprintf("n%d", i+1)
			p.notes = append(p.notes, note{
				id: id, text: fmt.Sprintf("seed %d note %s.", seed, id) + p.names(id), at: 3 + random.Int64N(30),
				when: []store.WhenBusy{store.Queue, store.Steer}[random.IntN(2)],
			})
		}
	}
	switch p.kind {
	case "stopped", "busy":
		p.word = []regie.StopRequest{regie.StopInterrupt, regie.StopStop}[random.IntN(2)]
	case "paused":
		p.word = regie.StopPause
	}
	p.wordAt = 3 + random.Int64N(25)
	return p
}

// summarises says whether the model of a session can summarise.
func summarises(seed uint64) bool { return seed/uint64(len(kinds))%3 != 0 }

// firstText is the message that starts the session.
func firstText(seed uint64) string { return fmt.Sprintf("seed %d", seed) + planOf(seed).names("first") }

// names is what a message names with @ beside what it says: nothing, a file, or several things of
// which one is not read.
func (p plan) names(message string) string {
	if p.kind == "commands" { // which make those files: the same message would name other things when it is said again
		return ""
	}
	dice := p.dice("names " + message)
	if dice.IntN(3) > 0 && !p.named() {
		return ""
	}
	return strings.Join(p.mentions()[:1+dice.IntN(3)], "")
}

// named says that the session is there for what its messages name.
func (p plan) named() bool { return p.kind == "named" }

// mentions are what there is to be named.
func (p plan) mentions() []string {
	return []string{fmt.Sprintf(" @s%d/named.txt", p.seed), fmt.Sprintf(" @s%d/.env", p.seed), fmt.Sprintf(" @s%d/", p.seed)}
}

// dice are random numbers that follow from the seed and a name.
func (p plan) dice(name string) *rand.Rand {
	h := fnv.New64a()
	_, _ = h.Write([]byte(name))
	return rand.New(rand.NewPCG(p.seed, h.Sum64()))
}

// decision is what the person says to a call. It follows from what is asked, so that every process
// says the same.
func (p plan) decision(review *regie.Review) regie.Decision {
	out := regie.Decision{CallID: review.CallID, Answer: regie.AnswerAllow}
	dice := p.dice(string(review.Arguments))
	switch n := dice.IntN(100); {
	case n < 35:
	case n < 60:
		out.Arguments = edit(review.Arguments)
	case n < 72:
		out.Answer = regie.AnswerDeny
	case n < 84:
		out.Answer, out.Reason = regie.AnswerDeny, "not this one"
	case len(review.Preview.Scopes) > 0: // no answer for longer covers what a shell runs
		out.Answer = regie.AnswerSession
		out.Scope = &review.Preview.Scopes[dice.IntN(len(review.Preview.Scopes))]
	}
	return out
}

// edit changes the effect, and its name with it.
func edit(arguments json.RawMessage) json.RawMessage {
	var fields map[string]any
	_ = json.Unmarshal(arguments, &fields) // the registry has validated them
	for _, field := range []string{"name", "content"} {
		if value, ok := fields[field].(string); ok {
			fields[field] = strings.TrimSuffix(value, "\n") + "-edited" + value[len(strings.TrimSuffix(value, "\n")):]
		}
	}
	out, _ := json.Marshal(fields)
	return out
}

// groups cuts the calls of an approval into requests: which call stands in which follows from what
// is asked.
func (p plan) groups(a *regie.Approval) [][]regie.Decision {
	dice := p.dice(a.ID.String())
	out := make([][]regie.Decision, 1+dice.IntN(min(3, len(a.Reviews))))
	for i, at := range dice.Perm(len(a.Reviews)) {
		group := i % len(out)
		out[group] = append(out[group], p.decision(&a.Reviews[at]))
	}
	return out
}

// reply is what the person says to a question.
func (p plan) reply(q *regie.Question) regie.QuestionReply {
	dice := p.dice(q.Module.Text)
	if q.Module.AllowFreeText && dice.IntN(2) == 0 {
		return regie.QuestionReply{Text: "as you like"}
	}
	return regie.QuestionReply{Choices: []string{q.Module.Options[dice.IntN(len(q.Module.Options))]}}
}

// own is the command that a person gives once all else has ended, or "". It is begun once, however
// often it is given: a line in a file of its own says so.
func (p plan) own() string {
	if p.kind != "commands" {
		return ""
	}
	return fmt.Sprintf("mkdir -p s%d && echo own >> s%d/own.txt; sleep 0.05", p.seed, p.seed)
}

// silent reports whether an automation's model says something in place of the end, so many replies
// after its last step.
func (p plan) silent(after int) bool { return after == 0 && p.seed%3 != 0 || p.seed%7 == 0 }

// scripted is a call that the model proposes.
type scripted struct {
	tool      string
	arguments map[string]any
}

// garbage is what a model writes that does not keep to the JSON dialect.
const garbage = "garbage"

// apart makes a batch one that a reply in JSON can have: queries or actions, or none that can be
// read.
func apart(random *rand.Rand, batch []scripted) []scripted {
	reads := random.IntN(3) == 0
	if random.IntN(3) == 0 {
		return []scripted{{tool: garbage}}
	}
	for i := range batch {
		if c := &batch[i]; reads {
			c.tool, c.arguments = "ledger__read", map[string]any{"name": fmt.Sprint(c.arguments["name"], c.arguments["path"])}
		} else if c.tool == "ledger__read" {
			c.tool = "ledger__once"
		}
	}
	return batch
}

// untouched stands in each file that a run is to edit or delete.
const untouched = "nobody was here\n"

// furnish makes the files that a run is to edit and delete, and those that messages name. Commands
// make the session's directory themselves: an undo does not take back one that stays empty.
func (h *harness) furnish(seed uint64) {
	for _, name := range []string{"named.txt", ".env"} {
		if planOf(seed).kind == "commands" {
			break
		}
		name = filepath.Join(h.work(seed), fmt.Sprintf("s%d", seed), name)
		if err := errors.Join(os.MkdirAll(filepath.Dir(name), 0o755), os.WriteFile(name, []byte(untouched), 0o644)); err != nil {
			h.t.Fatal(err)
		}
	}
	for _, batch := range scenario(seed) {
		for _, c := range batch {
			if c.tool != "files__edit_file" && c.tool != "files__delete_file" {
				continue
			}
			name := filepath.Join(h.work(seed), fmt.Sprint(c.arguments["path"]))
			if err := errors.Join(os.MkdirAll(filepath.Dir(name), 0o755), os.WriteFile(name, []byte(untouched), 0o644)); err != nil {
				h.t.Fatal(err)
			}
		}
	}
}

// command changes a few files of a directory, in every way that a command can.
func command(random *rand.Rand, dir, name string) string {
	steps := []string{
		"echo " + name + " >> a.txt", "echo " + name + " > b.txt", "rm -f b.txt", "mkdir -p deep/er && echo " + name + " > deep/er/c.txt", "rm -rf deep",
		"mv -f a.txt d.txt 2>&-", "ln -sf a.txt link", "rm -f link; ln -s / deep 2>&-", "rm -f deep 2>&-", "chmod 700 a.txt 2>&-", "sleep 0.05", "cat a.txt",
	}
	out := "mkdir -p " + dir + " && cd " + dir
	for range 1 + random.IntN(5) {
		out += "; " + steps[random.IntN(len(steps))]
	}
	return out
}

// scenario makes the batches of one run: every effect has a name of its own.
func scenario(seed uint64) [][]scripted {
	random, kind := rand.New(rand.NewPCG(seed, 1)), planOf(seed).kind
	tools := []string{"ledger__once", "ledger__keyed", "ledger__verifiable", "ledger__read", "files__write_file", "files__edit_file", "files__delete_file"}
	if kind == "questions" || kind == "late" {
		tools = append(tools, "ask__user", "ask__user")
	}
	if kind == "commands" {
		tools = []string{"shell__shell_exec", "shell__shell_exec", "shell__shell_exec", "files__write_file", "ledger__keyed"}
	}
	if kind == "undone" {
		tools = append(tools, "files__write_file", "files__write_file", "files__write_file")
	}
	steps := make([][]scripted, 1+random.IntN(3))
	if kind == "long" {
		steps = make([][]scripted, 5+random.IntN(5))
	}
	for i := range steps {
		for j := range 1 + random.IntN(5) {
			name := fmt.Sprintf("s%d/%d-%d", seed, i, j)
			c := scripted{tool: tools[random.IntN(len(tools))], arguments: map[string]any{"name": name}}
			switch {
			case c.tool == "ask__user":
				c.arguments = map[string]any{"question": "Which, for " + name + "?", "options": []string{"this", "that"}, "allow_free_text": random.IntN(2) == 0}
			case c.tool == "shell__shell_exec":
				c.arguments = map[string]any{"command": command(random, fmt.Sprintf("s%d", seed), name)}
			case c.tool == "files__write_file" && (kind == "undone" || kind == "commands"):
				// a few files, again and again
				c.arguments = map[string]any{
					"path": fmt.Sprintf("s%d/%s", seed, []string{"a.txt", "b.txt", "deep/er/c.txt", "deep/d.txt"}[random.IntN(4)]), "content": name + "\n",
					"mode": []string{"append", "overwrite"}[random.IntN(2)],
				}
			case c.tool == "files__write_file" && (kind == "allowed" || random.IntN(4) == 0):
				// one file: what is approved together goes stale
				c.arguments = map[string]any{"path": fmt.Sprintf("s%d/journal.txt", seed), "content": name + "\n", "mode": "append"}
			case c.tool == "files__write_file":
				c.arguments = map[string]any{"path": name + ".txt", "content": name + "\n"}
			case c.tool == "files__edit_file": // of a file that the harness has made (furnish)
				c.arguments = map[string]any{"path": name + ".edit", "edits": []map[string]any{{"old": untouched, "new": name + "\n"}}}
			case c.tool == "files__delete_file":
				c.arguments = map[string]any{"path": name + ".gone"}
			}
			steps[i] = append(steps[i], c)
		}
		if planOf(seed).dialect == regie.DialectJSON {
			steps[i] = apart(random, steps[i])
		}
	}
	return steps
}
