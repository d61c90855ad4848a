package approval_test

import (
	"math/rand/v2"
	"reflect"
	"slices"
	"testing"

	"github.com/regie-run/regie"
	"github.com/regie-run/regie/internal/approval"
)

// verdicts is decision 19 as a table, one row for each set of what the sources yield: f forbid, m
// must-ask, a allow rule, k ask.
var verdicts = map[string]regie.Verdict{
	"----": "ALLOW", "---k": "ASK", "--a-": "ALLOW", "--ak": "ALLOW",
	"-m--": "MUST_ASK", "-m-k": "MUST_ASK", "-ma-": "MUST_ASK", "-mak": "MUST_ASK",
	"f---": "FORBID", "f--k": "FORBID", "f-a-": "FORBID", "f-ak": "FORBID",
	"fm--": "FORBID", "fm-k": "FORBID", "fma-": "FORBID", "fmak": "FORBID",
}

// defaults says for each kind, risk and sort of role, under which defaults the call asks: "-" none,
// "w" writes, "*" all (spec 4.2).
var defaults = map[[3]string]string{
	{"query", "internal", "plain"}:   "*",
	{"query", "external", "plain"}:   "-w*",
	{"action", "internal", "plain"}:  "w*",
	{"action", "external", "plain"}:  "-w*",
	{"query", "internal", "steers"}:  "",
	{"query", "external", "steers"}:  "-w*",
	{"action", "internal", "steers"}: "",
	{"action", "external", "steers"}: "-w*",
}

// tools are all tools that a definition can describe, and some that it cannot, with what they count
// as.
func tools() []toolCase {
	var out []toolCase
	for kind, kindAs := range map[regie.CallKind]string{"query": "query", "action": "action", "": "action", "other": "action"} {
		for risk, riskAs := range map[regie.Risk]string{"internal": "internal", "external": "external", "": "internal", "other": "external"} {
			for role, roleAs := range map[regie.ToolRole]string{"": "plain", "question": "steers", "complete": "steers", "plan": "steers", "other": "plain"} {
				out = append(out, toolCase{kind, risk, role, [3]string{kindAs, riskAs, roleAs}})
			}
		}
	}
	return out
}

type toolCase struct {
	kind regie.CallKind
	risk regie.Risk
	role regie.ToolRole
	as   [3]string
}

// oracle looks the verdict up; means are the letters of the sources that are present.
func oracle(tc toolCase, means string) regie.Verdict {
	row := []byte("----")
	mark := func(at int, letter byte, letters string) {
		for _, asks := range letters {
			if slices.Contains([]rune(means+"-"), asks) { // what asks without any default always does
				row[at] = letter
			}
		}
	}
	for at, letter := range []byte("fma") {
		mark(at, letter, string(letter))
	}
	mark(3, 'k', defaults[tc.as])
	return verdicts[string(row)]
}

func (tc toolCase) call(edits ...func(*approval.Input)) approval.Input {
	return call(func(in *approval.Input) {
		in.Kind, in.Risk, in.Role = tc.kind, tc.risk, tc.role
		for _, edit := range edits {
			edit(in)
		}
	})
}

// TestEveryCell compares each combination of one or no source of each sort, for each tool, with the
// table.
func TestEveryCell(t *testing.T) {
	pick := func(letter string) []source {
		out := []source{{"none", "", func(*approval.Input) {}}}
		for _, s := range sources {
			if s.means == letter {
				out = append(out, s)
			}
		}
		return out
	}
	cells := 0
	for _, tc := range tools() {
		for _, f := range pick("f") {
			for _, m := range pick("m") {
				for _, a := range pick("a") {
					for _, k := range append(pick("w"), pick("*")[1:]...) {
						cells++
						in := tc.call(k.add, a.add, m.add, f.add)
						got, want := approval.Decide(in), oracle(tc, f.means+m.means+a.means+k.means)
						if got.Verdict != want {
							t.Fatalf("%s, %s, %s, %s for %v: %s, want %s", f.name, m.name, a.name, k.name, tc.as, got.Verdict, want)
						}
						grounded(t, in, got)
					}
				}
			}
		}
	}
	if cells != 80*3*14*6*4 {
		t.Errorf("%d cells were compared", cells)
	}
}

