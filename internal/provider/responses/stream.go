package responses

import (
	"encoding/json"
	"strings"

	jsonv2 "github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/regie-run/regie"
	"github.com/regie-run/regie/internal/provider"
	"github.com/regie-run/regie/internal/provider/wire"
)

// event holds the fields that we read of a streamed event. New kinds of events and items are
// skipped, so members that differ between kinds are decoded only for known ones.
type event struct {
	Type      string         `json:"type"`
	Index     *int           `json:"output_index"`
	ItemID    string         `json:"item_id"`
	Summary   int            `json:"summary_index"`
	Item      jsontext.Value `json:"item"`
	Delta     jsontext.Value `json:"delta"`
	Arguments jsontext.Value `json:"arguments"`
	Response  jsontext.Value `json:"response"`
	Error     jsontext.Value `json:"error"`
}

type item struct {
	ID        string         `json:"id"`
	Type      string         `json:"type"`
	CallID    string         `json:"call_id"`
	Name      string         `json:"name"`
	Arguments jsontext.Value `json:"arguments"`
	Phase     string         `json:"phase"`
	Encrypted string         `json:"encrypted_content"`
	Summary   jsontext.Value `json:"summary"`
	Content   jsontext.Value `json:"content"`
}

// texts reads a list of texts, as items of our kinds have them.
func texts(raw jsontext.Value) (out []string) {
	var list []struct {
		Text    string `json:"text"`
		Refusal string `json:"refusal"`
	}
	if !wire.Claimed(raw, &list) {
		return nil
	}
	for _, one := range list {
		out = append(out, wire.Safe(one.Text+one.Refusal))
	}
	return out
}

type response struct {
	Usage      jsontext.Value `json:"usage"`
	Error      jsontext.Value `json:"error"`
	Incomplete *struct {
		Reason string `json:"reason"`
	} `json:"incomplete_details"`
}

type usage struct {
	Input        int64 `json:"input_tokens"`
	Output       int64 `json:"output_tokens"`
	InputDetails *struct {
		Cached  int64 `json:"cached_tokens"`
		Written int64 `json:"cache_write_tokens"`
	} `json:"input_tokens_details"`
	OutputDetails *struct {
		Reasoning int64 `json:"reasoning_tokens"`
	} `json:"output_tokens_details"`
}

// collector puts a reply together from its events.
type collector struct {
	wire.Collector
	server  *wire.Server
	model   string
	items   []*open
	byID    map[string]*open
	byIndex map[int]*open // the item that an index now means: some bridges number all of them 0
	stopped bool          // the terminal event has come
}

// open is an item that grows.
type open struct {
	kind    string
	part    *wire.Part
	whole   bool // a call's arguments were said to be all of them
	closed  bool // nothing more of it comes
	summary int  // the piece of the summary that came last
}

// maxItems bounds the items of one reply.
const maxItems = 20_000

func newCollector(server *wire.Server, sink func(provider.Delta), model string) *collector {
	return &collector{
		Collector: wire.Collector{Name: Name, Sink: sink}, server: server, model: model,
		byID: map[string]*open{}, byIndex: map[int]*open{},
	}
}

// add takes one event. The error is an *provider.Error.
func (c *collector) add(data []byte) error {
	if string(data) == "[DONE]" { // which bridges say behind the end
		return wire.Truncated()
	}
	var e event
	if err := jsonv2.Unmarshal(data, &e, wire.Lenient); err != nil {
		return wire.Broken("the server sent something that is no JSON: %v", err)
	}
	switch e.Type {
	case "response.output_item.added":
		_, _, err := c.item(&e)
		return err
	case "response.output_item.done":
		o, it, err := c.item(&e)
		if err != nil {
			return err
		}
		return c.done(o, it)
	case "response.output_text.delta", "response.refusal.delta":
		return c.grow(&e, "message")
	case "response.reasoning_summary_text.delta", "response.reasoning_text.delta":
		return c.grow(&e, "reasoning")
	case "response.function_call_arguments.delta":
		return c.grow(&e, "function_call")
	case "response.function_call_arguments.done":
		if o := c.find(e.ItemID, e.Index); o != nil && o.kind == "function_call" {
			return c.settle(o, e.Arguments)
		}
	case "response.completed", "response.incomplete", "response.failed":
		return c.end(&e)
	case "error":
		if wire.Said(e.Error) {
			return c.server.InBand(data)
		}
		return c.failed(data)
	}
	return nil
}

