package app_test

import (
	"bytes"
	"io"
	"mime/multipart"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/regie-run/regie"
	"github.com/regie-run/regie/internal/app"
	"github.com/regie-run/regie/internal/dispatch"
)

// pages is a browser without scripts that is logged in.
type pages struct {
	*house
	client *http.Client
}

// servePages serves the pages with the harness's workspace.
func (b *harness) servePages(addr string) *house {
	b.t.Helper()
	return b.serveOn(app.ServeConfig{Addr: addr, Version: "test", Root: b.root, FoundBy: "directory"}, nil)
}

// login uses the setup link as a browser without scripts does.
func (h *house) login() *pages {
	h.t.Helper()
	p := &pages{h, h.browser()}
	p.client.CheckRedirect = nil
	link, err := url.Parse(h.served.Setup)
	fatal(h.t, err)
	status, page := p.post("/setup", url.Values{"code": {link.Query().Get("code")}})
	if status != 200 || !strings.Contains(page, "<h1>New chat</h1>") {
		h.t.Fatalf("after the link: %d %s", status, page)
	}
	return p
}

func (p *pages) get(path string) (int, string) {
	p.t.Helper()
	return p.do(http.MethodGet, path, "")
}

func (p *pages) post(path string, form url.Values) (int, string) {
	p.t.Helper()
	return p.do(http.MethodPost, path, form.Encode())
}

func (p *pages) do(method, path, body string) (int, string) {
	p.t.Helper()
	return p.doAs(method, path, "application/x-www-form-urlencoded", body)
}

// doAs sends a body of a type.
func (p *pages) doAs(method, path, kind, body string) (int, string) {
	p.t.Helper()
	r, err := http.NewRequestWithContext(p.t.Context(), method, p.served.URL+path, strings.NewReader(body))
	fatal(p.t, err)
	if body != "" {
		r.Header.Set("Content-Type", kind)
	}
	response, err := p.client.Do(r)
	fatal(p.t, err)
	defer response.Body.Close()
	page, err := io.ReadAll(response.Body)
	fatal(p.t, err)
	return response.StatusCode, string(page)
}

// field returns the first hidden field of a name in a page.
func field(t *testing.T, page, name string) string {
	t.Helper()
	found := regexp.MustCompile(`name="` + name + `" value="([^"]*)"`).FindStringSubmatch(page)
	if found == nil {
		t.Fatalf("no field %s in %s", name, page)
	}
	return found[1]
}

// begin begins a chat from the page of a new one.
func (p *pages) begin(text string) (chat string) {
	p.t.Helper()
	_, page := p.get("/")
	workspace := regexp.MustCompile(`<option value="([^"]+)">`).FindStringSubmatch(page)
	if workspace == nil {
		p.t.Fatalf("no workspace in %s", page)
	}
	session := field(p.t, page, "session_id")
	status, page := p.post("/chats", url.Values{
		"csrf": {field(p.t, page, "csrf")}, "session_id": {session}, "workspace_id": {workspace[1]},
		"client_message_id": {field(p.t, page, "client_message_id")}, "text": {text},
	})
	if status != 200 || !strings.Contains(page, text) {
		p.t.Fatalf("a new chat: %d %s", status, page)
	}
	return session
}

// writesFile is a model that writes a file, and then answers.
func writesFile(t *testing.T) *model {
	t.Helper()
	return newModel(t, replyWith("I write it.", call{"a", "files__write_file", `{"path":"vat.yaml","content":"stripe: 6278\n"}`}),
		replyWith("## Done\n\nThe file **vat.yaml** is there.\n\n| a | b |\n|---|--:|\n| 1 | 2 |"))
}

// waits waits until a session needs the person, and ends until its round has ended.
func (p *pages) waits(session string) regie.Approval {
	p.t.Helper()
	id, err := regie.ParseID(session)
	fatal(p.t, err)
	return p.parked(p.engine.Control(), id).Approvals[0]
}

func (p *pages) ends(session string) {
	p.t.Helper()
	id, err := regie.ParseID(session)
	fatal(p.t, err)
	rounds, err := p.engine.Control().Session(p.t.Context(), id)
	fatal(p.t, err)
	p.await(p.engine.Control(), dispatch.Run{SessionID: id, RoundID: rounds.History[len(rounds.History)-1].ID})
}

