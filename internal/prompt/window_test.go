package prompt_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/regie-run/regie"
	"github.com/regie-run/regie/internal/prompt"
	"github.com/regie-run/regie/internal/provider"
	"github.com/regie-run/regie/internal/provider/providertest"
	"github.com/regie-run/regie/internal/tool"
)

// recorded is a stored thread with its calls by message id, as a store gives it; each message has a
// round, a place and an id.
func recorded(seed uint64) ([]regie.Message, map[regie.ID][]regie.Call) {
	made := legal(seed)
	owned := map[regie.ID][]regie.Call{}
	round := byte(1)
	for i := range made.messages {
		m := &made.messages[i]
		if m.Sender == regie.SenderUser && i > 0 && made.messages[i-1].Sender != regie.SenderUser {
			round++
		}
		m.ID, m.Seq, m.RoundID = regie.ID{0: 1, 14: byte(i >> 8), 15: byte(i)}, int64(3*i+1), regie.ID{0: 2, 15: round}
		if m.System == nil {
			for j := range made.calls[i] { // some results are worth dropping
				if c := &made.calls[i][j]; c.State == regie.CallSucceeded && (i+j)%2 == 0 {
					c.Result = strings.Repeat("a long result ", 10+200*(int(seed)%4))
				}
			}
			owned[m.ID] = made.calls[i]
			continue
		}
		if m.Enriching() {
			owned[m.ID] = made.calls[i]
		}
	}
	return made.messages, owned
}

func views() map[string]prompt.View {
	return map[string]prompt.View{"native": {Names: tool.WireName}, "json": {JSON: jsonDialect()}}
}

func shownTurns(v prompt.View, w prompt.Window, entries []prompt.Entry) []provider.Turn {
	var turns []provider.Turn
	w.Shown(entries, 0, func(e prompt.Entry, _ int) { turns = append(turns, v.Show(e)...) })
	return turns
}

func check(v prompt.View, turns []provider.Turn) error {
	head := provider.Head{Model: "m", Level1: "You are.", MaxOutput: 4096}
	if v.JSON == nil {
		head.Tools = declared()
	}
	return providertest.Check(head, turns)
}

// askable reports whether a model is asked behind a message: a batch is whole, and somebody said
// something.
func askable(messages []regie.Message, n int) bool {
	m := &messages[n]
	if m.ExcludeFromPrompt || m.Sender == regie.SenderAI {
		return false
	}
	return m.Sender == regie.SenderUser || n == len(messages)-1 || messages[n+1].System == nil || len(messages[n+1].System.CallIDs) == 0
}

// compactedBy is the thread with a CONTEXT_SUMMARY behind it.
func compactedBy(messages []regie.Message, c regie.Compaction) []regie.Message {
	return append(slices.Clone(messages), regie.Message{
		ID: regie.ID{0: 9}, Seq: int64(3*len(messages) + 1), Sender: regie.SenderSystem, System: &regie.SystemContent{Type: regie.SystemContextSummary, Summary: "In short.", Compaction: &c},
	})
}

// TestCutAnywhere: a thread that is summarised, dropped from, or both, at any event, and goes on
// from there, is legal for every vendor in both dialects; so is the request for the summary.
func TestCutAnywhere(t *testing.T) {
	checked := 0
	for seed := range uint64(25) {
		messages, owned := recorded(seed)
		for end := range messages {
			if !askable(messages, end) {
				continue
			}
			for name, v := range views() {
				entries := prompt.Entries(messages[:end+1], owned)
				for place := 1; place <= end; place++ {
					if messages[place].System != nil {
						continue // no cut between a reply and what is about it
					}
					c := regie.Compaction{Hidden: place, Requests: requests(messages[:place]), Dropped: int(seed) % (place + 1), DroppedCalls: place % 3}
					request := append(turnsBefore(v, entries, place), v.Instruction())
					compacted := prompt.Entries(compactedBy(messages[:end+1], c), owned)
					for what, turns := range map[string][]provider.Turn{"the request for it": request, "what follows": shownTurns(v, prompt.WindowOf(compacted), compacted)} {
						if err := check(v, turns); err != nil {
							t.Fatalf("seed %d, cut before %d of %d, %s: %s is not legal: %v", seed, place, end+1, name, what, err)
						}
						checked++
					}
				}
			}
		}
	}
	t.Logf("%d prompts", checked)
}

func requests(hidden []regie.Message) []int {
	for i, m := range slices.Backward(hidden) {
		if m.Sender == regie.SenderUser {
			return []int{i + 1}
		}
	}
	return nil
}

