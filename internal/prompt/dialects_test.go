package prompt_test

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/regie-run/regie"
	"github.com/regie-run/regie/internal/dialect"
	"github.com/regie-run/regie/internal/prompt"
	"github.com/regie-run/regie/internal/provider"
	"github.com/regie-run/regie/internal/provider/providertest"
	"github.com/regie-run/regie/internal/tool"
	"github.com/regie-run/regie/internal/toolkit/session"
)

func object(s string) json.RawMessage { return json.RawMessage(s) }

var definitions = []regie.ToolDefinition{
	{Name: "files.read_file", Description: "Read.", Kind: regie.KindQuery, Parameters: object(`{"type":"object","properties":{"path":{"type":"string"}},"additionalProperties":false}`)},
	{Name: "files.write_file", Description: "Write.", Kind: regie.KindAction, Parameters: object(`{"type":"object"}`)},
	{Name: "session.ask_user", Kind: regie.KindQuery, Role: regie.RoleQuestion, Parameters: object(`{"type":"object"}`)},
	{Name: "session.complete", Kind: regie.KindQuery, Role: regie.RoleComplete, Parameters: object(`{"type":"object"}`)},
	{Name: "session.update_plan", Kind: regie.KindQuery, Role: regie.RolePlan, Parameters: object(`{"type":"object"}`)},
}

func jsonDialect() *dialect.JSON {
	return dialect.New(definitions, dialect.Options{Questions: true, Module: session.ParseModule})
}

func declared() []provider.Tool {
	var out []provider.Tool
	for _, d := range definitions {
		out = append(out, provider.Tool{Name: tool.WireName(d.Name), Description: d.Description, Parameters: d.Parameters})
	}
	return out
}

// thread is a stored thread that grows at random, with everything that a store can hold (spec 2.2,
// 2.3) and what hostile models write (spec 12.4).
type thread struct {
	*rand.Rand
	n        byte
	messages []regie.Message
	calls    map[int][]regie.Call // by message
}

func (t *thread) pick(from ...string) string { return from[t.IntN(len(from))] }

func (t *thread) words() string {
	return t.pick("", " \n", "Hello.", "a\x00b\xff", "ai_response_invalid_format", `{"pre_text":"x"}`, "</think>```json", "é\u202e\"\\", strings.Repeat("long ", 3000))
}

func (t *thread) add(m regie.Message, calls []regie.Call) {
	t.calls[len(t.messages)] = calls
	t.messages = append(t.messages, m)
}

func (t *thread) user() {
	t.add(regie.Message{Sender: regie.SenderUser, Text: t.pick("Do it.", " ", `{"pre_text":"I am you"}`)}, nil)
}

func (t *thread) notice(kind regie.SystemType) {
	t.add(regie.Message{Sender: regie.SenderSystem, System: &regie.SystemContent{Type: kind, Summary: "what happened"}}, nil)
}

func (t *thread) call(ordinal int) regie.Call {
	t.n++
	d := definitions[t.IntN(len(definitions))]
	if t.IntN(2) == 0 {
		d = definitions[t.IntN(2)]
	}
	c := regie.Call{
		ID: regie.ID{14: byte(len(t.messages)), 15: byte(ordinal)}, Ordinal: ordinal, Tool: d.Name, Kind: d.Kind, Ask: d.Kind == regie.KindAction && t.IntN(3) == 0,
		ProviderCallID: fmt.Sprintf("%s%d_%d", t.pick("call_", "functions.Bash:", strings.Repeat("x", 60)), len(t.messages), ordinal),
		Arguments: t.pick(
			`{}`, ` {"path": "a"} `, "", "no", "[]", `{"a":1,"a":2}`, `{"path":"\ud800"}`, strings.Repeat(`{"a":`, 80)+"1"+strings.Repeat("}", 80),
			`{"_validate":true,"path":"_validate"}`, `{"question":"Go on?"}`, `{"question":"Which?","options":["a","b"]}`, `{"question":"?","options":["a","a"]}`,
			`{"summary":"All of it."}`, `{"steps":[]}`,
		),
	}
	if t.IntN(6) == 0 {
		c.Tool, c.Kind, c.Ask = t.pick("rm -rf /", "", "7zip.run", "files.red_file", strings.Repeat("y", 190)), regie.KindAction, false
	}
	switch t.IntN(4) {
	case 0:
		c.State, c.NotRun, c.Error = regie.CallNotRun, regie.NotRunDenied, &regie.CallError{Code: "USER_REJECTED", Message: "no \xff"}
	case 1:
		c.State, c.Error = regie.CallUnknown, &regie.CallError{Code: "OUTCOME_UNKNOWN", Message: "?"}
		c.Resolution = &regie.Resolution{As: regie.ResolvedHappened}
	default:
		c.State, c.Result = regie.CallSucceeded, t.pick("", "text\n{\"command\":2}", `{"b":1,"a":[]}`, "{}", "{", "\x00\xff")
	}
	if t.IntN(8) == 0 {
		c.Executed = object(`{"path":"edited"}`)
	}
	return c
}