// TestWebForms goes from the setup link to an answered approval without a script.
func TestWebForms(t *testing.T) {
	t.Parallel()
	p := newHarness(t, writesFile(t)).servePages("127.0.0.1:0").login()
	chat := p.begin("Move stripe to 6278")
	asked := p.waits(chat)
	for _, path := range []string{"/chats/" + chat, "/inbox"} {
		status, page := p.get(path)
		if status != 200 || !strings.Contains(page, `action="/approvals/`+asked.ID.String()) || !strings.Contains(page, "stripe: 6278") {
			t.Fatalf("%s: %d %s", path, status, page)
		}
	}
	_, page := p.get("/inbox")
	answer := url.Values{
		"csrf": {field(t, page, "csrf")}, "next": {"/chats/" + chat}, "call": {asked.Reviews[0].CallID.String()}, "answer": {"allow"},
	}
	if status, page := p.post("/approvals/"+asked.ID.String(), answer); status != 200 || !strings.Contains(page, "Allowed once by") {
		t.Fatalf("after the answer: %d %s", status, page)
	}
	p.ends(chat)
	if data, err := os.ReadFile(filepath.Join(p.root, "vat.yaml")); err != nil || string(data) != "stripe: 6278\n" {
		t.Errorf("%q, %v", data, err)
	}
	_, page = p.get("/chats/" + chat)
	for _, want := range []string{"<h4>Done</h4>", "<strong>vat.yaml</strong>", `<td align="right">2</td>`, "Write 1 line to vat.yaml", "1 call"} {
		if !strings.Contains(page, want) {
			t.Errorf("the chat lacks %s: %s", want, page)
		}
	}
	answer.Set("answer", "deny")
	if status, page := p.post("/approvals/"+asked.ID.String(), answer); status != 409 || !strings.Contains(page, `class="problem"`) ||
		!strings.Contains(page, "Allowed once by") {
		t.Errorf("answered elsewhere: %d %s", status, page)
	}
	_, page = p.get("/runs")
	run := regexp.MustCompile(`href="(/runs/[0-9a-f-]+)"`).FindStringSubmatch(page)
	if run == nil {
		t.Fatalf("no run in %s", page)
	}
	if status, page := p.get(run[1]); status != 200 || !strings.Contains(page, "Exchange 2") || !strings.Contains(page, "vat.yaml") {
		t.Errorf("the run: %d %s", status, page)
	}
	if status, page := p.get("/inbox"); status != 200 || !strings.Contains(page, "Nothing waits for you.") {
		t.Errorf("the inbox: %d %s", status, page)
	}
}

// TestWebForgery posts forms as other pages do.
func TestWebForgery(t *testing.T) {
	t.Parallel()
	p := newHarness(t, writesFile(t)).servePages("127.0.0.1:0").login()
	chat := p.begin("Move stripe")
	asked := p.waits(chat)
	_, page := p.get("/chats/" + chat)
	good := field(t, page, "csrf")
	for name, token := range map[string]string{"none": "", "another": strings.ToLower(good), "cut": good[1:]} {
		for _, path := range []string{"/approvals/" + asked.ID.String(), "/chats/" + chat + "/stop", "/chats/" + chat + "/messages", "/appearance"} {
			form := url.Values{"csrf": {token}, "answer": {"allow"}, "call": {asked.Reviews[0].CallID.String()}, "text": {"x"}, "theme": {"dark"}}
			if status, page := p.post(path, form); status != 403 || !strings.Contains(page, "FORBIDDEN") {
				t.Errorf("%s with %s token: %d %s", path, name, status, page)
			}
		}
	}
	for _, path := range []string{"/", "/chats/" + chat, "/inbox", "/runs", "/chats/" + chat + "/stream"} {
		response, err := http.Get(p.served.URL + path) //nolint:noctx // without a login
		fatal(t, err)
		body, _ := io.ReadAll(response.Body)
		_ = response.Body.Close()
		if response.StatusCode != 401 || !strings.Contains(string(body), "regie web") {
			t.Errorf("%s without a login: %d %s", path, response.StatusCode, body)
		}
		if got := response.Header.Get("Content-Security-Policy"); !strings.Contains(got, "script-src 'self'") || strings.Contains(got, "unsafe") {
			t.Errorf("the policy is %q", got)
		}
	}
	if status, _ := p.post("/chats/"+chat+"/messages", url.Values{"csrf": {good}, "text": {strings.Repeat("x", 2<<20)}}); status != 413 {
		t.Errorf("a form of 2 MiB: %d", status)
	}
	if now := p.waits(chat); now.State != regie.ApprovalOpen {
		t.Errorf("the approval is %s", now.State)
	}
}

