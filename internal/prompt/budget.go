package prompt

import (
	"cmp"

	"github.com/regie-run/regie"
	"github.com/regie-run/regie/internal/provider"
)

// Gauge estimates prompts in tokens (spec 3.4): by bytes ÷ 4, and once a provider has counted one,
// by what it counted for that and by its tokens a byte for what is new since. What cannot be true
// (spec 12.4) is not learned. The zero Gauge is ready.
type Gauge struct {
	// Images is how many the thread holds: what a vendor counts for one, its size does not say.
	Images int

	tokens, bytes, rate float64
}

const (
	usualRate = 1.0 / 4  // tokens a byte
	leastRate = 1.0 / 16 // less than any tokenizer makes of any text
	mostRate  = 1.0
	mostImage = 40_000 // more tokens than any vendor counts for an image
)

// bounds returns the fewest and the most tokens that a request of a size in bytes can have.
func (g *Gauge) bounds(bytes int) (least, most float64) {
	images := min(g.Images, bytes/provider.ImageWeight)
	text := float64(bytes - images*provider.ImageWeight)
	return text * leastRate, text*mostRate + float64(images)*mostImage
}

// Learn takes what a provider counted for a request of a size in bytes.
func (g *Gauge) Learn(usage regie.Usage, bytes int) {
	bytes = max(1, bytes)
	least, most := g.bounds(bytes)
	input := float64(usage.Input)
	if usage.Estimated || input < least || input > most {
		return
	}
	rate := input / float64(bytes)
	if g.Images > 0 { // which says nothing about text
		rate = cmp.Or(g.rate, usualRate)
	}
	g.tokens, g.bytes, g.rate = input, float64(bytes), rate
}

// Tokens estimates a request of a size in bytes.
func (g *Gauge) Tokens(bytes int) int {
	if g.rate == 0 {
		return int(float64(bytes)*usualRate + 0.5)
	}
	return int(max(0, g.tokens+(float64(bytes)-g.bytes)*g.rate) + 0.5)
}

// unseen is how many tokens a provider may add to a request that has few: its own words about
// tools.
const unseen = 4096

// Counted returns the usage to charge to a model call, so that a limit on tokens holds for any
// claim (spec 3.2): the provider's claim where it is plausible for a request and a reply of these
// bytes. A reply may have more tokens than visible bytes, for reasoning, but not more than most. A
// lower claim is estimated; a higher one, which may be billed, counts as the most that is reserved
// for such a call (decision 29) with a reply of at most asked tokens.
func (g *Gauge) Counted(claimed regie.Usage, request, reply, most, asked int) regie.Usage {
	estimate := int64(g.Tokens(request))
	fewest, highest := g.bounds(request)
	switch {
	case claimed.Input > int64(highest)+unseen:
		claimed = regie.Usage{
			Input: estimate + (estimate+4)/5, Output: claimed.Output,
			Reasoning: claimed.Reasoning, Estimated: true,
		}
	case claimed.Input < int64(fewest):
		claimed = regie.Usage{Input: estimate, Output: claimed.Output, Reasoning: claimed.Reasoning, Estimated: true}
	}
	seen := int64(float64(reply)*usualRate + 0.5)
	switch {
	case claimed.Output > int64(reply+2*most):
		claimed.Output, claimed.Reasoning, claimed.Estimated = max(seen, int64(asked)), 0, true
	case claimed.Output < int64(float64(reply)*leastRate):
		claimed.Output, claimed.Reasoning, claimed.Estimated = seen, 0, true
	}
	return claimed
}

// Part estimates a part of a request.
func (g *Gauge) Part(bytes int) int {
	rate := g.rate
	if rate == 0 {
		rate = usualRate
	}
	return int(float64(bytes)*rate + 0.5)
}

// Size returns about how many bytes turns take in a request to any provider, in which an image
// counts as provider.ImageWeight.
func Size(turns []provider.Turn) int {
	const frame = 40 // the keys around a turn, a part, a result
	size := 0
	for i := range turns {
		size += frame
		for j := range turns[i].Parts {
			p := &turns[i].Parts[j]
			if p.Type == regie.PartThinking { // few vendors want it back
				continue
			}
			size += len(p.Text)
			if p.Media != nil {
				size += provider.ImageWeight
			}
			if p.Call != nil {
				size += frame + len(p.Call.ID) + len(p.Call.Name) + len(p.Call.Arguments)
			}
		}
		for j := range turns[i].Results {
			size += frame + len(turns[i].Results[j].CallID) + len(turns[i].Results[j].Content)
		}
	}
	return size
}

// Room is how large a prompt may be, in tokens.
type Room struct {
	// Budget is what it should not pass.
	Budget int
	// Most is the upper bound: the model's window less the reply; 0 where it is unknown.
	Most int
	// Fixed is what of it is not the thread: levels and tools.
	Fixed int
	// Messages is how many messages of the thread it should not pass; 0 does not bound them.
	Messages int
}

// DefaultBudget is the budget of an agent's prompt, in tokens (spec 3.4).
func DefaultBudget(kind regie.SessionType) int {
	if kind == regie.SessionSubagent {
		return 15_000
	}
	return 80_000
}

// NewRoom returns the room for an agent's prompt: never above the model's window less the reply.
func NewRoom(budget, window, reply, fixed, messages int) Room {
	room := Room{Budget: budget, Fixed: fixed, Messages: messages}
	if window > 0 {
		room.Limit(window - Reply(reply, window))
	}
	return room
}

// Reply is how many tokens of a window are left to the reply.
func Reply(wanted, window int) int {
	if window > 0 {
		return min(wanted, window/4)
	}
	return wanted
}

// Limit lowers what a prompt cannot pass.
func (r *Room) Limit(most int) {
	if r.Most == 0 || most < r.Most {
		r.Most = most
	}
	r.Budget = min(r.Budget, r.Most)
}

// Thread is how many tokens the thread should not pass. What is fixed may be most of the budget, or
// more: then the thread still has a quarter.
func (r *Room) Thread() int { return max(r.Budget-r.Fixed, r.Budget/4) }

// keptTokens returns how much of the thread stays as it is behind a summary; least is how much a
// summary must take away to be worth a model call.
func (r *Room) keptTokens() int { return r.Thread() * 3 / 10 }
func (r *Room) leastKept() int  { return r.Thread() / 10 }

// leastGain returns how much a summary must take away where the newest batch is most of the thread:
// else there would be one at each step.
func (r *Room) leastGain() int { return r.Thread() / 4 }

// isCrowded reports whether the newest batch, of some tokens, is most of the thread.
func (r *Room) isCrowded(batch int) bool { return batch > r.Thread()/2 }

// Over reports whether a prompt of some tokens, which shows some messages of the thread, is to be
// made smaller.
func (r *Room) Over(tokens, messages int) bool {
	return tokens-r.Fixed > r.Thread() || r.Beyond(tokens) || r.Messages > 0 && messages > r.Messages
}

// Beyond reports whether a prompt cannot be sent at all.
func (r *Room) Beyond(tokens int) bool { return r.Most > 0 && tokens > r.Most }