// reasoned is a reasoning item of the Responses API, made by the model that the check asks.
func reasoned(id string) string {
	return `{"id":"` + id + `","encrypted_content":"gAAA","model":"m"}`
}

func (t *thread) reply() {
	reply := &regie.AIReply{}
	if t.IntN(2) == 0 {
		who := t.pick("openai", "anthropic", "gemini", "responses", "")
		reply.Parts = append(reply.Parts, regie.Part{Type: regie.PartThinking, Text: t.words(), Provider: who, Opaque: object(t.pick(`{"signature":"c2ln"}`, `{"data":"eA=="}`, reasoned("rs_a"), `null`))})
	}
	if t.IntN(3) > 0 {
		reply.Parts = append(reply.Parts, regie.Part{Type: regie.PartText, Text: t.words()})
	}
	if t.IntN(8) == 0 {
		reply.Parts = append(reply.Parts, regie.Part{Type: regie.PartText, Text: dialect.Fallback(t.words())})
		t.add(regie.Message{Sender: regie.SenderAI, AI: reply}, nil)
		t.notice(regie.SystemFormatError)
		return
	}
	if t.IntN(8) == 0 {
		reply.PostText, reply.KeepControl = t.pick(" ", "Done."), t.IntN(2) == 0
	}
	many := t.IntN(5)
	if many == 0 && strings.TrimSpace(reply.Text()) == "" { // no provider returns nothing (EMPTY_REPLY)
		reply.Parts = append(reply.Parts, regie.Part{Type: regie.PartText, Text: "Yes."})
	}
	if t.IntN(30) == 0 {
		many = 140
	}
	var calls []regie.Call
	var ids []regie.ID
	for i := range many {
		c := t.call(i)
		calls, ids = append(calls, c), append(ids, c.ID)
		part := regie.Part{Type: regie.PartCall, CallID: c.ID}
		switch t.IntN(4) {
		case 0:
			part.Provider, part.Opaque = "gemini", object(`{"thoughtSignature":"c2ln"}`)
		case 1:
			reply.Parts = append(reply.Parts, regie.Part{Type: regie.PartThinking, Provider: "responses", Opaque: object(reasoned("rs_" + c.ID.String()))})
		}
		reply.Parts = append(reply.Parts, part)
	}
	t.add(regie.Message{Sender: regie.SenderAI, AI: reply}, calls)
	if many > 0 {
		kind := regie.SystemType(t.pick("DATA_ADDED", "ACTIONS_EXECUTED", "LIMIT_REACHED", "VALIDATION_CANCELLED"))
		t.add(regie.Message{Sender: regie.SenderSystem, System: &regie.SystemContent{Type: kind, CallIDs: ids, Summary: t.pick("", "why")}}, calls)
	}
}

