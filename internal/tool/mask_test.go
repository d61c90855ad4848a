package tool

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"github.com/regie-run/regie"
)

const canary = "sk-test-CANARY123456789"

func newCanaryMask() *Mask {
	return NewMask([]Secret{{"KEY", canary}, {"SHORT", "abc"}, {"LONGER", canary + "-and-more"}, {"ODD", `quo"te\d-value`}})
}

func TestMask(t *testing.T) {
	m := newCanaryMask()
	for text, want := range map[string]string{
		"":                                   "",
		"abc is too short to be a secret":    "abc is too short to be a secret",
		"key=" + canary + "\n":               "key=[secret: KEY]\n",
		canary + canary:                      "[secret: KEY][secret: KEY]",
		canary + "-and-more":                 "[secret: LONGER]",
		canary + "-and-less":                 "[secret: KEY]-and-less",
		"sk-test-CANARY12345678":             "sk-test-CANARY12345678",
		"sk-test-" + canary:                  "sk-test-[secret: KEY]",
		`quo"te\d-value`:                     "[secret: ODD]",
		`{"a":"quo\"te\\d-value"}`:           `{"a":"[secret: ODD]"}`,
		strings.Repeat("s", 40) + canary[1:]: strings.Repeat("s", 39) + "[secret: KEY]",
	} {
		if got := m.Text(text); got != want {
			t.Errorf("%q became %q, want %q", text, got, want)
		}
		for size := 1; size < 8; size++ { // in pieces of any size the same comes out
			var b strings.Builder
			inv, flush := m.maskInvocation(&Invocation{Output: func(text string) { b.WriteString(text) }})
			for i := 0; i < len(text); i += size {
				inv.Output(text[i:min(i+size, len(text))])
			}
			flush()
			if b.String() != want {
				t.Errorf("%q in pieces of %d became %q, want %q", text, size, b.String(), want)
			}
		}
	}
	if NewMask([]Secret{{"SHORT", "abc"}, {"", ""}}) != nil || (*Mask)(nil).Text(canary) != canary {
		t.Error("there is a mask without a secret")
	}
}

// TestMasked: no way in which a tool says something carries a secret on: its result, its error, its
// hint, what it puts out, what it found changed, its probe, its preview.
func TestMasked(t *testing.T) {
	type none struct{}
	leak := func() error {
		return Advice{Err: NotDone{regie.Errorf(regie.CodeFileNotFound, "no %s", canary)}, Param: canary, Hint: "try " + canary}
	}
	var fails bool
	leaky, err := New(regie.ToolDefinition{Name: "test.leak", Description: "Leaks.", Kind: regie.KindAction, Class: regie.ClassVerifiable, Risk: regie.RiskInternal, MaxResult: 300}, Handler[none]{
		Run: func(_ context.Context, inv *Invocation, _ none) (Result, error) {
			inv.Output(canary[:5])
			inv.Output(canary[5:])
			inv.Say(regie.SayOf("%s", regie.Say("%s", canary)))
			if fails {
				return Result{}, leak()
			}
			return Result{Content: strings.Repeat(".", 150) + canary + strings.Repeat(".", 500) + canary}, nil
		},
		Prepare: func(context.Context, *Invocation, none) (json.RawMessage, error) { return nil, leak() },
		Probe: func(context.Context, *Invocation, none) (Evidence, Result, error) {
			return Happened, Result{Content: canary}, nil
		},
		Preview: func(context.Context, *Invocation, none) (regie.Preview, error) {
			if fails {
				return regie.Preview{}, leak()
			}
			return regie.Preview{Sentence: regie.Say("%s", canary), Diff: canary, Warnings: []regie.Sentence{regie.Say("%s", canary)}}, nil
		},
		MustAsk: func(context.Context, *Invocation, none) []regie.Sentence {
			return []regie.Sentence{regie.Say("it reads %s", canary)}
		},
		Track: func(context.Context, *Invocation) (Tracked, error) {
			return Tracked{Told: "changed " + canary + "\n"}, nil
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	var said strings.Builder
	inv := &Invocation{
		CallID: regie.NewID(), Arguments: json.RawMessage(`{}`), Mask: newCanaryMask(),
		Output: func(text string) { said.WriteString(text) }, Say: func(s regie.Sentence) { said.WriteString(s.String()) },
	}
	for _, fails = range []bool{false, true} {
		ran := Run(t.Context(), leaky, inv)
		_, refused := Prepare(t.Context(), leaky, inv)
		preview, problem := DescribeCall(t.Context(), leaky, inv)
		_, probed := Probe(t.Context(), leaky, inv)
		lost := &regie.CallError{}
		TrackLost(t.Context(), leaky, inv, lost)
		all, err := json.Marshal([]any{ran, refused, preview, problem, probed, lost})
		if err != nil {
			t.Fatal(err)
		}
		if text := string(all) + said.String(); strings.Contains(text, "CANARY") || strings.Contains(text, "sk-test") || !strings.Contains(said.String(), "[secret: KEY]") {
			t.Errorf("it gets on:\n%s", text)
		}
		if refused == nil || refused.Code != regie.CodeFileNotFound || fails && ran.Error == nil || !fails && !strings.Contains(ran.Result, "[secret: KEY]") {
			t.Errorf("got %+v, %+v", ran, refused)
		}
	}
	for _, why := range MustAsk(t.Context(), leaky, inv) {
		if text := why.String(); !strings.Contains(text, "[secret: KEY]") || strings.Contains(text, "CANARY") {
			t.Errorf("a person is told %q", text)
		}
	}
	if len(MustAsk(t.Context(), leaky, inv)) != 1 {
		t.Error("nobody is asked")
	}
	if err := inv.Mask.maskError(NotDone{errors.New(canary)}); err.Error() != "[secret: KEY]" {
		t.Errorf("got %v", err)
	} else if _, is := errors.AsType[NotDone](err); !is {
		t.Error("what was not done is no longer known not to be")
	}
}
