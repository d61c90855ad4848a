package hook

import (
	"testing"
	"unicode/utf8"

	"github.com/regie-run/regie"
)

// FuzzAnswer holds that whatever a hook writes is an objection or none, never milder than it fails,
// and bounded.
func FuzzAnswer(f *testing.F) {
	for _, seed := range []string{`{"decision":"allow"}`, `{"decision":"ask","reason":"x"}`, "", "{", `{"decision":"forbid","reason":"\u0000"}`, "\xff\xfe"} {
		f.Add(0, []byte(seed), []byte("why"))
		f.Add(2, []byte(seed), []byte("\xff"))
	}
	f.Fuzz(func(t *testing.T, code int, stdout, stderr []byte) {
		for _, on := range regie.HookPoints() {
			h := Hook{On: on}
			ran := h.read(code, stdout, stderr)
			said := ran.Objection().String()
			switch {
			case ran.Verdict != "" && !on.Before(), ran.Verdict == regie.VerdictAllow, ran.Verdict == regie.VerdictAsk:
				t.Errorf("%s: %+v", on, ran)
			case code != 0 && on.Before() && ran.Verdict != regie.VerdictForbid:
				t.Errorf("exit code %d passes: %+v", code, ran)
			case !ran.Failure.IsZero() && on.Before() && ran.Verdict != regie.VerdictForbid:
				t.Errorf("it failed and passes: %+v", ran)
			case len(said) > 8*maxReason || !utf8.ValidString(said):
				t.Errorf("%d bytes: %q", len(said), said)
			}
		}
	})
}