// TestEverySet compares every set of sources, the nine that differ most, with the table, and many
// larger sets taken by chance.
func TestEverySet(t *testing.T) {
	various := []source{sources[0], sources[1], sources[2], sources[7], sources[11], sources[14], sources[18], sources[19], sources[20]}
	compare := func(tc toolCase, set []source) {
		t.Helper()
		means, edits := "", []func(*approval.Input){}
		for _, s := range set {
			means += s.means
			edits = append(edits, s.add)
		}
		in := tc.call(edits...)
		got, want := approval.Decide(in), oracle(tc, means)
		if got.Verdict != want {
			t.Fatalf("%+v for %v: %s, want %s", set, tc.as, got.Verdict, want)
		}
		grounded(t, in, got)
	}
	for _, tc := range tools() {
		for bits := range 1 << len(various) {
			var set []source
			for i, s := range various {
				if bits&(1<<i) != 0 {
					set = append(set, s)
				}
			}
			compare(tc, set)
		}
	}
	chance, all := rand.New(rand.NewPCG(1, 2)), tools()
	slices.SortFunc(all, func(a, b toolCase) int { return slices.Compare(a.key(), b.key()) })
	for range 20_000 {
		var set []source
		for _, at := range chance.Perm(len(sources))[:chance.IntN(8)] {
			set = append(set, sources[at])
		}
		compare(all[chance.IntN(len(all))], set)
	}
}

// key orders the tools, so that what chance picks is the same each time.
func (tc toolCase) key() []string { return []string{string(tc.kind), string(tc.risk), string(tc.role)} }

// grounded holds a judgement to what it must say: why, of whom, the strictest first, and nothing
// that speaks for the call where it asks.
func grounded(t *testing.T, in approval.Input, j approval.Judgement) {
	t.Helper()
	if j.Verdict != regie.VerdictAllow && (len(j.Grounds) == 0 || j.Grounds[0].Verdict != j.Verdict) {
		t.Fatalf("%s without a reason: %+v", j.Verdict, j.Grounds)
	}
	if j.Verdict == regie.VerdictAllow && len(j.Grounds) > 0 && j.Grounds[0].Verdict != regie.VerdictAllow {
		t.Fatalf("allowed by nothing: %+v", j.Grounds)
	}
	for i, g := range j.Grounds {
		switch {
		case g.Source == "" || g.Sentence.String() == "":
			t.Fatalf("a reason without a source or a sentence: %+v", g)
		case j.Verdict != regie.VerdictAllow && g.Verdict == regie.VerdictAllow:
			t.Fatalf("%s and a reason that allows: %+v", j.Verdict, g)
		case j.Verdict == regie.VerdictAllow && g.Verdict.Stricter(regie.VerdictAsk):
			t.Fatalf("allowed, and a reason is %s", g.Verdict)
		case j.Verdict != regie.VerdictAllow && i > 0 && g.Verdict.Stricter(j.Grounds[i-1].Verdict):
			t.Fatalf("%s stands behind %s", g.Verdict, j.Grounds[i-1].Verdict)
		}
	}
	if again := approval.Decide(in); !reflect.DeepEqual(again, j) {
		t.Fatalf("the same call is judged %+v, then %+v", j, again)
	}
}

// TestProperties holds each judgement of chance to what no addition may change.
func TestProperties(t *testing.T) {
	chance, all := rand.New(rand.NewPCG(3, 4)), tools()
	slices.SortFunc(all, func(a, b toolCase) int { return slices.Compare(a.key(), b.key()) })
	met := map[regie.Verdict]int{}
	for range 20_000 {
		tc, edits := all[chance.IntN(len(all))], []func(*approval.Input){}
		for _, at := range chance.Perm(len(sources))[:chance.IntN(6)] {
			edits = append(edits, sources[at].add)
		}
		before := approval.Decide(tc.call(edits...)).Verdict
		met[before]++
		for _, s := range sources {
			after := approval.Decide(tc.call(append(slices.Clone(edits), s.add)...)).Verdict
			switch {
			case s.means == "f" && after != regie.VerdictForbid:
				t.Fatalf("%s, and the verdict goes from %s to %s", s.name, before, after)
			case s.means == "a" && before.Stricter(regie.VerdictAsk) && after != before:
				t.Fatalf("%s lifts %s to %s", s.name, before, after)
			case s.means == "a" && after.Stricter(before):
				t.Fatalf("%s makes %s of %s", s.name, after, before)
			case s.means != "a" && before.Stricter(after):
				t.Fatalf("%s makes %s milder: %s", s.name, before, after)
			case s.means == "m" && !after.Stricter(regie.VerdictAsk):
				t.Fatalf("%s, and the verdict is %s", s.name, after)
			}
		}
		slices.Reverse(edits)
		if after := approval.Decide(tc.call(edits...)).Verdict; after != before {
			t.Fatalf("in another order: %s, not %s", after, before)
		}
	}
	for _, verdict := range verdicts {
		if met[verdict] < 500 {
			t.Errorf("chance met %s only %d times", verdict, met[verdict])
		}
	}
}
