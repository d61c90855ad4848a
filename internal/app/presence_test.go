package app_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/regie-run/regie"
	"github.com/regie-run/regie/internal/control"
	"github.com/regie-run/regie/internal/dispatch"
	"github.com/regie-run/regie/internal/httpapi"
	"github.com/regie-run/regie/internal/store"
)

// there is who is there by the server's word: one person, or nobody.
func (h *house) there(mode store.Mode) (out dispatch.Presence) {
	h.t.Helper()
	var page httpapi.Page[dispatch.Presence]
	h.json("GET", "/api/v1/presence", "", 200, &page)
	if len(page.Items) > 0 {
		out = page.Items[0]
	}
	if mode == store.ModeUI && (len(page.Items) != 1 || out.Mode != mode || out.User == "" || out.Since.IsZero()) || mode != store.ModeUI && out.Mode == store.ModeUI {
		h.t.Errorf("who is there: %+v; it should be %s", page.Items, mode)
	}
	return out
}

func (h *house) view(session string) (out store.SessionView) {
	h.t.Helper()
	h.json("GET", "/api/v1/sessions/"+session, "", 200, &out)
	return out
}

// works says something and returns the session once its round has ended.
func (h *house) works(session string) store.SessionView {
	h.t.Helper()
	var sent httpapi.Accepted
	h.json("POST", "/api/v1/sessions/"+session+"/messages", `{"content":"work"}`, 202, &sent)
	fatal(h.t, h.engine.Wait(h.t.Context(), sent.RoundID))
	return h.view(session)
}

// TestModes runs a session with nobody there, and with somebody: in BACKEND mode no delta is handed
// to anybody, and the answer is unread until it is seen; in UI mode the deltas come (spec 5.4,
// decisions 28, 39 and 45). What a program follows is nobody's being there.
func TestModes(t *testing.T) {
	t.Parallel()
	h := newHarness(t, newModel(t, replyWith("Nobody is there."), replyWith("Now you are."))).serve("127.0.0.1:0")
	session := h.session()
	h.there(store.ModeBackend)
	view := h.works(session)
	if view.Mode != store.ModeBackend || view.Unread != 1 || !view.Finished {
		t.Errorf("in BACKEND mode: mode %s, %d unread, finished while away %v", view.Mode, view.Unread, view.Finished)
	}
	if n := h.handed(); n != 0 {
		t.Errorf("%v deltas were handed out with nobody there", n)
	}
	h.json("PUT", "/api/v1/sessions/"+session+"/read", fmt.Sprintf(`{"read_seq":%d}`, view.Head), 200, nil)
	if view = h.view(session); view.Unread != 0 || view.Finished {
		t.Errorf("once it was seen: %d unread, finished %v", view.Unread, view.Finished)
	}
	h.json("POST", "/v1/chat/completions", `{"model":"main","messages":[{"role":"user","content":"hello"}]}`, 200, nil)
	h.there(store.ModeBackend)

	following := h.ask("GET", fmt.Sprintf("/api/v1/sessions/%s/events?after=%d", session, view.Head-1), "")
	defer following.Body.Close()
	if first := frames(t, following.Body, func(string) bool { return true }); following.StatusCode != http.StatusOK || len(first) != 1 {
		t.Fatal(following.Status)
	}
	if one := h.there(store.ModeUI); one.Streams != 1 {
		t.Errorf("%d streams are open", one.Streams)
	}
	before := h.handed()
	if view = h.works(session); view.Mode != store.ModeUI || view.Unread != 1 {
		t.Errorf("in UI mode: mode %s, %d unread: delivery is not reading", view.Mode, view.Unread)
	}
	var said strings.Builder
	frames(t, following.Body, func(frame string) bool {
		if _, data, is := strings.Cut(frame, "event: stream_chunk\ndata: "); is {
			var d dispatch.Delta
			fatal(t, json.Unmarshal([]byte(data), &d))
			said.WriteString(d.Content)
		}
		return strings.Contains(frame, string(regie.EndAnswered))
	})
	if said.String() != "Now you are." || h.handed() <= before {
		t.Errorf("who follows heard %q in deltas; %v were handed out", said.String(), h.handed()-before)
	}
}

// TestPresenceOfPrograms: a program that only looks is nobody, whatever it says or follows; one
// that speaks for a person says so in so many words.
func TestPresenceOfPrograms(t *testing.T) {
	t.Parallel()
	h := newHarness(t, newModel(t)).serve("127.0.0.1:0")
	reader := bearer(h.add(control.TokenRequest{Name: "reader", Scopes: []regie.TokenScope{regie.ScopeRead}}).Secret)
	chats := bearer(h.add(control.TokenRequest{Name: "chats", Scopes: []regie.TokenScope{regie.ScopeRead, regie.ScopeChat}}).Secret)
	h.json("POST", "/api/v1/presence", "", 403, nil, reader)
	for _, path := range []string{"/api/v1/events", "/api/v1/sessions/" + h.session() + "/events"} {
		following := h.ask("GET", path, "", chats) //nolint:bodyclose // at the end of the test
		if following.StatusCode != http.StatusOK {
			t.Fatalf("%s: %s", path, following.Status)
		}
		h.ask("GET", path, "", reader)                                      //nolint:bodyclose // as above
		h.ask("GET", path, "", carrying(dispatch.UnattendedHeader, "true")) //nolint:bodyclose // as above
		h.there(store.ModeBackend)
	}
	h.json("POST", "/api/v1/presence", "", 200, nil, chats)
	if one := h.there(store.ModeUI); one.Streams != 0 {
		t.Errorf("%d streams count", one.Streams)
	}
}
