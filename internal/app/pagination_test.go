package app_test

import (
	"fmt"
	"net/http"
	"slices"
	"sync/atomic"
	"testing"

	"github.com/regie-run/regie"
	"github.com/regie-run/regie/client"
	"github.com/regie-run/regie/internal/httpapi"
	"github.com/regie-run/regie/internal/store"
)

// turned reads a list page by page, each of at most two things, and returns their ids in the order
// in which they came.
func turned[P any](h *house, path string, take func(*P) (ids []regie.ID, next string), changes ...func(*http.Request)) (out []regie.ID) {
	h.t.Helper()
	next := ""
	for again := true; again; again = next != "" {
		var page P
		h.json("GET", path+"limit=2&cursor="+next, "", 200, &page, changes...)
		ids, behind := take(&page)
		if len(ids) > 2 || behind != "" && len(ids) < 2 {
			h.t.Errorf("a page of %s has %d things, and more behind it: %t", path, len(ids), behind != "")
		}
		out, next = append(out, ids...), behind
	}
	return out
}

// ids are those of a page's things.
func ids[T any](items []T, id func(*T) regie.ID) (out []regie.ID) {
	for i := range items {
		out = append(out, id(&items[i]))
	}
	return out
}

func (h *house) client() *client.Client {
	h.t.Helper()
	c, err := client.New(h.served.URL, h.token, "en")
	fatal(h.t, err)
	h.t.Cleanup(c.Close)
	return c
}

// TestInboxAsOneList: approvals and questions come page by page as one list, and the client reads
// all of it, or as much of it as is wanted.
func TestInboxAsOneList(t *testing.T) {
	t.Parallel()
	ask := call{"q", "session__ask_user", `{"question":"Which?","options":["a","b"]}`}
	var asked atomic.Int32
	turns := []http.HandlerFunc{replyWith("", write("w", "x.txt", "x\n")), replyWith("", ask)}
	next := func(w http.ResponseWriter, r *http.Request) { turns[(asked.Add(1)-1)%2](w, r) }
	h := newHarness(t, newModel(t, next, replyWith("Done."))).serve("127.0.0.1:0")
	var want []regie.ID
	var sessions []string
	for i := range 6 {
		session := h.session()
		sessions = append(sessions, session)
		id, _ := regie.ParseID(session)
		// the same again would be answered from the cache
		h.json("POST", "/api/v1/sessions/"+session+"/messages", fmt.Sprintf(`{"content":"go %d"}`, i), 202, nil)
		waits := h.parked(h.engine.Control(), id)
		want = append(want, inboxIDs(&waits)...)
	}
	got := turned(h, "/api/v1/inbox?", func(p *httpapi.InboxPage) ([]regie.ID, string) {
		return inboxIDs(&store.Inbox{Approvals: p.Approvals, Questions: p.Questions}), p.Next
	})
	if !slices.Equal(got, want) || len(want) != 6 {
		t.Errorf("the inbox has %v, want %v", got, want)
	}
	h.json("POST", "/api/v1/sessions/"+sessions[0]+"/stop", "", 200, nil) // which withdraws the first
	approvals := turned(h, "/api/v1/approvals?state=all&", func(p *httpapi.Page[regie.Approval]) ([]regie.ID, string) {
		return ids(p.Items, func(a *regie.Approval) regie.ID { return a.ID }), p.Next
	})
	if !slices.Equal(approvals, []regie.ID{want[0], want[2], want[4]}) {
		t.Errorf("the approvals are %v", approvals)
	}
	c := h.client()
	h.json("POST", "/api/v1/questions/"+want[1].String(), `{"reply":{"choices":["a"]}}`, 200, nil)
	all, err := c.Inbox(t.Context(), store.InboxFilter{Closed: true})
	if err != nil || len(all.Approvals) != 3 || len(all.Questions) != 3 {
		t.Errorf("all of it: %+v, %v", all, err)
	}
	open, err := c.Inbox(t.Context(), store.InboxFilter{Limit: 1, Brief: true, After: store.Mark{At: all.Approvals[0].CreatedAt, ID: all.Approvals[0].ID}})
	if err != nil || len(open.Approvals) != 1 || len(open.Questions) != 1 || open.Approvals[0].ID != want[2] || open.Questions[0].ID != want[3] {
		t.Errorf("one of each, behind the first: %+v, %v", open, err)
	}
}

func inboxIDs(inbox *store.Inbox) []regie.ID {
	return append(ids(inbox.Approvals, func(a *regie.Approval) regie.ID { return a.ID }), ids(inbox.Questions, func(q *regie.Question) regie.ID { return q.ID })...)
}

// TestPages reads lists part by part: nothing is missing and nothing stands there twice.
func TestPages(t *testing.T) {
	t.Parallel()
	h := newHarness(t, newModel(t, replyWith("Done."))).serve("127.0.0.1:0")
	var sessions []regie.ID
	for range 5 {
		sessions = append(sessions, h.works(h.session()).ID)
	}
	slices.Reverse(sessions)
	got := turned(h, "/api/v1/sessions?", func(p *httpapi.Page[store.SessionSummary]) ([]regie.ID, string) {
		return ids(p.Items, func(s *store.SessionSummary) regie.ID { return s.ID }), p.Next
	})
	if !slices.Equal(got, sessions) {
		t.Errorf("the sessions are %v, want %v", got, sessions)
	}
	for path, want := range map[string][]regie.ID{"/api/v1/rounds?": sessions, "/api/v1/sessions/" + sessions[0].String() + "/rounds?": sessions[:1]} {
		got := turned(h, path, func(p *httpapi.Page[store.RoundSummary]) ([]regie.ID, string) {
			return ids(p.Items, func(r *store.RoundSummary) regie.ID { return r.Session.ID }), p.Next
		})
		if !slices.Equal(got, want) {
			t.Errorf("%s has the rounds of %v, want %v", path, got, want)
		}
	}
}

// TestPageParameters: what is no place in a list and no length of a page is refused.
func TestPageParameters(t *testing.T) {
	t.Parallel()
	h := newHarness(t, newModel(t)).serve("127.0.0.1:0")
	for _, path := range []string{"/api/v1/tokens", "/api/v1/rules", "/api/v1/inbox"} {
		for _, wrong := range []string{"?cursor=x", "?limit=0", "?limit=1001", "?limit=2&limit=3"} {
			h.json("GET", path+wrong, "", 400, nil)
		}
	}
}