// TestWebQuestion answers a question.
func TestWebQuestion(t *testing.T) {
	t.Parallel()
	p := newHarness(t, newModel(t,
		replyWith("", call{"q", "session__ask_user", `{"question":"Which account do Stripe's fees go to?","options":["6278 Bank commissions","6222 Commissions on sales"]}`}),
		replyWith("I book them on 6278."))).servePages("127.0.0.1:0").login()
	chat := p.begin("Book the fees")
	id, err := regie.ParseID(chat)
	fatal(t, err)
	asked := p.parked(p.engine.Control(), id).Questions[0]
	_, page := p.get("/chats/" + chat)
	for _, want := range []string{"Which account do Stripe&#39;s fees go to?", `value="6278 Bank commissions"`, "Waits for you"} {
		if !strings.Contains(page, want) {
			t.Errorf("the chat lacks %s: %s", want, page)
		}
	}
	form := p.forms(chat)
	if status, page := p.post("/questions/"+asked.ID.String(), form(url.Values{"choice": {"7000"}})); status != 409 || !strings.Contains(page, `class="problem"`) {
		t.Errorf("a choice that is none: %d %s", status, page)
	}
	if status, page := p.post("/questions/"+asked.ID.String(), form(url.Values{"choice": {"6278 Bank commissions"}})); status != 200 || !strings.Contains(page, "answered: 6278 Bank commissions") {
		t.Errorf("the answer: %d %s", status, page)
	}
	p.ends(chat)
	if _, page := p.get("/chats/" + chat); !strings.Contains(page, "I book them on 6278.") || strings.Contains(page, `class="card`) {
		t.Errorf("after the answer: %s", page)
	}
	if status, page := p.post("/chats/"+chat+"/messages", form(url.Values{"text": {" "}})); status != 409 || !strings.Contains(page, "the message is empty") {
		t.Errorf("an empty message: %d %s", status, page)
	}
	if _, page := p.post("/appearance", form(url.Values{"theme": {"dark"}, "language": {"fr"}})); !strings.Contains(page, `lang="fr" data-theme="dark"`) || !strings.Contains(page, "Envoyer") {
		t.Errorf("in dark and French: %s", page)
	}
}

// forms returns what makes the form of a chat with some fields.
func (p *pages) forms(chat string) func(url.Values) url.Values {
	p.t.Helper()
	_, page := p.get("/chats/" + chat)
	token := field(p.t, page, "csrf")
	return func(fields url.Values) url.Values {
		fields.Set("csrf", token)
		fields.Set("next", "/chats/"+chat)
		return fields
	}
}

// TestWebQueue queues a message during a run, takes it back, and stops the run.
func TestWebQueue(t *testing.T) {
	t.Parallel()
	begun := make(chan struct{}, 1)
	p := newHarness(t, newModel(t, func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "text/event-stream")
		chunk(w, map[string]any{"content": "I begin."})
		begun <- struct{}{}
		<-r.Context().Done()
	})).servePages("127.0.0.1:0").login()
	chat := p.begin("Never end")
	<-begun
	form := p.forms(chat)
	_, page := p.post("/chats/"+chat+"/messages", form(url.Values{"text": {"and then the rent"}, "when_busy": {"queue"}}))
	if !strings.Contains(page, "Queued, goes next") || !strings.Contains(page, "and then the rent") || !strings.Contains(page, "Working") {
		t.Fatalf("a queued message: %s", page)
	}
	message := field(t, page, "message_id")
	if _, page = p.post("/chats/"+chat+"/take-back", form(url.Values{"message_id": {message}})); strings.Contains(page, "the rent") {
		t.Errorf("taken back: %s", page)
	}
	if status, page := p.post("/chats/"+chat+"/take-back", form(url.Values{"message_id": {regie.NewID().String()}})); status < 400 || !strings.Contains(page, `class="problem"`) {
		t.Errorf("taken back again: %d %s", status, page)
	}
	p.post("/chats/"+chat+"/stop", form(url.Values{}))
	p.ends(chat)
	if _, page = p.get("/chats/" + chat); !strings.Contains(page, "Stopped") && !strings.Contains(page, "Interrupted") {
		t.Errorf("stopped: %s", page)
	}
	if _, page = p.post("/chats/"+chat+"/mode", form(url.Values{"mode": {"plan"}})); !strings.Contains(page, `<option value="plan" selected`) {
		t.Errorf("in plan mode: %s", page)
	}
}

