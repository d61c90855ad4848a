package sim

import (
	"fmt"
	"strings"
	"time"

	"github.com/regie-run/regie"
)

// reply is what the hostile model does with one request (spec 12.4): it says its parts, unless Do
// is something else.
type reply struct {
	Do     string        `json:"do,omitempty"`
	Parts  []part        `json:"parts,omitempty"`
	Status int           `json:"status,omitempty"` // of doStatus
	Body   string        `json:"body,omitempty"`   // of doStatus, doRaw
	Header string        `json:"header,omitempty"`
	Wire   wire          `json:"wire,omitzero"`
	Object object        `json:"object,omitzero"` // of the JSON dialect
	Pause  time.Duration `json:"pause,omitempty"` // before each event
	Cut    int           `json:"cut,omitempty"`   // ends the connection in place of the n-th event, from 1
	Silent int           `json:"silent,omitempty"`
	// in place of the n-th event, and of all behind it, a comment now and then, without an end
	Drip   int    `json:"drip,omitempty"`
	Usage  string `json:"usage,omitempty"` // in place of an honest one
	Finish string `json:"finish,omitempty"`
}

// What a model does beside talking.
const (
	doStatus  = "status"  // an HTTP status
	doOffline = "offline" // nobody listens
	doReset   = "reset"   // the connection ends before an answer
	doRaw     = "raw"     // sends Body as the stream
	doObey    = "obey"    // does what the last result or message told it to do
)

// wire is how a vendor's bridge writes a stream.
type wire struct {
	CRLF     bool `json:"crlf,omitempty"`
	Comments bool `json:"comments,omitempty"`
	Index0   bool `json:"index_0,omitempty"` // numbers all calls 0
	Split    int  `json:"split,omitempty"`   // cuts arguments into pieces of this size
	Object   bool `json:"object,omitempty"`  // arguments as an object, not as text
	NoDone   bool `json:"no_done,omitempty"`
	NoEnd    bool `json:"no_end,omitempty"` // no finish reason
	Error    bool `json:"error,omitempty"`  // an error event in place of the end
}

// part is a piece of a reply. Times repeats it.
type part struct {
	Text  string `json:"text,omitempty"`
	Think string `json:"think,omitempty"`
	Tool  string `json:"tool,omitempty"` // the wire name of a call
	ID    string `json:"id,omitempty"`
	Args  string `json:"args,omitempty"`
	Times int    `json:"times,omitempty"`
}

// replies makes what the model says: a mixture of honest work and of one or two ways to be hostile.
func (m *maker) replies(long bool) {
	if long && m.one(2000) { // too large for the short run
		m.plan.Replies = []reply{{Parts: []part{{Text: strings.Repeat("x", 1000), Times: 100_000}}}}
		return
	}
	for range 1 + m.IntN(6) {
		switch m.IntN(13) {
		case 12: // no person should read it
			unfit := reply{Parts: []part{{Text: "I'm sorry, see 0193d7c0-5f5e-7c3a-9a53-0a4f0e9b1c2d."}}}
			m.add(m.honest(), unfit, unfit, unfit)
		case 0, 1, 2, 3:
			m.add(m.honest())
		case 4, 5, 6:
			m.add(m.broken(m.honest()))
		case 7:
			m.add(m.refusal())
		case 8:
			m.loop()
		case 9, 10:
			m.add(m.odd())
		default:
			m.add(m.honest(), reply{Do: doObey})
		}
	}
}

func (m *maker) add(replies ...reply) {
	for _, r := range replies {
		if m.one(3) {
			r.Wire = wire{CRLF: m.one(4), Comments: m.one(3), Index0: m.one(6), Split: m.IntN(7), Object: m.one(8)}
		}
		if m.one(2) {
			r.Pause = m.moment(400 * time.Millisecond)
		}
		if m.one(10) {
			r.Usage = pick(m, `null`, `{"prompt_tokens":-5,"completion_tokens":-1}`, `{"prompt_tokens":9223372036854775807,"completion_tokens":9}`, `{}`,
				`{"prompt_tokens":0.5}`, `"much"`, `{"prompt_tokens":10,"completion_tokens":5,"prompt_tokens_details":{"cached_tokens":-4}}`)
		}
		if m.plan.Dialect == regie.DialectJSON {
			r.Object = m.object()
		}
		if m.one(8) {
			r.Finish = pick(m, "stop", "length", "content_filter", "tool_calls", "whatever", "\u202e")
		}
		m.plan.Replies = append(m.plan.Replies, r)
	}
}

// ledgers are the tools of the ledger.
var ledgers = []string{"ledger__once", "ledger__keyed", "ledger__verifiable", "ledger__read", "ledger__slow_read", "ledger__poll"}

func (m *maker) id() string {
	m.names++
	return fmt.Sprintf("c%d", m.names)
}

