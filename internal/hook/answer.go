package hook

import (
	"bytes"
	"strconv"
	"strings"
	"unicode/utf8"

	jsonv2 "github.com/go-json-experiment/json"

	"github.com/regie-run/regie"
)

// refuses is the exit code with which a hook forbids what it was told of, its reason being what it
// wrote on standard error.
const refuses = 2

// maxReason bounds a reason in bytes, for results and dialogs.
const maxReason = 1000

// answer is what a hook may write on standard output. Nothing is no objection.
type answer struct {
	// Decision is allow, which is no objection, ask or forbid.
	Decision string `json:"decision"`
	Reason   string `json:"reason"`
}

// read reads what a hook that has ended says: by its exit code, and by what it wrote.
func (h *Hook) read(code int, stdout, stderr []byte) regie.HookRun {
	switch {
	case !h.On.Before() && code == 0:
		return regie.HookRun{}
	case !h.On.Before():
		return h.failed(regie.Say("it ended with exit code %s: %s", strconv.Itoa(code), clip(stderr)))
	case code == refuses:
		return regie.HookRun{Verdict: regie.VerdictForbid, Reason: clip(stderr)}
	case code != 0:
		return h.failed(regie.Say("it ended with exit code %s: %s", strconv.Itoa(code), clip(stderr)))
	}
	stdout = bytes.TrimSpace(stdout)
	if len(stdout) == 0 {
		return regie.HookRun{}
	}
	var said answer
	if err := jsonv2.Unmarshal(stdout, &said, jsonv2.RejectUnknownMembers(true)); err != nil {
		return h.failed(regie.Say("its output is not {\"decision\": …, \"reason\": …}: %s", clip(stdout)))
	}
	switch said.Decision {
	case "allow":
		return regie.HookRun{}
	case "ask":
		if h.On == regie.HookBeforeRound { // there is no call that a person could be asked about
			return regie.HookRun{Verdict: regie.VerdictForbid, Reason: clip([]byte(said.Reason))}
		}
		return regie.HookRun{Verdict: regie.VerdictMustAsk, Reason: clip([]byte(said.Reason))}
	case "forbid":
		return regie.HookRun{Verdict: regie.VerdictForbid, Reason: clip([]byte(said.Reason))}
	default:
		return h.failed(regie.Say("its decision is %q instead of allow, ask or forbid",
			clip([]byte(said.Decision))))
	}
}

// clip makes one bounded line of what a hook wrote.
func clip(said []byte) string {
	text := strings.Join(strings.Fields(strings.ToValidUTF8(string(said), "�")), " ")
	if len(text) <= maxReason {
		return text
	}
	text = text[:maxReason]
	for !utf8.ValidString(text) {
		text = text[:len(text)-1]
	}
	return text + "…"
}
