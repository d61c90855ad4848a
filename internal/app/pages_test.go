package app_test

import (
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/regie-run/regie"
	"github.com/regie-run/regie/client"
	"github.com/regie-run/regie/internal/access"
	"github.com/regie-run/regie/internal/control"
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

func (h *house) client() *client.Client {
	h.t.Helper()
	c, err := client.New(h.served.URL, h.token, "en")
	if err != nil {
		h.t.Fatal(err)
	}
	h.t.Cleanup(c.Close)
	return c
}

// TestInboxAsOneList: approvals and questions come page by page as one list, and the client reads
// all of it, or as much of it as is wanted.
func TestInboxAsOneList(t *testing.T) {
	t.Parallel()
	ask := call{"q", "session__ask_user", `{"question":"Which?","options":["a","b"]}`}
	var asked atomic.Int32
	turns := []http.HandlerFunc{says("", write("w", "x.txt", "x\n")), says("", ask)}
	next := func(w http.ResponseWriter, r *http.Request) { turns[(asked.Add(1)-1)%2](w, r) }
	h := newBed(t, newModel(t, next, says("Done."))).serve("127.0.0.1:0")
	var want []regie.ID
	for i := range 6 {
		session := h.session()
		id, _ := regie.ParseID(session)
		// the same again would be answered from the cache
		h.json("POST", "/api/v1/sessions/"+session+"/messages", fmt.Sprintf(`{"content":"go %d"}`, i), 202, nil)
		waits := h.parked(h.engine.Control(), id)
		for i := range waits.Approvals {
			want = append(want, waits.Approvals[i].ID)
		}
		for i := range waits.Questions {
			want = append(want, waits.Questions[i].ID)
		}
	}
	got := turned(h, "/api/v1/inbox?", func(p *httpapi.InboxPage) (ids []regie.ID, next string) {
		for i := range p.Approvals {
			ids = append(ids, p.Approvals[i].ID)
		}
		for i := range p.Questions {
			ids = append(ids, p.Questions[i].ID)
		}
		return ids, p.Next
	})
	if !slices.Equal(got, want) || len(want) != 6 {
		t.Errorf("the inbox has %v, want %v", got, want)
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

// TestRulePages: rules that one answer made have one time, and come page by page all the same; what
// verifying their log found comes with the first page.
func TestRulePages(t *testing.T) {
	t.Parallel()
	var calls []call
	for i := range 5 {
		calls = append(calls, write(fmt.Sprint("w", i), fmt.Sprintf("d%d/x.txt", i), "x\n"))
	}
	h := newBed(t, newModel(t, says("", calls...), says("Done."))).serve("127.0.0.1:0")
	session := h.session()
	id, _ := regie.ParseID(session)
	h.json("POST", "/api/v1/sessions/"+session+"/messages", `{"content":"go"}`, 202, nil)
	asked := h.parked(h.engine.Control(), id).Approvals[0]
	var decisions []regie.Decision
	for i := range asked.Reviews {
		scopes := asked.Reviews[i].Preview.Scopes
		under := slices.IndexFunc(scopes, func(s regie.Scope) bool { return s.Kind == regie.ScopeUnder })
		decisions = append(decisions, regie.Decision{CallID: asked.Reviews[i].CallID, Answer: regie.AnswerAlways, Scope: &scopes[under]})
	}
	if _, err := h.engine.Service().Approvals.Decide(access.AsOwner(t.Context()), decide(asked, "always", decisions...)); err != nil {
		t.Fatal(err)
	}
	pages := 0
	got := turned(h, "/api/v1/rules?", func(p *httpapi.RulePage) (ids []regie.ID, next string) {
		if first := pages == 0; (p.Audit != nil) != first {
			t.Errorf("page %d has the audit %+v", pages, p.Audit)
		}
		pages++
		for i := range p.Items {
			ids = append(ids, p.Items[i].ID)
		}
		return ids, p.Next
	})
	list, err := h.client().Rules(t.Context(), store.RuleFilter{Root: h.root})
	if err != nil || list.Audit == nil || len(list.Rules) != 5 {
		t.Fatalf("the client has %+v, %v", list, err)
	}
	var want []regie.ID
	for i := range list.Rules {
		want = append(want, list.Rules[i].ID)
	}
	if !slices.Equal(got, want) || pages != 3 {
		t.Errorf("%d pages of rules: %v, want %v", pages, got, want)
	}
	h.json("POST", "/api/v1/rules/revoke", `{"rule_ids":["`+want[0].String()+`"]}`, 200, nil)
	if list, err = h.client().Rules(t.Context(), store.RuleFilter{Limit: 2}); err != nil || len(list.Rules) != 2 || list.Rules[0].ID != want[1] {
		t.Errorf("the first two that hold: %+v, %v", list, err)
	}
}

// TestTokenPages: a restricted caller's pages are full, whatever it does not see between them.
func TestTokenPages(t *testing.T) {
	t.Parallel()
	h := newBed(t, newModel(t)).serve("127.0.0.1:0")
	place := h.placeAt(t.TempDir())
	some := control.TokenRequest{Name: "some", Scopes: []regie.TokenScope{regie.ScopeAdmin, regie.ScopeRead}, Workspaces: []regie.ID{place.ID}}
	all := control.TokenRequest{Name: "all", Scopes: regie.TokenScopes()}
	lead := h.add(some)
	seen := []regie.ID{lead.Token.ID}
	every := []regie.ID{lead.Token.ID}
	for _, in := range []control.TokenRequest{all, all, all, some, all, some, some, all, all, all} {
		in.Name += fmt.Sprint(len(every))
		made := h.add(in)
		every = append(every, made.Token.ID)
		if strings.HasPrefix(in.Name, "some") {
			seen = append(seen, made.Token.ID)
		}
	}
	take := func(p *httpapi.Page[regie.Token]) (ids []regie.ID, next string) {
		for i := range p.Items {
			ids = append(ids, p.Items[i].ID)
		}
		return ids, p.Next
	}
	if got := turned(h, "/api/v1/tokens?", take); !slices.Equal(got, every) {
		t.Errorf("the tokens are %v, want %v", got, every)
	}
	if got := turned(h, "/api/v1/tokens?", take, bearer(lead.Secret)); !slices.Equal(got, seen) {
		t.Errorf("a restricted caller sees %v, want %v", got, seen)
	}
	if found, err := h.client().Tokens.List(t.Context(), store.TokenFilter{Limit: 3}); err != nil || len(found) != 3 {
		t.Errorf("three of them: %d, %v", len(found), err)
	}
	for _, path := range []string{"/api/v1/tokens", "/api/v1/rules", "/api/v1/inbox"} {
		for _, wrong := range []string{"?cursor=x", "?limit=0", "?limit=1001", "?limit=2&limit=3"} {
			h.json("GET", path+wrong, "", 400, nil)
		}
	}
}