func (m *maker) effect() part {
	args := fmt.Sprintf(`{"name":%q}`, m.name())
	if m.one(8) {
		args = strings.TrimSuffix(args, "}") + `,"_validate":true}`
	}
	return part{Tool: pick(m, ledgers...), ID: m.id(), Args: args}
}

// honest is a reply of a model that works: some calls, queries and actions together, perhaps a
// question.
func (m *maker) honest() reply {
	var r reply
	if m.one(2) {
		r.Parts = append(r.Parts, part{Text: "I look into it."})
	}
	if m.one(6) {
		r.Parts = append(r.Parts, part{Think: "Let me think."})
	}
	for range 1 + m.IntN(4) {
		switch m.IntN(10) {
		case 0:
			path := pick(m, "a.txt", "b/c.txt", "notes.md")
			r.Parts = append(r.Parts, part{Tool: "files__write_file", ID: m.id(), Args: fmt.Sprintf(`{"path":%q,"content":"line %d\n","mode":%q}`, path, m.IntN(9), pick(m, "append", "overwrite"))})
		case 1:
			r.Parts = append(r.Parts, m.question())
		case 3:
			r.Parts = append(r.Parts, m.file())
		case 2:
			r.Parts = append(r.Parts, part{Tool: pick(m, "files__read_file", "files__list_files"), ID: m.id(), Args: pick(m, `{"path":"a.txt"}`, `{"path":"."}`, `{"path":".env"}`)})
		default:
			r.Parts = append(r.Parts, m.effect())
		}
	}
	return r
}

// file is a call of one of the other tools for files, on what the writes leave.
func (m *maker) file() part {
	path := pick(m, "a.txt", "b/c.txt", "notes.md", ".env")
	switch m.IntN(4) {
	case 0:
		return part{Tool: "files__edit_file", ID: m.id(), Args: fmt.Sprintf(`{"path":%q,"edits":[{"old":"line %d","new":"edited","all":true}]}`, path, m.IntN(9))}
	case 1:
		return part{Tool: "files__delete_file", ID: m.id(), Args: fmt.Sprintf(`{"path":%q}`, path)}
	default:
		return part{Tool: "files__search_text", ID: m.id(), Args: fmt.Sprintf(`{"query":%q}`, pick(m, "line", "canary", "SECRET", "no such text"))}
	}
}

func (m *maker) question() part {
	m.names++
	return part{Tool: "session__ask_user", ID: m.id(), Args: pick(m,
		fmt.Sprintf(`{"question":"Which, %d?","options":["this","that"],"allow_free_text":%v}`, m.names, m.one(2)),
		fmt.Sprintf(`{"question":"Sure, %d?"}`, m.names),
		fmt.Sprintf(`{"question":"All of %d?","options":["x","y","z"],"allow_multiple":true}`, m.names))}
}

// broken spoils a reply on its way: cut after an event, silent, without its end, with an error in
// it.
func (m *maker) broken(r reply) reply {
	switch m.IntN(6) {
	case 0, 1:
		r.Cut = 1 + m.IntN(8)
	case 2:
		r.Silent = 1 + m.IntN(6)
	case 3:
		r.Wire.NoDone = true
	case 4:
		r.Wire.NoEnd, r.Wire.NoDone = true, m.one(2)
	default:
		r.Wire.Error = true
	}
	return r
}

// canary stands for what must not be known: it is the model's key, and the content of a file that
// may not be read.
const canary = "canary-8f3a91c6d2"

// refusal is a server that does not answer as a model.
func (m *maker) refusal() reply {
	switch m.IntN(8) {
	case 0:
		for range m.IntN(14) {
			m.add(reply{Do: doOffline})
		}
		return reply{Do: doOffline}
	case 1:
		return reply{Do: doReset}
	case 2:
		return reply{Do: doStatus, Status: 401, Body: `{"error":{"message":"Incorrect API key provided: ` + canary + `","type":"invalid_request_error"}}`}
	case 3:
		return reply{Do: doStatus, Status: 429, Header: "Retry-After: " + pick(m, "0", "3", "70", "-1", "soon"), Body: pick(m, `{"error":{"message":"slow down"}}`,
			`{"error":{"message":"no credit","code":"insufficient_quota"}}`, ``)}
	case 4:
		return reply{Do: doStatus, Status: pick(m, 500, 502, 503, 529, 408), Body: pick(m, "<html>\x1b[31mBad gateway</html>", `{"error":"overloaded"}`, "\ue0ff\ue0fe\x00")}
	case 5:
		return reply{Do: doStatus, Status: pick(m, 400, 403, 404, 302, 413), Body: pick(m, `{"error":{"message":"This model's maximum context length is 4097 tokens.","code":"context_length_exceeded"}}`,
			`{"error":{"message":"no","code":"tool_use_failed"}}`, `{"detail":["no"]}`, `{"message":"no"}`)}
	case 6:
		return reply{Do: doStatus, Status: 200, Header: "Content-Type: text/html", Body: "<html>hello</html>"}
	default:
		return reply{Do: doRaw, Body: pick(m, "", "data: \n\n", "data: {not json}\n\n", "hello", "data: [DONE]\n\n", ": only a comment\n\n", "data: {\"choices\":[]}\n\ndata: [DONE]\n\n",
			"data: {\"choices\":[{\"delta\":{\"tool_calls\":[{\"function\":{\"arguments\":\"{\"}}]}}]}\n\ndata: [DONE]\n\n", "data: \x00\ue0ff\n\n", "event: error\ndata: {\"error\":{\"message\":\"overloaded\"}}\n\n")}
	}
}