// TestWebStale allows a change of a file that has changed since the person saw it.
func TestWebStale(t *testing.T) {
	t.Parallel()
	p := newHarness(t, newModel(t, replyWith("", call{"a", "files__edit_file", `{"path":"a.txt","edits":[{"old":"one","new":"two"}]}`}),
		replyWith("It changed."))).servePagesWith(map[string]string{"a.txt": "one\n"}).login()
	chat := p.begin("Change one to two")
	asked := p.waits(chat)
	_, page := p.get("/inbox")
	fatal(t, os.WriteFile(filepath.Join(p.root, "a.txt"), []byte("one more\n"), 0o600))
	p.post("/approvals/"+asked.ID.String(), url.Values{
		"csrf": {field(t, page, "csrf")}, "next": {"/chats/" + chat}, "call": {asked.Reviews[0].CallID.String()}, "answer": {"allow"},
	})
	id, err := regie.ParseID(chat)
	fatal(t, err)
	p.until(p.engine.Control(), id, func(e *regie.Event) bool { return strings.Contains(string(e.Body), "STALE_PREVIEW") })
	if _, page := p.get("/chats/" + chat); !strings.Contains(page, "STALE_PREVIEW") {
		t.Errorf("the chat does not say that the preview was stale: %s", page)
	}
	if data, err := os.ReadFile(filepath.Join(p.root, "a.txt")); err != nil || string(data) != "one more\n" {
		t.Errorf("%q, %v", data, err)
	}
}

// TestPages_Images sends an image by the form of a chat: the page shows it, nothing in it can run,
// and what is no image keeps the text.
func TestPages_Images(t *testing.T) {
	t.Parallel()
	m := newModel(t, replyWith("Hello."), replyWith("A picture."))
	b := newHarness(t, m)
	p := b.servePages("127.0.0.1:0").login()
	chat := p.begin("good morning")
	p.ends(chat)
	_, page := p.get("/chats/" + chat)
	send := func(data []byte) (int, string) {
		t.Helper()
		var body bytes.Buffer
		form := multipart.NewWriter(&body)
		for name, value := range map[string]string{
			"csrf": field(t, page, "csrf"), "next": "/chats/" + chat, "client_message_id": regie.NewID().String(), "text": "what is this?",
		} {
			fatal(t, form.WriteField(name, value))
		}
		file, err := form.CreateFormFile("image", `C:\shots\a.png`)
		fatal(t, err)
		_, err = file.Write(data)
		fatal(t, err)
		fatal(t, form.Close())
		return p.doAs(http.MethodPost, "/chats/"+chat+"/messages", form.FormDataContentType(), body.String())
	}
	if status, page := send([]byte("<svg/>")); status != 409 || !strings.Contains(page, "PNG and JPEG can") || !strings.Contains(page, "what is this?</textarea>") {
		t.Errorf("no image: %d %s", status, page)
	}
	drawn := drawPNG(20, 20)
	status, page := send(drawn)
	found := regexp.MustCompile(`<img src="(/chats/[^"]+)" alt="a.png"`).FindStringSubmatch(page)
	if status != 200 || found == nil {
		t.Fatalf("%d %s", status, page)
	}
	p.ends(chat)
	if status, got := p.get(found[1]); status != 200 || got != string(drawn) {
		t.Errorf("the image: %d, %d bytes", status, len(got))
	}
	if status, _ := p.get(strings.Replace(found[1], chat, regie.NewID().String(), 1)); status != 404 {
		t.Errorf("of another chat: %d", status)
	}
	if status, page := p.get("/chats/" + chat + "/images/x"); status != 400 {
		t.Errorf("no hash: %d %s", status, page)
	}
	if status, _ := send(make([]byte, 17<<20)); status != 413 {
		t.Errorf("17 MB: %d", status)
	}
}
