package slot_test

import (
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/regie-run/regie"
	"github.com/regie-run/regie/internal/slot"
)

var now = time.Unix(1_800_000_000, 0)

func held(session int64, kind slot.Kind) slot.Entry {
	return slot.Entry{Session: session, Kind: kind, State: slot.Held, Place: session}
}

func queued(session int64, kind slot.Kind, rank int) slot.Entry {
	return slot.Entry{Session: session, Kind: kind, State: slot.Queued, Rank: rank, Place: session}
}

func reserved(session int64, until time.Time) slot.Entry {
	return slot.Entry{Session: session, Kind: slot.Chat, State: slot.Reserved, Place: session, Until: until}
}

// TestTable holds Decide to each cell of the table of spec 5.1, with decisions 21 and 43: who asks
// is session 100.
func TestTable(t *testing.T) {
	exclusive := slot.Capacity{Exclusive: true, API: 2}
	two := slot.Capacity{Chat: 2, Automation: 1, API: 2}
	place := func(entries ...slot.Entry) []slot.Entry { return entries }
	for name, c := range map[string]struct {
		slots slot.Capacity
		all   []slot.Entry
		kind  slot.Kind
		ask   slot.Ask
		want  slot.Decision
	}{
		"chat, free":                          {exclusive, nil, slot.Chat, slot.AskChat, slot.Decision{Outcome: slot.Activate}},
		"chat, a chat active":                 {exclusive, place(held(1, slot.Chat)), slot.Chat, slot.AskChat, slot.Decision{Outcome: slot.Switch, Position: 1, Yields: 1}},
		"chat, a chat active and one queued":  {exclusive, place(held(1, slot.Chat), queued(2, slot.Chat, slot.RankPlaced)), slot.Chat, slot.AskChat, slot.Decision{Outcome: slot.Switch, Position: 1, Yields: 1, Replaced: 2}},
		"chat, an automation active":          {exclusive, place(held(1, slot.Automation)), slot.Chat, slot.AskChat, slot.Decision{Outcome: slot.Queue, Position: 1}},
		"chat, before queued automations":     {exclusive, place(held(1, slot.Automation), queued(2, slot.Automation, slot.RankNew)), slot.Chat, slot.AskChat, slot.Decision{Outcome: slot.Queue, Position: 1}},
		"chat, before wakes":                  {exclusive, place(held(1, slot.Automation), queued(2, slot.Chat, slot.RankGoesOn)), slot.Chat, slot.AskChat, slot.Decision{Outcome: slot.Queue, Position: 1}},
		"chat, the one in the queue replaced": {exclusive, place(held(1, slot.Automation), queued(2, slot.Chat, slot.RankPlaced)), slot.Chat, slot.AskChat, slot.Decision{Outcome: slot.Queue, Position: 1, Replaced: 2}},
		"chat, its own runs":                  {exclusive, place(held(100, slot.Chat)), slot.Chat, slot.AskChat, slot.Decision{Outcome: slot.Already}},
		"chat, its own reservation":           {exclusive, place(reserved(100, now.Add(1))), slot.Chat, slot.AskChat, slot.Decision{Outcome: slot.Activate}},
		"chat, switched and not let go":       {exclusive, place(reserved(100, now.Add(1)), held(1, slot.Chat)), slot.Chat, slot.AskChat, slot.Decision{Outcome: slot.Switch, Position: 1, Yields: 1}},
		"chat, switched and let go":           {exclusive, place(reserved(100, now.Add(1)), queued(1, slot.Chat, slot.RankGoesOn)), slot.Chat, slot.AskChat, slot.Decision{Outcome: slot.Activate}},
		"chat, between a switch's halves":     {exclusive, place(reserved(2, now.Add(1)), queued(1, slot.Chat, slot.RankGoesOn)), slot.Chat, slot.AskChat, slot.Decision{Outcome: slot.Queue, Position: 1}},
		"chat, another's reservation":         {exclusive, place(reserved(1, now.Add(1))), slot.Chat, slot.AskChat, slot.Decision{Outcome: slot.Queue, Position: 1}},
		"chat, a reservation that is over":    {exclusive, place(reserved(1, now)), slot.Chat, slot.AskChat, slot.Decision{Outcome: slot.Activate}},
		"chat, asks again in the queue":       {exclusive, place(held(1, slot.Chat), queued(100, slot.Chat, slot.RankGoesOn)), slot.Chat, slot.AskChat, slot.Decision{Outcome: slot.Switch, Position: 1, Yields: 1}},
		"chat, api is apart":                  {exclusive, place(held(1, slot.API), held(2, slot.API)), slot.Chat, slot.AskChat, slot.Decision{Outcome: slot.Activate}},
		"chat, kind not full":                 {two, place(held(1, slot.Chat), held(2, slot.Automation)), slot.Chat, slot.AskChat, slot.Decision{Outcome: slot.Activate}},
		"chat, kind full: the longest yields": {two, place(held(2, slot.Chat), held(1, slot.Chat)), slot.Chat, slot.AskChat, slot.Decision{Outcome: slot.Switch, Position: 1, Yields: 1}},
		"chat, free is another's":             {two, place(held(1, slot.Chat), queued(2, slot.Chat, slot.RankPlaced)), slot.Chat, slot.AskChat, slot.Decision{Outcome: slot.Switch, Position: 1, Yields: 1, Replaced: 2}},

		"manual, free":                   {exclusive, nil, slot.Automation, slot.AskManual, slot.Decision{Outcome: slot.Activate}},
		"manual, a chat active":          {exclusive, place(held(1, slot.Chat)), slot.Automation, slot.AskManual, slot.Decision{Outcome: slot.Queue, Rank: slot.RankNew, Position: 1}},
		"manual, after any chat":         {exclusive, place(held(1, slot.Automation), queued(2, slot.Chat, slot.RankPlaced)), slot.Automation, slot.AskManual, slot.Decision{Outcome: slot.Queue, Rank: slot.RankNew, Position: 2}},
		"manual, after wakes and others": {exclusive, place(held(1, slot.Automation), queued(2, slot.Automation, slot.RankGoesOn), queued(3, slot.Automation, slot.RankNew)), slot.Automation, slot.AskManual, slot.Decision{Outcome: slot.Queue, Rank: slot.RankNew, Position: 3}},
		"manual, chats have their own":   {two, place(held(1, slot.Chat), held(2, slot.Chat), queued(3, slot.Chat, slot.RankPlaced)), slot.Automation, slot.AskManual, slot.Decision{Outcome: slot.Activate}},
		"manual, kind full":              {two, place(held(1, slot.Automation)), slot.Automation, slot.AskManual, slot.Decision{Outcome: slot.Queue, Rank: slot.RankNew, Position: 1}},
		"event, free":                    {exclusive, nil, slot.Automation, slot.AskEvent, slot.Decision{Outcome: slot.Activate}},
		"event, busy":                    {exclusive, place(held(1, slot.Chat)), slot.Automation, slot.AskEvent, slot.Decision{Outcome: slot.Queue, Rank: slot.RankNew, Position: 1}},

		"scheduled, free":                   {exclusive, nil, slot.Automation, slot.AskScheduled, slot.Decision{Outcome: slot.Activate}},
		"scheduled, busy":                   {exclusive, place(held(1, slot.Chat)), slot.Automation, slot.AskScheduled, slot.Decision{Outcome: slot.Refuse}},
		"scheduled, somebody queued":        {exclusive, place(queued(1, slot.Automation, slot.RankNew)), slot.Automation, slot.AskScheduled, slot.Decision{Outcome: slot.Refuse}},
		"scheduled, the chats' queue":       {two, place(held(1, slot.Chat), held(2, slot.Chat), queued(3, slot.Chat, slot.RankPlaced)), slot.Automation, slot.AskScheduled, slot.Decision{Outcome: slot.Activate}},
		"scheduled, free but queue not":     {slot.Capacity{Automation: 2}, place(held(1, slot.Automation), queued(2, slot.Automation, slot.RankNew)), slot.Automation, slot.AskScheduled, slot.Decision{Outcome: slot.Refuse}},
		"wake, free":                        {exclusive, nil, slot.Chat, slot.AskWake, slot.Decision{Outcome: slot.Activate}},
		"wake of a chat never preempts":     {exclusive, place(held(1, slot.Chat)), slot.Chat, slot.AskWake, slot.Decision{Outcome: slot.Queue, Rank: slot.RankGoesOn, Position: 1}},
		"wake of an automation":             {exclusive, place(held(1, slot.Chat), queued(2, slot.Automation, slot.RankNew)), slot.Automation, slot.AskWake, slot.Decision{Outcome: slot.Queue, Rank: slot.RankGoesOn, Position: 1}},
		"wake behind a chat and other ones": {exclusive, place(held(1, slot.Chat), queued(2, slot.Chat, slot.RankPlaced), queued(3, slot.Chat, slot.RankGoesOn)), slot.Chat, slot.AskWake, slot.Decision{Outcome: slot.Queue, Rank: slot.RankGoesOn, Position: 3}},

		"api, free":          {two, place(held(1, slot.API)), slot.API, slot.AskChat, slot.Decision{Outcome: slot.Activate, Rank: 0}},
		"api, full":          {two, place(held(1, slot.API), held(2, slot.API), queued(3, slot.API, slot.RankGoesOn)), slot.API, slot.AskChat, slot.Decision{Outcome: slot.Queue, Rank: slot.RankGoesOn, Position: 2}},
		"as many as one has": {slot.Capacity{}, place(held(1, slot.Chat), held(2, slot.Chat)), slot.Chat, slot.AskChat, slot.Decision{Outcome: slot.Activate}},
	} {
		t.Run(name, func(t *testing.T) {
			got := slot.Decide(c.slots, c.all, 100, c.kind, c.ask, now)
			if diff := cmp.Diff(c.want, got); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// TestLook holds what may start, and who lets go.
func TestLook(t *testing.T) {
	exclusive := slot.Capacity{Exclusive: true, API: 1}
	two := slot.Capacity{Chat: 2, Automation: 1, API: 1}
	for name, c := range map[string]struct {
		slots slot.Capacity
		all   []slot.Entry
		want  slot.Next
	}{
		"nothing":                        {exclusive, nil, slot.Next{}},
		"in the table's order":           {exclusive, []slot.Entry{queued(1, slot.Automation, slot.RankNew), queued(2, slot.Chat, slot.RankGoesOn), queued(3, slot.Chat, slot.RankPlaced)}, slot.Next{Start: []int64{3}}},
		"wakes before new automations":   {exclusive, []slot.Entry{queued(1, slot.Automation, slot.RankNew), queued(2, slot.Automation, slot.RankGoesOn)}, slot.Next{Start: []int64{2}}},
		"first come, first served":       {two, []slot.Entry{held(9, slot.Chat), queued(3, slot.Chat, slot.RankGoesOn), queued(2, slot.Chat, slot.RankGoesOn)}, slot.Next{Start: []int64{2}}},
		"a chat has a chat let go":       {exclusive, []slot.Entry{held(1, slot.Chat), queued(2, slot.Chat, slot.RankPlaced)}, slot.Next{Yield: []int64{1}}},
		"an automation finishes":         {exclusive, []slot.Entry{held(1, slot.Automation), queued(2, slot.Chat, slot.RankPlaced)}, slot.Next{}},
		"what goes on preempts nobody":   {exclusive, []slot.Entry{held(1, slot.Chat), queued(2, slot.Chat, slot.RankGoesOn)}, slot.Next{}},
		"one lets go for one":            {two, []slot.Entry{held(1, slot.Chat), held(2, slot.Chat), queued(3, slot.Chat, slot.RankPlaced), queued(4, slot.Chat, slot.RankGoesOn)}, slot.Next{Yield: []int64{1}}},
		"kinds are apart":                {two, []slot.Entry{held(1, slot.Chat), held(2, slot.Chat), queued(3, slot.Automation, slot.RankNew), queued(4, slot.API, slot.RankGoesOn)}, slot.Next{Start: []int64{3, 4}}},
		"a switch has a chat let go":     {exclusive, []slot.Entry{held(1, slot.Chat), reserved(2, now.Add(1))}, slot.Next{Yield: []int64{1}}},
		"a switch that is over does not": {exclusive, []slot.Entry{held(1, slot.Chat), reserved(2, now)}, slot.Next{}},
		"a switch, and one let go":       {exclusive, []slot.Entry{reserved(2, now.Add(1)), queued(1, slot.Chat, slot.RankGoesOn)}, slot.Next{}},
		"a reservation holds a slot":     {exclusive, []slot.Entry{reserved(1, now.Add(1)), queued(2, slot.Automation, slot.RankNew)}, slot.Next{}},
		"one that is over does not":      {exclusive, []slot.Entry{reserved(1, now), queued(2, slot.Automation, slot.RankNew)}, slot.Next{Start: []int64{2}}},
		"more hold slots than there are": {exclusive, []slot.Entry{held(1, slot.Chat), held(2, slot.Chat), queued(3, slot.Chat, slot.RankGoesOn)}, slot.Next{}},
		"as many as one has":             {slot.Capacity{}, []slot.Entry{held(1, slot.Chat), queued(2, slot.Chat, slot.RankGoesOn), queued(3, slot.Chat, slot.RankNew)}, slot.Next{Start: []int64{2, 3}}},
	} {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(c.want, slot.Look(c.slots, c.all, now)); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// TestOverfull finds who has a slot that there is no more, after the number was lowered.
func TestOverfull(t *testing.T) {
	c := slot.Capacity{Chat: 1, Automation: 1}
	all := []slot.Entry{held(1, slot.Chat), held(2, slot.Chat), held(3, slot.Automation), queued(4, slot.Chat, slot.RankGoesOn)}
	for session, want := range map[int64]bool{1: false, 2: true, 3: false, 4: false, 5: false} {
		if got := slot.Overfull(c, all, session, now); got != want {
			t.Errorf("session %d: %v, want %v", session, got, want)
		}
	}
}

// TestKinds says which sessions need a slot.
func TestKinds(t *testing.T) {
	for kind, want := range map[regie.SessionType]slot.Kind{
		regie.SessionChat: slot.Chat, regie.SessionAutomation: slot.Automation, regie.SessionSeed: slot.None, regie.SessionSubagent: slot.None,
	} {
		if got := slot.KindOf(&regie.Session{Type: kind}); got != want {
			t.Errorf("%s runs in a slot of kind %q, want %q", kind, got, want)
		}
	}
}

// TestNobodyStarves plays thousands of asks, ends and looks: no kind ever has more than its slots,
// at most one chat has a place, and all that was queued runs in the end.
func TestNobodyStarves(t *testing.T) {
	for seed := range uint64(300) {
		r := rand.New(rand.NewPCG(seed, 1))
		c := slot.Capacity{Chat: 1 + r.IntN(3), Automation: 1 + r.IntN(2), API: 1 + r.IntN(3), Exclusive: r.IntN(3) == 0}
		var all []slot.Entry
		last := int64(0)
		set := func(session int64, kind slot.Kind, state slot.State, rank int) {
			all = slices.DeleteFunc(all, func(e slot.Entry) bool { return e.Session == session })
			last++
			all = append(all, slot.Entry{Session: session, Kind: kind, State: state, Rank: rank, Place: last})
		}
		entry := func(session int64) slot.Entry {
			return all[slices.IndexFunc(all, func(e slot.Entry) bool { return e.Session == session })]
		}
		look := func() {
			for again := true; again; {
				next := slot.Look(c, all, now)
				again = len(next.Start) > 0
				for _, session := range next.Start {
					set(session, entry(session).Kind, slot.Held, 0)
				}
				if !again && r.IntN(2) == 0 {
					for _, session := range next.Yield {
						set(session, entry(session).Kind, slot.Queued, slot.RankGoesOn)
						again = true
					}
				}
				check(t, seed, c, all)
			}
		}
		kinds := []slot.Kind{slot.Chat, slot.Chat, slot.Automation, slot.API}
		for session := int64(1); session <= 60; session++ {
			kind, ask := kinds[r.IntN(len(kinds))], slot.AskChat
			if kind == slot.Automation {
				ask = []slot.Ask{slot.AskManual, slot.AskEvent, slot.AskScheduled}[r.IntN(3)]
			}
			if r.IntN(4) == 0 {
				ask = slot.AskWake
			}
			switch d := slot.Decide(c, all, session, kind, ask, now); d.Outcome {
			case slot.Activate:
				set(session, kind, slot.Held, 0)
			case slot.Queue, slot.Switch:
				for i := range all {
					if all[i].Session == d.Replaced {
						all[i].Rank = slot.RankGoesOn
					}
				}
				set(session, kind, slot.Queued, d.Rank)
				if at := slot.Position(c, all, session, now); at != d.Position {
					t.Fatalf("seed %d: told place %d, it is %d: %v", seed, d.Position, at, all)
				}
			}
			check(t, seed, c, all)
			if r.IntN(3) == 0 {
				all = slices.DeleteFunc(all, func(e slot.Entry) bool { return e.State == slot.Held && r.IntN(2) == 0 })
			}
			look()
		}
		for left := len(all) + 1; len(all) > 0; left-- {
			if left < 0 {
				t.Fatalf("seed %d: what was queued does not start: %v", seed, all)
			}
			all = slices.DeleteFunc(all, func(e slot.Entry) bool { return e.State == slot.Held })
			look()
		}
	}
}

func check(t *testing.T, seed uint64, c slot.Capacity, all []slot.Entry) {
	t.Helper()
	held, placed := map[slot.Kind]int{}, map[slot.Kind]int{}
	for _, e := range all {
		kind := e.Kind
		if c.Exclusive && kind == slot.Automation {
			kind = slot.Chat
		}
		if e.State == slot.Held {
			held[kind]++
		}
		if e.State == slot.Queued && e.Rank == slot.RankPlaced {
			placed[kind]++
		}
	}
	for kind, n := range held {
		if n > c.Of(kind) || placed[kind] > 1 {
			t.Fatalf("seed %d: %d rounds run in %d slots of kind %s, %d have a place: %v", seed, n, c.Of(kind), kind, placed[kind], all)
		}
	}
}

// TestLost holds which reservation another switch takes over: the latest that nobody has let go
// for.
func TestLost(t *testing.T) {
	exclusive, two := slot.Capacity{Exclusive: true}, slot.Capacity{Chat: 2, Automation: 1, API: 1}
	for name, c := range map[string]struct {
		slots slot.Capacity
		all   []slot.Entry
		want  int64
	}{
		"nobody":                       {exclusive, nil, 0},
		"the first switch":             {exclusive, []slot.Entry{held(1, slot.Chat)}, 0},
		"the second one":               {exclusive, []slot.Entry{held(1, slot.Chat), reserved(2, now.Add(1))}, 2},
		"the same one again":           {exclusive, []slot.Entry{held(1, slot.Chat), reserved(100, now.Add(1))}, 0},
		"one that is over":             {exclusive, []slot.Entry{held(1, slot.Chat), reserved(2, now)}, 0},
		"of a free slot":               {two, []slot.Entry{held(1, slot.Chat), reserved(2, now.Add(1))}, 0},
		"the latest":                   {two, []slot.Entry{held(1, slot.Chat), reserved(2, now.Add(1)), reserved(3, now.Add(1))}, 3},
		"those who queue do not count": {exclusive, []slot.Entry{reserved(2, now.Add(1)), queued(1, slot.Chat, slot.RankGoesOn)}, 0},
	} {
		if got := slot.Lost(c.slots, c.all, 100, slot.Chat, now); got != c.want {
			t.Errorf("%s: %d, not %d", name, got, c.want)
		}
	}
}