// loop is a model that goes in circles: the same again and again, or two in turn, under the same
// ids or new ones.
func (m *maker) loop() {
	a, b := m.honest(), m.honest()
	fresh, alternate := m.one(2), m.one(2)
	for i := range 4 + m.IntN(30) {
		r := a
		if alternate && i%2 == 1 {
			r = b
		}
		r.Parts = append([]part(nil), r.Parts...)
		for k := range r.Parts {
			if fresh && r.Parts[k].Tool != "" {
				r.Parts[k].ID = m.id()
			}
		}
		m.plan.Replies = append(m.plan.Replies, r)
	}
}

// odd is a reply that is whole and that no honest model would make.
func (m *maker) odd() reply {
	r := m.honest()
	switch m.IntN(11) {
	case 0: // one id for all, also from earlier
		id := pick(m, "", "c1", "call_1", strings.Repeat("long", 30), "ü\x00\u202e")
		for i := range r.Parts {
			r.Parts[i].ID = id
		}
	case 1: // the very same call twice, and once more under another id
		e := m.effect()
		r.Parts = append(r.Parts, e, e, part{Tool: e.Tool, ID: m.id(), Args: e.Args})
	case 2:
		r.Parts = append(r.Parts, part{Tool: pick(m, "shell__rm", "ledger__Once", "", "files__write_fiel", "a b\x00", strings.Repeat("x", 300)), ID: m.id(), Args: `{"name":"x"}`})
	case 3: // arguments of the wrong type or form
		for _, args := range []string{`{"name":7}`, `{"name":null}`, `{"name":["x"]}`, `{}`, `{"name":"x","name":"y"}`, `{"Name":"x"}`, `{"name":"x","more":{"a":[1,{"b":null}]}}`, `{"name":"\ud800"}`, `[1]`, `"x"`, `{"name":`, `nonsense`} {
			if m.one(4) {
				r.Parts = append(r.Parts, part{Tool: pick(m, ledgers...), ID: m.id(), Args: args})
			}
		}
	case 4: // done, while calls of the same reply are not
		done := part{Tool: "session__complete", ID: m.id(), Args: `{"summary":"All of it."}`}
		r.Parts = append(r.Parts, done, m.effect())
		if m.one(3) {
			r.Parts = []part{{Text: "Done."}, done}
		}
	case 5: // too many
		e := m.effect()
		e.Times, e.ID = pick(m, 11, 40, 130, 300), ""
		if m.one(60) {
			e.Times = 10_000 + m.IntN(3)
		}
		r.Parts = append(r.Parts, e)
	case 6: // text that is none, or much of it
		r.Parts = append(r.Parts, part{Text: pick(m, "NUL \x00.", "\ue0ff\ue0fe\ue0fd", "\u202e\u2066evil\u2069", " \n\t", "```json\n{\"data_commands\":[]}\n```", strings.Repeat("\u200b", 50)), Times: 1 + m.IntN(3)})
		if m.one(10) {
			r.Parts = append(r.Parts, part{Text: strings.Repeat("much ", 1000), Times: 1 + m.IntN(60)})
		}
	case 7:
		return reply{Parts: pick(m, nil, []part{{Text: ""}}, []part{{Text: "  \n"}}, []part{{Think: "only thinking"}})}
	case 8:
		r.Parts = append(r.Parts, part{Tool: "session__update_plan", ID: m.id(), Args: pick(m, `{"steps":[{"text":"look","status":"done"}]}`, `{"steps":[]}`, `{"plan":"x"}`, `{"steps":"x"}`)})
	case 9:
		r.Parts = append(r.Parts, part{Tool: "session__ask_user", ID: m.id(), Args: pick(m, `{"question":""}`, `{"question":"x","options":["one"]}`, `{"question":"\u202ex"}`, `{"question":"x","options":["a","A "]}`, `{"module":"Unknown"}`)})
	default:
		return reply{Parts: []part{{Text: "All of it is done."}}}
	}
	return r
}