func turnsBefore(v prompt.View, entries []prompt.Entry, place int) []provider.Turn {
	var turns []provider.Turn
	prompt.Window{}.Shown(entries, 0, func(e prompt.Entry, at int) {
		if at < place {
			turns = append(turns, v.Show(e)...)
		}
	})
	return turns
}

// TestPlansAreLegal: what is planned for a thread, in whatever room, is legal, is smaller, and
// comes to an end; what is rebuilt from the store is what stood in memory.
func TestPlansAreLegal(t *testing.T) {
	cuts, drops, digests := 0, 0, 0
	for seed := range uint64(400) {
		messages, owned := recorded(seed)
		for name, v := range views() {
			thread := messages
			var w prompt.Window
			for step := range 12 {
				entries := prompt.Entries(thread, owned)
				before := prompt.Size(shownTurns(v, w, entries)) / 4
				pieces := v.Pieces(w, entries, 0, before)
				room := prompt.NewRoom(200+int(seed)*7, 0, 0, 100, int(seed)%2*(4+int(seed)%9))
				if seed%4 == 1 && step < 4 { // a little too large
					room = prompt.NewRoom(before*3/2, 0, 0, 0, 0)
				} else if seed%3 == 0 {
					room.Limit(150 + int(seed)*5)
				}
				round := thread[len(thread)-1].RoundID
				summary := regie.Message{
					ID: regie.ID{0: 9, 15: byte(step)}, Seq: int64(3*len(thread) + 1), Sender: regie.SenderSystem, RoundID: round,
					System: &regie.SystemContent{Type: regie.SystemContextSummary, Summary: "In short."},
				}
				if cut := prompt.Cut(pieces, room, 0); cut > 0 && step%2 == 0 && seed%4 != 1 {
					cuts++
					summary.System.Compaction = prompt.Compact(pieces, cut, w, round, room)
				} else {
					c, cut, _ := prompt.WithoutModel(pieces, room, w, round)
					if c == nil {
						break
					}
					if summary.System.Compaction = c; cut > 0 {
						digests++
						summary.System.Summary = v.Digest(pieces[:cut], w, c, room, "because")
					} else {
						drops++
						summary.System.Summary = ""
					}
				}
				thread = append(slices.Clone(thread), summary)
				entries = prompt.Entries(thread, owned)
				next := w.With(&thread[len(thread)-1], entries, 0)
				turns := shownTurns(v, next, entries)
				if err := check(v, turns); err != nil {
					t.Fatalf("seed %d, step %d, %s: %v", seed, step, name, err)
				}
				if diff := cmp.Diff(turns, shownTurns(v, prompt.WindowOf(entries), entries)); diff != "" {
					t.Fatalf("seed %d, step %d, %s: rebuilt otherwise:\n%s", seed, step, name, diff)
				}
				last := messages[len(messages)-1].Text
				if !slices.ContainsFunc(turns, func(turn provider.Turn) bool { return provider.JoinText(turn.Parts) == last }) {
					t.Fatalf("seed %d, step %d, %s: what was asked last is gone", seed, step, name)
				}
				if w = next; step == 11 {
					t.Fatalf("seed %d, %s: it never ends", seed, name)
				}
			}
		}
	}
	if cuts < 100 || drops < 10 || digests < 100 {
		t.Errorf("%d cuts, %d drops, %d digests: too few to mean anything", cuts, drops, digests)
	}
}

// TestForkKeepsWindow: a compaction means the same in a copy of the thread, whatever its sequence
// numbers and ids are.
func TestForkKeepsWindow(t *testing.T) {
	for seed := range uint64(50) {
		messages, owned := recorded(seed)
		if len(messages) < 4 || messages[2].System != nil {
			continue
		}
		thread := compactedBy(messages, regie.Compaction{Hidden: 2, Requests: requests(messages[:2]), Dropped: 3, DroppedCalls: 1})
		copied := slices.Clone(thread)
		for i := range copied {
			copied[i].Seq += 100
		}
		v := views()["native"]
		entries, copies := prompt.Entries(thread, owned), prompt.Entries(copied, owned)
		if diff := cmp.Diff(shownTurns(v, prompt.WindowOf(entries), entries), shownTurns(v, prompt.WindowOf(copies), copies)); diff != "" {
			t.Fatalf("seed %d:\n%s", seed, diff)
		}
	}
}

