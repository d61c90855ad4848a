package providertest_test

import (
	"context"
	"slices"
	"strings"
	"testing"

	"github.com/regie-run/regie"
	"github.com/regie-run/regie/internal/provider"
	"github.com/regie-run/regie/internal/provider/providertest"
)

func say(role provider.Role, text string) provider.Turn {
	return provider.Turn{Role: role, Parts: []provider.Part{{Type: regie.PartText, Text: text}}}
}

var (
	question = say(provider.RoleUser, "go")
	answer   = say(provider.RoleAssistant, "gone")
	calls    = provider.Turn{Role: provider.RoleAssistant, Parts: []provider.Part{
		{Type: regie.PartCall, Call: &provider.Call{ID: "a", Name: "f", Arguments: "{}"}},
		{Type: regie.PartCall, Call: &provider.Call{ID: "b", Name: "f", Arguments: "{}"}},
	}}
	results = provider.Turn{Role: provider.RoleTool, Results: []provider.Result{{CallID: "a", Content: "x"}, {CallID: "b", Content: "y"}}}
)

// TestCheck takes legal threads and refuses what an engine could get wrong.
func TestCheck(t *testing.T) {
	half, swapped := results, results
	half.Results = results.Results[:1]
	swapped.Results = []provider.Result{results.Results[1], results.Results[0]}
	for name, c := range map[string]struct {
		turns []provider.Turn
		legal bool
	}{
		"a question":                {[]provider.Turn{question}, true},
		"an exchange":               {[]provider.Turn{question, calls, results}, true},
		"a steer":                   {[]provider.Turn{question, calls, results, question, answer, question}, true},
		"two answers":               {[]provider.Turn{question, answer, answer, question}, true},
		"nothing":                   {nil, false},
		"an answer last":            {[]provider.Turn{question, answer}, false},
		"open calls":                {[]provider.Turn{question, calls}, false},
		"calls without results":     {[]provider.Turn{question, calls, question}, false},
		"half the results":          {[]provider.Turn{question, calls, half}, false},
		"results in another order":  {[]provider.Turn{question, calls, swapped}, false},
		"results twice":             {[]provider.Turn{question, calls, results, results}, false},
		"results of nothing":        {[]provider.Turn{question, results}, false},
		"a message before results":  {[]provider.Turn{question, calls, question, results}, false},
		"the same ids once more":    {[]provider.Turn{question, calls, results, calls, results}, false},
		"an empty message":          {[]provider.Turn{say(provider.RoleUser, "")}, false},
		"a thread that begins late": {[]provider.Turn{results, question}, false},
	} {
		if err := providertest.Check(provider.Head{}, c.turns); (err == nil) != c.legal {
			t.Errorf("%s: %v", name, err)
		}
	}
}

type deaf struct{ provider.Provider }

// Open implements provider.Provider.
func (deaf) Open(provider.Head) (provider.Conversation, error) { return &silent{}, nil }

type silent struct{ turns int }

// Append implements provider.Conversation.
func (s *silent) Append(turns ...provider.Turn) { s.turns += len(turns) }

// EndWith implements provider.Conversation.
func (s *silent) EndWith(provider.Tail) {}

// Request implements provider.Conversation.
func (s *silent) Request() (regie.Hash, int) { return regie.Hash{}, s.turns }

// Send implements provider.Conversation.
func (s *silent) Send(context.Context, func(provider.Delta)) (*provider.Reply, error) {
	return &provider.Reply{}, nil
}

// TestWatch: what is sent is checked, and sent all the same. Each prompt is sent as often as the
// watch takes to come round to it under the race detector.
func TestWatch(t *testing.T) {
	var refused []string
	c, err := providertest.Watch(deaf{}, func(err error) { refused = append(refused, err.Error()) }).Open(provider.Head{})
	if err != nil {
		t.Fatal(err)
	}
	for i, turns := range [][]provider.Turn{{question}, {calls}, {results}} {
		c.Append(turns...)
		for range 4 {
			if reply, err := c.Send(t.Context(), nil); reply == nil || err != nil {
				t.Fatal(reply, err)
			}
		}
		if _, n := c.Request(); n != i+1 {
			t.Errorf("the provider has %d turns, want %d", n, i+1)
		}
	}
	slices.Sort(refused)
	if refused = slices.Compact(refused); len(refused) != 1 || !strings.Contains(refused[0], ": the calls") {
		t.Errorf("refused: %q", refused)
	}
}
