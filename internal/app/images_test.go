package app_test

import (
	"bytes"
	"context"
	"encoding/base64"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/regie-run/regie"
	"github.com/regie-run/regie/internal/app"
	"github.com/regie-run/regie/internal/dispatch"
	"github.com/regie-run/regie/internal/engine"
	"github.com/regie-run/regie/internal/provider"
	"github.com/regie-run/regie/internal/store"
)

// picture is the image of these tests: much longer than it weighs.
var picture = bytes.Repeat([]byte("\x89PNG\r\n"), 100_000)

// attaching is a store that can fail to read picture.
type attaching struct {
	engine.Store

	mu   sync.Mutex
	fail []error // of the next readings
	read int
}

var errDiskAway = errors.New("the disk is away")

// repair lets all later readings succeed.
func (a *attaching) repair() {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.fail = nil
}

func (a *attaching) Blob(ctx context.Context, hash regie.Hash) ([]byte, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if hash == regie.HashOf(picture) {
		if a.read++; len(a.fail) > 0 {
			err := a.fail[0]
			a.fail = a.fail[1:]
			return nil, err
		}
	}
	return a.Store.Blob(ctx, hash)
}

// attached connects to an engine with such a store.
func (b *harness) attached(a *attaching) *app.Conn {
	b.t.Helper()
	return b.attach(app.Options{TuneEngine: func(c *engine.Config) {
		a.Store, c.Store = c.Store, a
		c.Backoff = func(int, time.Duration) time.Duration { return 0 }
		_, err := c.Store.PutBlob(b.t.Context(), picture)
		fatal(b.t, err)
	}})
}

// takesImages has the provider of a name take images.
func (b *harness) takesImages(name string) {
	yes, p := true, b.settings.Providers[name]
	p.Images = &yes
	b.settings.Providers[name] = p
}

var (
	shown = `"image_url":{"url":"data:image/png;base64,` + base64.StdEncoding.EncodeToString(picture) + `"}`
	blind = `look at [image a.png, image/png, 600000 bytes] (you cannot see its content)`
)

// look runs a round with a text.
func (b *harness) look(conn *app.Conn, session regie.ID, text string) store.RoundView {
	b.t.Helper()
	in := b.request(everything)
	in.SessionID, in.Text = session, text
	return b.await(conn, b.send(conn, in))
}

// submitPicture stores a message with picture behind the round of a session that has begun, as a
// submission stores it, and ends the process.
func (b *harness) submitPicture(conn *app.Conn, a *attaching, begun store.RoundView) dispatch.Run {
	b.t.Helper()
	round := begun.Round
	round.ID = regie.NewID()
	submits, ok := a.Store.(interface {
		Submit(ctx context.Context, in store.Submission) (store.Accepted, error)
	})
	if !ok {
		b.t.Fatal("the store takes no messages")
	}
	_, err := submits.Submit(b.t.Context(), store.Submission{
		SessionID: begun.Session.ID, Workspace: begun.Workspace, Round: round,
		Message: regie.Message{
			ID: regie.NewID(), Sender: regie.SenderUser, Author: regie.Author{Kind: regie.AuthorUser, ID: begun.Session.UserID.String()},
			ClientID: regie.NewID().String(),
			Rich: []regie.Segment{{Text: "look at "}, {Attachment: &regie.Attachment{
				Blob: regie.HashOf(picture), MediaType: "image/png", Name: "a.png", Size: int64(len(picture)),
			}}},
		},
	})
	fatal(b.t, err)
	if err := conn.Close(); err != nil && !errors.Is(err, errDiskAway) { // a shared database may have given the run to it already
		b.t.Fatal(err)
	}
	return dispatch.Run{SessionID: begun.Session.ID, RoundID: round.ID}
}

// lookAt runs a round of a message with picture, in another process.
func (b *harness) lookAt(conn *app.Conn, a *attaching, begun store.RoundView) (*app.Conn, store.RoundView) {
	b.t.Helper()
	run := b.submitPicture(conn, a, begun)
	conn = b.attached(a)
	return conn, b.await(conn, run)
}

// rebuilt asserts that each request of a run is rebuilt as it was sent.
func (b *harness) rebuilt(conn *app.Conn, view store.RoundView) {
	b.t.Helper()
	if out, err := conn.Replay(b.t.Context(), view.Round.ID); err != nil || out.Difference != 0 || out.Identical != len(view.Exchanges) {
		b.t.Errorf("%+v, %v", out, err)
	}
}