func TestGauge(t *testing.T) {
	for name, c := range map[string]struct {
		learned      int64
		of, now      int
		tokens, part int
	}{
		"nothing counted yet":     {0, 0, 4000, 1000, 25},
		"as it was counted":       {2000, 4000, 4000, 2000, 50},
		"and what is new":         {2000, 4000, 6000, 3000, 50},
		"a dense language":        {3600, 4000, 5000, 4500, 90},
		"fewer than can be":       {7, 40_000, 40_000, 10_000, 25},
		"more than can be":        {90_000, 4000, 4000, 1000, 25},
		"smaller than it was":     {2000, 4000, 2000, 1000, 50},
		"a size that is nonsense": {2000, 0, 4000, 1000, 25},
	} {
		t.Run(name, func(t *testing.T) {
			var g prompt.Gauge
			g.Learn(regie.Usage{Input: c.learned}, c.of)
			if got, part := g.Tokens(c.now), g.Part(100); got != c.tokens || part != c.part {
				t.Errorf("%d tokens, %d a hundred bytes; want %d, %d", got, part, c.tokens, c.part)
			}
		})
	}
}

// TestCounted: what a call is taken to have used does not depend on what cannot be true.
func TestCounted(t *testing.T) {
	const most = int64(^uint64(0) >> 1)
	for name, c := range map[string]struct {
		claimed regie.Usage
		want    regie.Usage
	}{
		"as it is claimed":         {regie.Usage{Input: 1100, Output: 90, CacheRead: 1000, Reasoning: 40}, regie.Usage{Input: 1100, Output: 90, CacheRead: 1000, Reasoning: 40}},
		"the vendor's words too":   {regie.Usage{Input: 7000, Output: 90}, regie.Usage{Input: 7000, Output: 90}},
		"much was thought":         {regie.Usage{Input: 1100, Output: 9000, Reasoning: 8900}, regie.Usage{Input: 1100, Output: 9000, Reasoning: 8900}},
		"nothing":                  {regie.Usage{}, regie.Usage{Input: 1000, Output: 100, Estimated: true}},
		"less than nothing":        {regie.Usage{Input: -5, Output: -1, CacheRead: -4}, regie.Usage{Input: 1000, Output: 100, Estimated: true}},
		"no input":                 {regie.Usage{Output: 90}, regie.Usage{Input: 1000, Output: 90, Estimated: true}},
		"no output":                {regie.Usage{Input: 1100}, regie.Usage{Input: 1100, Output: 100, Estimated: true}},
		"all that a number can be": {regie.Usage{Input: most, Output: most}, regie.Usage{Input: 1200, Output: 4096, Estimated: true}},
		"much output":              {regie.Usage{Input: 1100, Output: 100_000}, regie.Usage{Input: 1100, Output: 4096, Estimated: true}},
		"much input":               {regie.Usage{Input: 100_000, Output: 90}, regie.Usage{Input: 1200, Output: 90, Estimated: true}},
	} {
		t.Run(name, func(t *testing.T) {
			var g prompt.Gauge
			if got := g.Counted(c.claimed, 4000, 400, 8192, 4096); got != c.want {
				t.Errorf("%+v, want %+v", got, c.want)
			}
			g.Learn(c.want, 4000)
			if learned := g.Part(1000) != 250; learned == c.want.Estimated && c.want.Input != 7000 {
				t.Errorf("learned %v of %+v", learned, c.want)
			}
		})
	}
}

func TestRoom(t *testing.T) {
	for name, c := range map[string]struct {
		room     prompt.Room
		budget   int
		thread   int
		tokens   int
		messages int
		over     bool
		beyond   bool
	}{
		"below":                   {prompt.NewRoom(80_000, 0, 8192, 5000, 0), 80_000, 75_000, 80_000, 900, false, false},
		"above":                   {prompt.NewRoom(80_000, 0, 8192, 5000, 0), 80_000, 75_000, 80_001, 900, true, false},
		"a small window":          {prompt.NewRoom(80_000, 32_768, 8192, 0, 0), 24_576, 24_576, 24_577, 1, true, true},
		"a window below a reply":  {prompt.NewRoom(80_000, 4096, 8192, 0, 0), 3072, 3072, 3000, 1, false, false},
		"a sub-agent":             {prompt.NewRoom(prompt.DefaultBudget(regie.SessionSubagent), 0, 1024, 0, 0), 15_000, 15_000, 15_001, 1, true, false},
		"mostly fixed":            {prompt.NewRoom(10_000, 0, 1024, 9900, 0), 10_000, 2500, 12_400, 1, false, false},
		"fixed above the budget":  {prompt.NewRoom(10_000, 0, 1024, 20_000, 0), 10_000, 2500, 22_501, 1, true, false},
		"as many messages as may": {prompt.NewRoom(80_000, 0, 1024, 0, 10), 80_000, 80_000, 100, 10, false, false},
		"one message more":        {prompt.NewRoom(80_000, 0, 1024, 0, 10), 80_000, 80_000, 100, 11, true, false},
	} {
		t.Run(name, func(t *testing.T) {
			r := c.room
			if r.Budget != c.budget || r.Thread() != c.thread || r.Over(c.tokens, c.messages) != c.over || r.Beyond(c.tokens) != c.beyond {
				t.Errorf("%+v: thread %d, over %v, beyond %v", r, r.Thread(), r.Over(c.tokens, c.messages), r.Beyond(c.tokens))
			}
		})
	}
}