// named is the message that brings what a person named, with its calls.
func named(calls ...regie.Call) (regie.Message, []regie.Call) {
	content := &regie.SystemContent{Type: regie.SystemDataAdded, Enriches: regie.ID{0: 7}}
	for i := range calls {
		calls[i].Origin, calls[i].ProviderCallID, calls[i].Kind, calls[i].Executed = regie.OriginUser, "", regie.KindQuery, nil
		content.CallIDs = append(content.CallIDs, calls[i].ID)
		content.Queries = append(content.Queries, regie.Part{Type: regie.PartCall, Text: "@a.txt", CallID: calls[i].ID})
	}
	return regie.Message{Sender: regie.SenderSystem, System: content}, calls
}

// legal makes a thread that ends where a model is asked.
func legal(seed uint64) *thread {
	t := &thread{Rand: rand.New(rand.NewPCG(seed, 1)), calls: map[int][]regie.Call{}}
	if t.IntN(4) == 0 {
		t.notice(regie.SystemContextSummary)
	}
	t.user()
	for range t.IntN(8) {
		switch t.IntN(9) {
		case 0:
			t.user()
		case 8: // what a person ran themselves
			messages, calls := own(t.call(0))
			for i := range messages {
				t.add(messages[i], calls[i])
			}
		case 1:
			t.notice(regie.SystemUndone)
		case 2:
			t.add(regie.Message{Sender: regie.SenderAI, Text: "said", ExcludeFromPrompt: t.IntN(2) == 0}, nil)
		case 3: // what a person named
			for range 1 + t.IntN(2) {
				t.user()
				said := &t.messages[len(t.messages)-1]
				said.Rich, said.Text = []regie.Segment{{Text: said.Text}, {Enrichment: &regie.EnrichmentBlock{Type: regie.EnrichmentPointer, Target: regie.TargetFile, Path: "a.txt"}}}, ""
			}
			for range 1 + t.IntN(2) {
				t.add(named(t.call(0), t.call(1)))
			}
		default:
			t.reply()
		}
	}
	t.user()
	return t
}

func (t *thread) turns(v prompt.View) []provider.Turn {
	var out []provider.Turn
	for i := range t.messages {
		out = append(out, v.Turns(&t.messages[i], t.calls[i])...)
	}
	return out
}

// TestEveryThreadInEveryDialect: whatever a store holds is legal for every vendor in both dialects,
// and what stands in the JSON dialect is what the model could have written: it reads back as the
// same calls in the same order.
func TestEveryThreadInEveryDialect(t *testing.T) {
	j := jsonDialect()
	for seed := range uint64(600) {
		stored := legal(seed)
		head := provider.Head{Model: "m", Level1: "You are.", Tools: declared(), MaxOutput: 4096}
		if err := providertest.Check(head, stored.turns(prompt.View{Names: tool.WireName})); err != nil {
			t.Fatalf("seed %d, native: %v", seed, err)
		}
		turns := stored.turns(prompt.View{JSON: j})
		head.Tools = nil
		if err := providertest.Check(head, turns); err != nil {
			t.Fatalf("seed %d, json: %v", seed, err)
		}
		for i := range turns {
			if turns[i].Role == provider.RoleTool {
				t.Fatalf("seed %d: a native result in a JSON thread", seed)
			}
		}
		for i := range stored.messages {
			if m := &stored.messages[i]; m.AI != nil && !m.ExcludeFromPrompt {
				if err := readsBack(j, m, stored.calls[i]); err != nil {
					t.Fatalf("seed %d, message %d: %v", seed, i, err)
				}
			}
		}
	}
}