// TestImages: a model that takes images is shown those of a person's message in each request, in
// every round and process, with the same bytes; an image counts by its weight. Once the bytes are
// erased, and after the setting changed, the label stands alone, and what was sent before is still
// rebuilt.
func TestImages(t *testing.T) {
	t.Parallel()
	m := newModel(t, replyWith("Hello."), replyWith("I look.", call{"a", "files__list_files", `{}`}), replyWith("A cat."), replyWith("Yes."), replyWith("Still."), replyWith("I cannot."), replyWith("Gone."))
	b := fallbackHarness(t, m.server.URL, "", "")
	b.takesImages("one")
	a, session := &attaching{}, regie.NewID()
	conn := b.attached(a)
	conn, first := b.lookAt(conn, a, b.look(conn, session, "hello"))
	expect(t, first, regie.EndAnswered, "SUCCEEDED")
	b.rebuilt(conn, first)
	p, err := conn.Prompt(t.Context(), dispatch.PromptRequest{RoundID: first.Round.ID, Exchange: 2})
	if err != nil || !p.Exact() || p.Tokens > 20_000 {
		t.Errorf("%d tokens, %v", p.Tokens, err)
	}
	for _, part := range p.Parts {
		if part.Message == first.Trigger.ID && (part.Bytes < provider.ImageWeight || part.Bytes > provider.ImageWeight+1000) {
			t.Errorf("its message counts %d bytes", part.Bytes)
		}
	}
	read := a.read
	warm := b.look(conn, session, "and now?")
	if a.read != read {
		t.Error("a warm thread reads the image again")
	}
	fatal(t, conn.Close())
	conn = b.attached(a)
	cold := b.look(conn, session, "and then?")
	for i, body := range m.requests[1:] {
		if strings.Count(string(body), shown) != 1 || strings.Contains(string(body), "cannot see") {
			t.Errorf("request %d holds the image %d times", i, strings.Count(string(body), shown))
		}
	}
	b.rebuilt(conn, warm)
	b.rebuilt(conn, cold)
	fatal(t, conn.Close())
	no, p1 := false, b.settings.Providers["one"]
	p1.Images = &no
	b.settings.Providers["one"] = p1
	conn = b.attached(a)
	blinded := b.look(conn, session, "once more")
	if body := string(m.requests[5]); !strings.Contains(body, blind) || strings.Contains(body, "image_url") {
		t.Errorf("without images it is sent %.2000s", body)
	}
	b.rebuilt(conn, blinded)
	b.rebuilt(conn, cold)
	fatal(t, conn.Close())
	b.takesImages("one")
	a.fail = []error{regie.Errorf(regie.CodeNotFound, "erased")}
	b.look(b.attached(a), session, "and at last?")
	if body := string(m.requests[6]); !strings.Contains(body, blind) || strings.Contains(body, "image_url") {
		t.Errorf("of erased bytes it is sent %.2000s", body)
	}
}

// TestImages_Unread: no request goes out without an image that could not be read. The next process
// goes on.
func TestImages_Unread(t *testing.T) {
	t.Parallel()
	m := newModel(t, replyWith("Hello."), replyWith("A cat."))
	b := fallbackHarness(t, m.server.URL, "", "")
	b.takesImages("one")
	a := &attaching{fail: slices.Repeat([]error{errDiskAway}, 100)}
	conn := b.attached(a)
	run := b.submitPicture(conn, a, b.look(conn, regie.NewID(), "hello"))
	conn = b.attached(a)
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	err := conn.Events(ctx, run.SessionID, 0, func(dispatch.Item) error { return nil })
	if err == nil || !strings.Contains(err.Error(), "the attachment a.png: the disk is away") || m.count() != 1 {
		t.Errorf("got %v, asked %d times", err, m.count())
	}
	_ = conn.Close() // it says so again
	a.repair()
	expect(t, b.await(b.attached(a), run), regie.EndAnswered)
	if m.count() != 2 || !strings.Contains(string(m.requests[1]), shown) || a.read < 2 {
		t.Errorf("asked %d times, read %d times: %.2000s", m.count(), a.read, m.requests[1])
	}
}

// TestImages_Fallback: a fallback that takes no images gets the labels, and one that does gets the
// images that the first provider did not.
func TestImages_Fallback(t *testing.T) {
	t.Parallel()
	for _, sees := range []string{"one", "two"} {
		t.Run(sees, func(t *testing.T) {
			one := newModel(t, replyWith("Hello."), refusesWith(401, "no key"))
			two := newModel(t, replyWith("?"), replyWith("A cat."))
			b := fallbackHarness(t, one.server.URL, two.server.URL, "")
			b.takesImages(sees)
			a := &attaching{}
			conn := b.attached(a)
			conn, view := b.lookAt(conn, a, b.look(conn, regie.NewID(), "hello"))
			expect(t, view, regie.EndAnswered)
			for name, body := range map[string]string{"one": string(one.requests[1]), "two": string(two.requests[0])} {
				if strings.Contains(body, shown) != (name == sees) || strings.Contains(body, blind) == (name == sees) {
					t.Errorf("%s is sent %.2000s", name, body)
				}
			}
			b.rebuilt(conn, view)
		})
	}
}

// TestImages_Listed: a vendor's list says which of its models take images. One process asks for it
// once, and once more to rebuild requests, however many there are.
func TestImages_Listed(t *testing.T) {
	t.Parallel()
	m := newModel(t, replyWith("Hello."), replyWith("I look.", call{"a", "files__list_files", `{}`}), replyWith("A cat."))
	var asked atomic.Int64
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method != http.MethodGet {
			m.ServeHTTP(w, r)
			return
		}
		asked.Add(1)
		_, _ = io.WriteString(w, `{"data":[{"id":"of-one","architecture":{"input_modalities":["text","image"]},"supported_parameters":["tools"]}]}`)
	}))
	t.Cleanup(server.Close)
	b := fallbackHarness(t, server.URL, "", "")
	p := b.settings.Providers["one"]
	p.Vendor = "openrouter"
	b.settings.Providers["one"] = p
	a := &attaching{}
	conn := b.attached(a)
	conn, view := b.lookAt(conn, a, b.look(conn, regie.NewID(), "hello"))
	expect(t, view, regie.EndAnswered, "SUCCEEDED")
	for _, body := range m.requests[1:] {
		if !strings.Contains(string(body), shown) {
			t.Errorf("it is sent %.2000s", body)
		}
	}
	b.rebuilt(conn, view)
	b.rebuilt(conn, view)
	if n := asked.Load(); n != 3 { // by two processes, and to rebuild
		t.Errorf("the list was asked for %d times", n)
	}
}