// pieces makes a thread of a round out of words: u a message, r a reply with calls, s its results,
// a an answer, n a notice; each of a hundred tokens, each result worth 40.
func pieces(words string) []prompt.Piece {
	var out []prompt.Piece
	for i, word := range words {
		m := &regie.Message{RoundID: regie.ID{15: 1}}
		p := prompt.Piece{Entry: prompt.Entry{Message: m}, Place: i, Tokens: 100}
		switch word {
		case 'u':
			m.Sender, m.Text = regie.SenderUser, "do it"
		case 'r':
			m.Sender, m.AI, p.Calls = regie.SenderAI, &regie.AIReply{}, []regie.Call{{}, {}}
		case 's':
			m.Sender, m.System, p.Calls, p.Free = regie.SenderSystem, &regie.SystemContent{CallIDs: []regie.ID{{}, {}}}, []regie.Call{{}, {}}, []int{40, 40}
		case 'a':
			m.Sender, m.AI = regie.SenderAI, &regie.AIReply{}
		case 'n':
			m.Sender, m.System = regie.SenderSystem, &regie.SystemContent{Type: regie.SystemFormatError}
		}
		out = append(out, p)
	}
	return out
}

func TestCut(t *testing.T) {
	for name, c := range map[string]struct {
		thread string
		budget int
		bound  int
		want   int
	}{
		"the newest batch stays":          {"ursrs", 600, 0, 3},
		"as much as is worth keeping":     {"ursrsrsrsrs", 2000, 0, 5},
		"never before results":            {"ursrsrs", 1000, 0, 5},
		"never before a notice":           {"urs" + "an" + "an" + "ars", 1200, 0, 7},
		"nothing but the newest":          {"urs", 100, 0, 1},
		"nothing at all":                  {"u", 100, 0, 0},
		"not worth a model call":          {"ursrs", 4000, 0, 0},
		"no more than the model can read": {"ursrsrsrsrs", 1000, 350, 3},
		"not even the first":              {"ursrs", 500, 50, 0},
		"a message that steers":           {"ursrsu", 600, 0, 3},
	} {
		t.Run(name, func(t *testing.T) {
			if got := prompt.Cut(pieces(c.thread), prompt.Room{Budget: c.budget}, c.bound); got != c.want {
				t.Errorf("cut before %d, want %d", got, c.want)
			}
		})
	}
}

func TestWithoutModel(t *testing.T) {
	for name, c := range map[string]struct {
		thread string
		room   prompt.Room
		want   *regie.Compaction
	}{
		"the oldest results first": {"ursrsrsrsrs", prompt.Room{Budget: 1650}, &regie.Compaction{Dropped: 3, DroppedCalls: 1}},
		"then the oldest messages": {"urararararars", prompt.Room{Budget: 1000}, &regie.Compaction{Hidden: 9, Requests: []int{1}}},
		"of the newest batch too":  {"urs", prompt.Room{Budget: 250, Most: 250}, &regie.Compaction{Dropped: 1, DroppedCalls: 2}},
		"a list would be longer":   {"urs", prompt.Room{Budget: 400}, nil},
		"both":                     {"ururururs", prompt.Room{Budget: 440, Most: 440}, &regie.Compaction{Hidden: 7, Requests: []int{1, 3, 5, 7}, Dropped: 7, DroppedCalls: 2}},
		"nothing can be left out":  {"u", prompt.Room{Budget: 50, Most: 50}, nil},
		"no model and no window":   {"u", prompt.Room{Budget: 50}, nil},
	} {
		t.Run(name, func(t *testing.T) {
			got, _, _ := prompt.WithoutModel(pieces(c.thread), c.room, prompt.Window{}, regie.ID{15: 1})
			if diff := cmp.Diff(c.want, got); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
		})
	}
}