// readsBack reads a rendered reply and compares its calls with the stored ones.
func readsBack(j *dialect.JSON, m *regie.Message, calls []regie.Call) error {
	if _, unreadable := dialect.Unreadable(m.AI.Text()); len(calls) == 0 && (unreadable || strings.Contains(m.AI.Text(), dialect.InvalidFormat+"\n")) {
		return nil // shown as it was written
	}
	next := 0
	for _, turn := range (prompt.View{JSON: j}).Turns(m, calls) {
		if turn.Role == provider.RoleUser {
			continue
		}
		read := j.Read(turn.Parts)
		if read.Errors != nil {
			return fmt.Errorf("%s\n%w", provider.JoinText(turn.Parts), read.Errors)
		}
		for _, c := range read.Reply.Calls {
			for next < len(calls) && !personText(j, &calls[next]) {
				next++ // told in the text
			}
			if next == len(calls) {
				return fmt.Errorf("more calls than were stored")
			}
			stored := &calls[next]
			next++
			if d, ok := j.Find(stored.Tool); ok && d.Name != c.Tool || !ok && strings.ToValidUTF8(stored.Tool, "\uFFFD") != c.Tool {
				return fmt.Errorf("%s became %s", stored.Tool, c.Tool)
			}
			if c.Role == "" {
				want := dialect.Params(stored.Arguments, stored.Ask)
				if diff := cmp.Diff(want, c.Arguments); diff != "" {
					return fmt.Errorf("other params:\n%s", diff)
				}
				if stored.Ask && !read.Reply.ValidationRequest {
					return fmt.Errorf("the model's wish for a check is lost")
				}
			}
		}
	}
	for ; next < len(calls); next++ {
		if personText(j, &calls[next]) {
			return fmt.Errorf("call %d of %s is lost", next, calls[next].Tool)
		}
	}
	return nil
}

func personText(j *dialect.JSON, c *regie.Call) bool {
	d, _ := j.Find(c.Tool)
	return j.Sayable(&dialect.Call{Tool: c.Tool, Kind: c.Kind, Role: d.Role, Arguments: dialect.Params(c.Arguments, false)})
}

// TestJSONBorn: a reply that was read in the JSON dialect and stored is shown again in it word for
// word in canonical form, and in the native one as calls.
func TestJSONBorn(t *testing.T) {
	j := jsonDialect()
	for _, written := range []string{
		`{"pre_text":"Hello."}`,
		`{"pre_text":"I look.","data_commands":[{"type":"files.read_file","params":{"path":"a"}},{"type":"files.read_file","params":{}}]}`,
		`{"pre_text":"I write.","validation_request":true,"action_commands":[{"type":"files.write_file","params":{"path":"a"}}],"post_text":"Written.","keep_control":true}`,
		`{"pre_text":"May I?","communication_module":{"type":"Validation","data":{"message":"Go on?"}}}`,
		`{"pre_text":"Which?","communication_module":{"type":"MultipleChoice","data":{"question":"Which?","options":["a","b"],"allow_multiple":true}}}`,
		`{"pre_text":"All done.","completed":true,"plan":{"steps":[]}}`,
		`{"pre_text":"I look.","data_commands":[{"type":"files.red_file","params":{}}],"plan":{"steps":[]}}`,
		`{"pre_text":"` + strings.Repeat("long ", 1000) + `","completed":true}`,
	} {
		turn := j.Read([]provider.Part{{Type: regie.PartText, Text: written}})
		if turn.Errors != nil {
			t.Fatal(turn.Errors)
		}
		reply := &regie.AIReply{PostText: turn.Reply.PostText, KeepControl: turn.Reply.KeepControl}
		var calls []regie.Call
		for _, p := range turn.Parts {
			part := regie.Part{Type: p.Type, Text: p.Text}
			if p.Type == regie.PartCall {
				c := turn.Reply.Calls[len(calls)]
				part.CallID = regie.ID{15: byte(len(calls) + 1)}
				calls = append(calls, regie.Call{
					ID: part.CallID, Tool: c.Tool, Kind: c.Kind, Arguments: c.Arguments, State: regie.CallSucceeded, Result: "ok",
					Ask: turn.Reply.ValidationRequest && c.Kind == regie.KindAction, ProviderCallID: fmt.Sprint("call_", len(calls)),
				})
			}
			reply.Parts = append(reply.Parts, part)
		}
		m := &regie.Message{Sender: regie.SenderAI, AI: reply}
		turns := prompt.View{JSON: j}.Turns(m, calls)
		if len(turns) != 1 || len(turns[0].Parts) != 1 {
			t.Fatalf("%s became %+v", written, turns)
		}
		if diff := cmp.Diff(written, turns[0].Parts[0].Text); diff != "" && len(written) < 1000 {
			t.Errorf("-written +shown:\n%s", diff)
		}
		again, errs := j.Parse(turns[0].Parts[0].Text)
		if errs != nil {
			t.Fatal(errs)
		}
		if diff := cmp.Diff(turn.Reply, again); diff != "" {
			t.Errorf("-read +read again:\n%s", diff)
		}
		native := prompt.View{Names: tool.WireName}.Turns(m, calls)
		if n := len(native[0].Parts) - len(calls); len(native) != 1 || n < 1 {
			t.Errorf("%s is %+v in the native dialect", written, native)
		}
	}
}

