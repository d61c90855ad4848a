// Package providertest holds every prompt to the strict validator of every vendor (invariant 18),
// whichever one it was made for: a stored thread must be legal everywhere, because it can be sent
// anywhere (decision 7). It is for tests and starts no goroutine.
package providertest

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"sync/atomic"

	"github.com/regie-run/regie"
	"github.com/regie-run/regie/internal/provider"
	"github.com/regie-run/regie/internal/provider/anthropic"
	"github.com/regie-run/regie/internal/provider/gemini"
	"github.com/regie-run/regie/internal/provider/ollama"
	"github.com/regie-run/regie/internal/provider/openai"
	"github.com/regie-run/regie/internal/provider/providertest/strict"
	"github.com/regie-run/regie/internal/provider/responses"
)

// tails are what any thread may end with.
var tails = []provider.Tail{{}, {Withheld: true}, {Guidance: "Answer now."}, {Withheld: true, Guidance: "Answer now."}}

// tailsOf returns the request ends to try for a variant of a vendor: all of them for the first
// variant, the fullest one for the others.
func tailsOf(way int) []provider.Tail {
	if way > 0 {
		return tails[len(tails)-1:]
	}
	return tails
}

// Check renders a thread as requests for each vendor and variant of its rules. It returns the
// errors of a strict server.
func Check(head provider.Head, turns []provider.Turn) error {
	if head.Model == "" {
		head.Model = "model"
	}
	head.MaxOutput = max(head.MaxOutput, 4096)
	head.ServiceTier = "" // which is of one vendor
	if len(head.Tools) == 0 {
		head.Encoded = nil // which is of no tools
		// a provider that needs the declarations has them: withholding tools is not leaving them
		// out
		head.Tools = called(turns)
	}
	for _, vendor := range append([]string{""}, openai.Vendors()...) {
		if err := checkChat(vendor, head, turns); err != nil {
			return err
		}
	}
	native := ollama.NewRequest(head, ollama.Options{Context: 32768})
	native.Append(turns...)
	for _, tail := range tails {
		native.EndWith(tail)
		if err := strict.Ollama(native.Body()); err != nil {
			return fmt.Errorf("ollama with %+v: %w", tail, err)
		}
	}
	for way, options := range []anthropic.Options{
		{},
		{Thinks: true, Thinking: "adaptive", Effort: "low"},
	} {
		claude := head
		claude.Model = "claude" // of the newest generation: which options one has follows from its name
		request, err := anthropic.NewRequest(claude, options)
		if err != nil {
			return err
		}
		request.Append(turns...)
		for _, tail := range tailsOf(way) {
			request.EndWith(tail)
			if err := strict.Anthropic(request.Body()); err != nil {
				return fmt.Errorf("anthropic with %+v and %+v: %w", options, tail, err)
			}
		}
	}
	for way, options := range []responses.Options{{}, {Reasons: true}} {
		request, err := responses.NewRequest(head, options)
		if err != nil {
			return err
		}
		request.Append(turns...)
		for _, tail := range tailsOf(way) {
			request.EndWith(tail)
			if err := strict.Responses(request.Body()); err != nil {
				return fmt.Errorf("responses with %+v and %+v: %w", options, tail, err)
			}
		}
	}
	for way, model := range []string{"gemini-3-pro", "gemini-2.5-pro"} {
		head.Model = model
		request, err := gemini.NewRequest(head,
			gemini.Options{Thinking: gemini.ThinkingOf(model, head.ReasoningEffort)})
		if err != nil {
			return err
		}
		request.Append(turns...)
		for _, tail := range tailsOf(way) {
			request.EndWith(tail)
			if err := strict.Gemini(model, request.Body()); err != nil {
				return fmt.Errorf("gemini as %s with %+v: %w", model, tail, err)
			}
		}
	}
	return nil
}

// checkChat renders a thread as a request of Chat Completions to a vendor. A vendor without calls
// never gets a thread with calls, so it gets the JSON dialect.
func checkChat(vendor string, head provider.Head, turns []provider.Turn) error {
	if !openai.TakesTools(vendor) {
		if slices.ContainsFunc(turns, func(turn provider.Turn) bool {
			return turn.Role == provider.RoleTool || slices.ContainsFunc(turn.Parts,
				func(part provider.Part) bool { return part.Call != nil })
		}) {
			return nil
		}
		head.Tools, head.Encoded = nil, nil
	}
	ends := []provider.Tail{{Withheld: true, Guidance: "Answer now."}} // which has all that an end can have
	if vendor == "" || vendor == "mistral" {
		ends = append(ends, provider.Tail{}) // nothing: once for any order, once for a strict one
	}
	for _, tail := range ends {
		if err := strict.ChatVendor(vendor, openai.Body(vendor, head, tail, turns...)); err != nil {
			return fmt.Errorf("openai as %q with %+v: %w", vendor, tail, err)
		}
	}
	return nil
}

// called declares the tools that a thread calls.
func called(turns []provider.Turn) []provider.Tool {
	var out []provider.Tool
	seen := map[string]bool{}
	for i := range turns {
		for j := range turns[i].Parts {
			if c := turns[i].Parts[j].Call; c != nil && !seen[gemini.WireName(c.Name)] {
				seen[gemini.WireName(c.Name)] = true
				out = append(out, provider.Tool{
					Name: c.Name, Description: "once declared",
					Parameters: json.RawMessage(`{"type":"object"}`),
				})
			}
		}
	}
	return out
}

// Watch wraps a provider: it runs Check on each request before sending it, and passes errors to
// refused.
func Watch(p provider.Provider, refused func(error)) provider.Provider {
	return &watched{Provider: p, refused: refused}
}

type watched struct {
	provider.Provider
	refused func(error)
	sent    atomic.Int64
}

// Open implements provider.Provider.
func (w *watched) Open(head provider.Head) (provider.Conversation, error) {
	conversation, err := w.Provider.Open(head)
	if err != nil {
		return nil, err
	}
	return &watchedConversation{Conversation: conversation, head: head, refused: w.refused, sent: &w.sent}, nil
}

type watchedConversation struct {
	provider.Conversation
	head    provider.Head
	turns   []provider.Turn
	tail    provider.Tail
	refused func(error)
	sent    *atomic.Int64 // by all conversations of the provider
}

// Append implements provider.Conversation.
func (c *watchedConversation) Append(turns ...provider.Turn) {
	c.turns = append(c.turns, turns...)
	c.Conversation.Append(turns...)
}

// EndWith implements provider.Conversation.
func (c *watchedConversation) EndWith(tail provider.Tail) {
	c.tail = tail
	c.Conversation.EndWith(tail)
}

// Send implements provider.Conversation.
func (c *watchedConversation) Send(ctx context.Context, sink func(provider.Delta)) (*provider.Reply, error) {
	turns := c.turns
	if c.tail.Guidance != "" {
		turns = append(slices.Clone(turns), provider.Turn{
			Role:  provider.RoleUser,
			Parts: []provider.Part{{Type: regie.PartText, Text: c.tail.Guidance}},
		})
	}
	if c.sent.Add(1)%every == 0 {
		if err := Check(c.head, turns); err != nil {
			c.refused(err)
		}
	}
	return c.Conversation.Send(ctx, sink)
}

// Request implements provider.Conversation.
func (c *watchedConversation) Request() (regie.Hash, int) { return c.Conversation.Request() }
