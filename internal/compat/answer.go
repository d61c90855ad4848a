package compat

import (
	"maps"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/regie-run/regie"
	"github.com/regie-run/regie/internal/httpread"
)

// answer is an agent's answer to a request, whichever of the formats it is written in.
type answer struct {
	*agentRequest
	server  *server
	r       *http.Request
	sent    submitted
	round   regie.ID // that answers
	created int64

	out   *eventStream
	begun bool // something of the answer was sent
	open  bool // the text of the answer is
}

// format writes an answer in one API's form: whole, or as the events of a stream, of which begin
// comes first, and end or fail last.
type format interface {
	whole(o *outcome) any
	begin()
	text(piece string)
	end(o *outcome)
	fail(why *wireError)
}

// serveAgent serves the requests of an API: it passes them on to a provider, or has an agent answer
// them.
func (s *server) serveAgent(api string, parse func([]byte) (*agentRequest, error),
	write func(*answer) format,
) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		request, done, err := s.readRequest(w, r, api, parse)
		if done {
			return
		}
		if err == nil {
			err = s.resolveReferences(r.Context(), request)
		}
		var sent submitted
		if err == nil {
			sent, err = s.submit(r, request)
		}
		if err != nil {
			if !sent.SessionID.IsZero() { // the engine may have stored the message before it went
				w.Header().Set(HeaderSession, sent.SessionID.String())
			}
			s.fail(w, r, err)
			return
		}
		setHeaders(w, request, &sent)
		a := &answer{
			agentRequest: request, server: s, r: r, sent: sent, round: sent.RoundID, created: time.Now().Unix(),
		}
		f := write(a)
		hear := listener{text: func(string) {}, begun: func(round regie.ID) { a.round = round }}
		if !a.stream {
			result, err := s.follow(r.Context(), &sent, hear)
			if err != nil {
				s.fail(w, r, err)
				return
			}
			writeJSON(w, f.whole(&result))
			return
		}
		a.streamed(w, api, f, hear)
	}
}

// streamed follows the round and sends it as events.
func (a *answer) streamed(w http.ResponseWriter, api string, f format, hear listener) {
	a.out = newEventStream(w, a.server.KeepAlive, api)
	defer a.out.close()
	begin := func() {
		if !a.begun {
			a.begun = true
			f.begin()
		}
	}
	hear.text = func(piece string) {
		begin()
		f.text(piece)
		a.open = true
	}
	result, err := a.server.follow(a.r.Context(), &a.sent, hear)
	switch {
	case err == nil:
		if !a.open && len(result.calls) == 0 { // an answer that says nothing has a text all the same
			hear.text("")
		}
		begin()
		f.end(&result)
	case !a.out.started():
		a.server.fail(w, a.r, err)
	default:
		why := a.server.wireErrorOf(a.r, err)
		f.fail(&why)
	}
}

// readRequest reads a request to an agent, with the session that it names. It passes on what a
// provider answers, and reports then that nothing is left to do.
func (s *server) readRequest(w http.ResponseWriter, r *http.Request, api string,
	parse func([]byte) (*agentRequest, error),
) (a *agentRequest, done bool, err error) {
	data, err := httpread.Body(w, r, httpread.MaxBody)
	if err != nil {
		return nil, false, err
	}
	if h, wrong := readHead(data, s.proxies); s.proxies(h.model) {
		s.proxy(w, r, api, &h, wrong, data)
		return nil, true, nil
	}
	if a, err = parse(data); err == nil {
		err = a.takeSession(r)
	}
	return a, false, err
}

// setHeaders says where the answer stands, and what of the request has no effect.
func setHeaders(w http.ResponseWriter, a *agentRequest, sent *submitted) {
	w.Header().Set(HeaderSession, sent.SessionID.String())
	if sent.keyed && sent.Duplicate {
		w.Header().Set("Idempotent-Replayed", "true")
	}
	if ignored := slices.Concat(a.ignored, sent.ignored); len(ignored) > 0 {
		w.Header().Set(headerIgnored, strings.Join(ignored, ", "))
	}
}

// withSession returns the request's metadata with the session.
func (a *answer) withSession() map[string]string {
	out := map[string]string{}
	maps.Copy(out, a.metadata)
	out["session_id"] = a.sent.SessionID.String()
	return out
}