// failed names an error in the API's form.
func (c *collector) failed(raw []byte) error {
	return c.server.InBand(append(append([]byte(`{"error":`), raw...), '}'))
}

// find returns the item of an event by its id, else by its index, else the newest item.
func (c *collector) find(id string, index *int) *open {
	switch o := c.byID[id]; {
	case o != nil:
		return o
	case index != nil:
		return c.byIndex[*index]
	case id == "" && len(c.items) > 0:
		return c.items[len(c.items)-1]
	}
	return nil
}

// item returns the item of an event, and opens it if its id is new, even under a known index.
func (c *collector) item(e *event) (*open, *item, error) {
	it := &item{}
	if err := jsonv2.Unmarshal(e.Item, it, wire.Lenient); err != nil {
		return nil, nil, wire.Broken("the server sent an item that cannot be read: %v", err)
	}
	o := c.byID[it.ID]
	// some bridges change an item's id on its way
	if o == nil && (it.ID == "" || e.Type == "response.output_item.done") {
		if o = c.find("", e.Index); o != nil && (o.closed || o.kind == "function_call" && o.part.ID != "" &&
			it.CallID != "" && o.part.ID != it.CallID) {
			o = nil
		}
	}
	if o != nil && o.kind == it.Type {
		return o, it, nil
	}
	o, err := c.begin(it.Type, it.ID, e.Index)
	if err == nil && o.kind == "function_call" {
		err = c.AddCall(o.part, it.CallID, it.Name, "")
	}
	return o, it, err
}

// begin opens an item. A text part is opened with its first text.
func (c *collector) begin(kind, id string, index *int) (*open, error) {
	if len(c.items) >= maxItems {
		return nil, &provider.Error{
			Code:    regie.CodeReplyTooLarge,
			Message: "the model's reply had more than 20,000 items and was cut off",
		}
	}
	o := &open{kind: kind}
	c.items = append(c.items, o)
	if id != "" {
		c.byID[id] = o
	}
	if index != nil {
		c.byIndex[*index] = o
	}
	var err error
	switch kind {
	case "function_call":
		o.part, err = c.OpenCall()
	case "reasoning":
		o.part = c.Open(regie.PartThinking) // never joined: each is an item
	}
	return o, err
}

// grow adds a piece to an item.
func (c *collector) grow(e *event, kind string) error {
	var piece string
	if err := jsonv2.Unmarshal(e.Delta, &piece, wire.Lenient); err != nil {
		return wire.Broken("the server sent a piece that cannot be read: %v", err)
	}
	o := c.find(e.ItemID, e.Index)
	if o == nil || o.kind != kind {
		if kind == "function_call" {
			return wire.Broken("the server sent a piece of a call that belongs to none")
		}
		var err error
		if o, err = c.begin(kind, e.ItemID, e.Index); err != nil {
			return err
		}
	}
	switch kind {
	case "function_call":
		if o.whole {
			return wire.Broken("the server sent a piece of a call that was whole")
		}
		return c.AddCall(o.part, "", "", piece)
	case "reasoning":
		if e.Summary > o.summary && o.part.Text() != "" {
			piece = "\n\n" + piece
		}
		o.summary = e.Summary
		return c.Add(o.part, piece)
	default:
		return c.say(o, piece)
	}
}