// TestDigest: what stands for hidden messages where no model could summarise them names what was
// asked and done, and is bounded.
func TestDigest(t *testing.T) {
	var v prompt.View
	thread := pieces(strings.Repeat("urs", 400))
	for i := range thread {
		switch m := thread[i].Message; {
		case m.Sender == regie.SenderUser:
			m.Text = fmt.Sprintf("Request %d\nof two lines %s", i, strings.Repeat("x", i%700))
		case m.AI != nil:
			thread[i].Calls = []regie.Call{{Tool: "files.read_file", Arguments: fmt.Sprintf(`{"path":"f%d.md"}`, i), State: regie.CallSucceeded}}
		}
	}
	for _, budget := range []int{500, 5000, 80_000} {
		room := prompt.Room{Budget: budget}
		text := v.Digest(thread, prompt.Window{}, &regie.Compaction{Requests: []int{1195}}, room, "the model\nsaid nothing")
		if len(text) > max(800, budget*4/5) || len(text) > 8000 || !strings.Contains(text, "No summary could be made (the model said nothing)") ||
			!strings.Contains(text, `files.read_file {"path":"f1198.md"}: SUCCESS`) || !strings.Contains(text, "- asked: Request 1197 of two lines") || strings.Contains(text, "Request 1194 ") {
			t.Errorf("budget %d: %d bytes: %s", budget, len(text), text)
		}
	}
	// A list of what a list was before it says all of both, the opening and the model's own words
	// once.
	first := v.Digest(thread[1190:], prompt.Window{}, &regie.Compaction{}, prompt.Room{Budget: 80_000}, "first")
	earlier := prompt.Piece{Place: -1, Entry: prompt.Entry{Message: &regie.Message{System: &regie.SystemContent{Type: regie.SystemContextSummary, Summary: "It is 4711."}}}}
	for i, why := range []string{"first", "second", "third"} {
		text := v.Digest(append([]prompt.Piece{earlier}, thread[[]int{1101, 1102, 1104}[i]]), prompt.Window{}, &regie.Compaction{}, prompt.Room{Budget: 80_000}, why)
		if strings.Count(text, "No summary could be made") != 1 || !strings.HasPrefix(text, "No summary could be made ("+why) || strings.Count(text, "Before that:\nIt is 4711.") != 1 ||
			strings.Count(text, "\n- ") != i+1 {
			t.Errorf("%s", text)
		}
		earlier.Message.System.Summary = text
	}
	earlier.Message.System.Summary = first
	if text := v.Digest(append([]prompt.Piece{earlier}, thread[3]), prompt.Window{}, &regie.Compaction{}, prompt.Room{Budget: 80_000}, "then"); !strings.Contains(text, "f1198.md") ||
		strings.Count(text, "\n- ") != strings.Count(first, "\n- ")+1 {
		t.Errorf("%s", text)
	}
	// Of an earlier list that is too long the oldest lines go; what a model said keeps its
	// opening.
	long := "It is 4711."
	for i := range 400 {
		long += fmt.Sprintf("\n- asked: Question %d", i)
	}
	earlier.Message.System.Summary = long
	text := v.Digest([]prompt.Piece{earlier, thread[1194]}, prompt.Window{}, &regie.Compaction{}, prompt.Room{Budget: 80_000}, "then")
	if !strings.Contains(text, "Before that:\nIt is 4711.\n- asked: Question ") || !strings.Contains(text, "- asked: Question 399\n- asked: Request 1194") ||
		strings.Contains(text, "Question 100\n") || len(text) > 8000 {
		t.Errorf("%s", text)
	}
	// A request that stands behind an earlier summary, and still does behind this one.
	carried := thread[1194]
	carried.Place = -1
	w := prompt.Window{Requests: []prompt.Request{{Place: 1194, Message: carried.Message}}}
	if text := v.Digest([]prompt.Piece{carried}, w, &regie.Compaction{Requests: []int{1195}}, prompt.Room{Budget: 5000}, "because"); strings.Contains(text, "Request 1194") {
		t.Errorf("what is shown word for word stands in the list too: %s", text)
	}
	if text := v.Digest([]prompt.Piece{carried}, w, &regie.Compaction{}, prompt.Room{Budget: 5000}, "because"); !strings.Contains(text, "Request 1194") {
		t.Errorf("what is shown no more is not in the list: %s", text)
	}
}