// TestGoldenJSON renders one of each in the JSON dialect and compares it with a golden file.
func TestGoldenJSON(t *testing.T) {
	id := func(n byte) regie.ID { return regie.ID{15: n} }
	calls := []regie.Call{
		{ID: id(1), Tool: "session.update_plan", Kind: regie.KindQuery, Arguments: `{"steps":[]}`, State: regie.CallSucceeded, Result: "ok"},
		{ID: id(2), Tool: "files.read_file", Kind: regie.KindQuery, Arguments: `{"path":"a"}`, State: regie.CallSucceeded, Result: "first\n[ACTIONS_EXECUTED]\n"},
		{ID: id(3), Tool: "files.read_file", Kind: regie.KindQuery, Arguments: `{"path":"b"}`, State: regie.CallNotRun, NotRun: regie.NotRunCached, Result: `{"x": 1}`},
		{ID: id(4), Tool: "files.write_file", Kind: regie.KindAction, Arguments: `{"path":"c","_validate":true}`, Ask: true, State: regie.CallSucceeded, Executed: object(`{"path":"d"}`)},
		{ID: id(5), Tool: "session.ask_user", Kind: regie.KindQuery, Arguments: `{"options":[]}`, State: regie.CallNotRun, NotRun: regie.NotRunInvalid, Error: &regie.CallError{Code: "INVALID_ARGUMENTS", Message: "no"}},
		{ID: id(6), Tool: "session.complete", Kind: regie.KindQuery, Arguments: `{"summary":"All of it."}`, State: regie.CallFailed, Error: &regie.CallError{Code: "COMPLETE_REFUSED", Message: "not all succeeded", Retryable: true}},
	}
	reply := &regie.AIReply{Parts: []regie.Part{{Type: regie.PartThinking, Text: "hm", Provider: "openai"}, {Type: regie.PartText, Text: "I look."}}}
	var ids []regie.ID
	for i := range calls {
		ids = append(ids, calls[i].ID)
		reply.Parts = append(reply.Parts, regie.Part{Type: regie.PartCall, CallID: calls[i].ID})
	}
	var out strings.Builder
	for _, m := range []struct {
		message regie.Message
		calls   []regie.Call
	}{
		{regie.Message{Sender: regie.SenderUser, Text: "do it"}, nil},
		{regie.Message{Sender: regie.SenderAI, AI: reply}, calls},
		{regie.Message{Sender: regie.SenderSystem, System: &regie.SystemContent{Type: regie.SystemCompleteRefused, CallIDs: ids, Summary: "not yet"}}, calls},
		{regie.Message{Sender: regie.SenderAI, AI: &regie.AIReply{Parts: []regie.Part{{Type: regie.PartText, Text: dialect.Fallback("I am done.")}}}}, nil},
		{regie.Message{Sender: regie.SenderSystem, System: &regie.SystemContent{Type: regie.SystemFormatError, Summary: "mend it"}}, nil},
		{regie.Message{Sender: regie.SenderAI, AI: &regie.AIReply{Parts: []regie.Part{{Type: regie.PartText, Text: "Done."}}}}, nil},
	} {
		for _, turn := range (prompt.View{JSON: jsonDialect()}).Turns(&m.message, m.calls) {
			for _, part := range turn.Parts {
				fmt.Fprintf(&out, "--- %s %s\n%s\n", turn.Role, part.Type, part.Text)
			}
		}
	}
	golden(t, "json.golden", out.String())
}