// say appends to a message. Consecutive messages share one part.
func (c *collector) say(o *open, piece string) error {
	if piece == "" {
		return nil
	}
	if o.part == nil {
		if n := len(c.Parts); n > 0 && c.Parts[n-1].Kind == regie.PartText {
			o.part, piece = c.Parts[n-1], "\n\n"+piece
		} else {
			o.part = c.Open(regie.PartText)
		}
	}
	return c.Add(o.part, piece)
}

// done takes a finished item: its missing pieces, and the data to send back with it.
func (c *collector) done(o *open, it *item) error {
	o.closed = true
	switch it.Type {
	case "message":
		if o.part == nil {
			if err := c.say(o, strings.Join(texts(it.Content), "")); err != nil {
				return err
			}
		}
		if o.part != nil && it.Phase != "" {
			return c.Keep(o.part, wire.Opaque(phased{Phase: wire.Safe(it.Phase)}))
		}
	case "reasoning":
		summary := texts(it.Summary)
		if o.part.Text() == "" {
			if err := c.Add(o.part, strings.Join(summary, "\n\n")); err != nil {
				return err
			}
		}
		if it.Encrypted != "" {
			return c.Keep(o.part, wire.Opaque(reasoning{
				ID: wire.Safe(it.ID), Encrypted: wire.Safe(it.Encrypted),
				Summary: summary, Model: c.model,
			}))
		}
	case "function_call":
		if err := c.AddCall(o.part, it.CallID, it.Name, ""); err != nil {
			return err
		}
		return c.settle(o, it.Arguments)
	}
	return nil
}

// settle takes a call's whole arguments, which must be what came in pieces.
func (c *collector) settle(o *open, arguments jsontext.Value) error {
	all, had := wire.ArgumentText(json.RawMessage(arguments)), o.part.Text()
	o.whole = true
	switch {
	case strings.TrimSpace(had) == "":
		return c.AddCall(o.part, "", "", all)
	case strings.TrimSpace(all) != "" && strings.TrimSpace(all) != strings.TrimSpace(had):
		return wire.Broken("the server sent a call of %s with arguments that are not those it sent in pieces",
			wire.Clip(o.part.Name, 80))
	}
	return nil
}

// end takes the terminal event.
func (c *collector) end(e *event) error {
	var r response
	if err := jsonv2.Unmarshal(e.Response, &r, wire.Lenient); err != nil {
		return wire.Broken("the server ended its reply with something that cannot be read: %v", err)
	}
	c.count(r.Usage)
	switch {
	case wire.Said(r.Error):
		return c.failed(r.Error)
	case e.Type == "response.failed":
		return c.failed([]byte(`{"message":"it says only that the reply failed"}`))
	case e.Type == "response.incomplete" || r.Incomplete != nil && r.Incomplete.Reason != "":
		c.Cut, c.Finish = true, "incomplete"
		if r.Incomplete != nil && r.Incomplete.Reason != "" {
			c.Finish = r.Incomplete.Reason
		}
		c.HeldBack = c.Finish == "content_filter"
	default:
		c.Finish = "completed"
	}
	for _, o := range c.items {
		if o.kind == "function_call" && !o.whole && !c.Cut { // of one that is cut its arguments say it
			return wire.Broken("the server never finished a call of %s", wire.Clip(o.part.Name, 80))
		}
	}
	c.stopped = true
	return nil
}

// count records the usage that the server reports. It ignores unreadable usage and keeps the reply.
func (c *collector) count(claimed jsontext.Value) {
	var u usage
	if !wire.Claimed(claimed, &u) {
		return
	}
	c.Usage = regie.Usage{Input: wire.Tokens(u.Input), Output: wire.Tokens(u.Output)}
	if d := u.InputDetails; d != nil {
		c.Usage.CacheRead, c.Usage.CacheCreation = wire.Tokens(d.Cached), wire.Tokens(d.Written)
	}
	if d := u.OutputDetails; d != nil {
		c.Usage.Reasoning = wire.Tokens(d.Reasoning)
	}
}
