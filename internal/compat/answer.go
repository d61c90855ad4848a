package compat

import (
	"maps"
	"net/http"
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
	format  format

	said  strings.Builder // all of the text
	out   *eventStream    // nil: the answer is given whole
	begun bool            // something of the answer was sent
	open  bool            // the text of the answer is
}

// format writes an answer in one API's form: whole, or as a stream that starts with beginStream and
// ends with endStream or streamError.
type format interface {
	encodeWhole(o *outcome) any
	beginStream()
	streamText(piece string)
	endStream(o *outcome)
	streamError(why *wireError)
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
			sent, err = s.submitRequest(r, request)
		}
		if err != nil {
			if !sent.SessionID.IsZero() { // the engine may have stored the message before it went
				w.Header().Set(HeaderSession, sent.SessionID.String())
			}
			s.writeError(w, r, err)
			return
		}
		setHeaders(w, request, &sent)
		a := &answer{
			agentRequest: request, server: s, r: r, sent: sent, round: sent.RoundID, created: time.Now().Unix(),
		}
		a.format = write(a)
		if a.stream {
			a.out = newEventStream(w, s.KeepAlive, api)
			defer a.out.closeStream()
		}
		result, err := a.followRound(r.Context())
		a.finishAnswer(w, &result, err)
	}
}

// beginStream sends the beginning of a stream, once.
func (a *answer) beginStream() {
	if !a.begun {
		a.begun = true
		a.format.beginStream()
	}
}

// addText adds a piece to the text.
func (a *answer) addText(piece string) {
	a.said.WriteString(piece)
	if a.out != nil {
		a.beginStream()
		a.format.streamText(piece)
		a.open = true
	}
}

// finishAnswer gives the whole answer, or ends its stream.
func (a *answer) finishAnswer(w http.ResponseWriter, result *outcome, err error) {
	switch {
	case err != nil && (a.out == nil || !a.out.hasStarted()):
		a.server.writeError(w, a.r, err)
	case err != nil:
		why := a.server.wireErrorOf(a.r, err)
		a.format.streamError(&why)
	case a.out == nil:
		writeJSON(w, a.format.encodeWhole(result))
	default:
		if !a.open && len(result.calls) == 0 { // an answer that says nothing has a text all the same
			a.addText("")
		}
		a.beginStream()
		a.format.endStream(result)
	}
}

// readRequest reads a request to an agent, with the session that it names. done says that the
// request is answered already, by a provider.
func (s *server) readRequest(w http.ResponseWriter, r *http.Request, api string,
	parse func([]byte) (*agentRequest, error),
) (a *agentRequest, done bool, err error) {
	data, err := httpread.Body(w, r, httpread.MaxBody)
	if err != nil {
		return nil, false, err
	}
	if h, wrong := readHead(data, s.isProxied); s.isProxied(h.model) {
		s.serveProxy(w, r, api, &h, wrong, data)
		return nil, true, nil
	}
	if a, err = parse(data); err == nil {
		err = a.takeSession(r)
	}
	return a, false, err
}

// setHeaders names the session of the answer, and the request's parameters without effect.
func setHeaders(w http.ResponseWriter, a *agentRequest, sent *submitted) {
	w.Header().Set(HeaderSession, sent.SessionID.String())
	if sent.keyed && sent.Duplicate {
		w.Header().Set("Idempotent-Replayed", "true")
	}
	if len(a.ignored) > 0 {
		w.Header().Set(headerIgnored, strings.Join(a.ignored, ", "))
	}
}

// withSession returns the request's metadata with the session.
func (a *answer) withSession() map[string]string {
	out := map[string]string{}
	maps.Copy(out, a.metadata)
	out["session_id"] = a.sent.SessionID.String()
	return out
}
