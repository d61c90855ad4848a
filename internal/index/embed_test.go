package index

import (
	"context"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/regie-run/regie"
	"github.com/regie-run/regie/internal/price"
	"github.com/regie-run/regie/internal/provider"
	"github.com/regie-run/regie/internal/provider/providertest"
	"github.com/regie-run/regie/internal/workspace"
)

// format is that of the servers here.
func format() *providertest.EmbedFormat {
	formats := providertest.EmbedFormats()
	return &formats[slices.IndexFunc(formats, func(f providertest.EmbedFormat) bool { return f.Name == "ollama" })]
}

// synonyms is a model for which a cat is a feline.
func synonyms(text string) []float32 {
	return providertest.Meaning(strings.NewReplacer("feline", "cat", "canine", "dog").Replace(text))
}

func embedder(tb testing.TB, address string) provider.Embedder {
	tb.Helper()
	e, err := format().Open(address, 5*time.Second)
	if err != nil {
		tb.Fatal(err)
	}
	return e
}

// openWith opens an index with an embedder; it rests for nobody.
func openWith(tb testing.TB, root *workspace.Root, file, address string, money Money) *Index {
	tb.Helper()
	x, err := Open(context.Background(), root, Config{Path: file, Embedder: embedder(tb, address), Money: money})
	if err != nil {
		tb.Fatal(err)
	}
	x.rest = func(ctx context.Context, _ time.Duration) error { return ctx.Err() }
	tb.Cleanup(func() { _ = x.Close() })
	return x
}

// embed brings files and vectors up to date.
func embed(tb testing.TB, x *Index) Embedded {
	tb.Helper()
	refresh(tb, x)
	e, err := x.Embed(context.Background(), nil)
	if err != nil {
		tb.Fatal(err)
	}
	return e
}

func find(tb testing.TB, x *Index, q Query) Answer {
	tb.Helper()
	a, err := x.Search(context.Background(), q)
	if err != nil {
		tb.Fatal(err)
	}
	return a
}

// documents are the texts that a server was sent for documents, without what the model wants before
// them.
func documents(s *providertest.EmbedServer) (out []string) {
	for _, request := range s.Requests() {
		for _, text := range request {
			if text, ok := strings.CutPrefix(text, "search_document: "); ok {
				out = append(out, text)
			}
		}
	}
	return out
}

var animals = map[string]string{
	"cat.md": "# Cat\n\nThe cat sleeps on the sofa.\n", "dog.md": "# Dog\n\nThe dog barks at the moon.\n", "lib/bird.md": "# Bird\n\nThe bird sings in the tree.\n",
	".env": "TOKEN=hunter2 secret of the cat\n",
}

// TestHybrid: what is said in other words is found by its meaning; what was embedded once is not
// embedded again, and a secret never.
func TestHybrid(t *testing.T) {
	s := providertest.NewEmbedServer(t, format())
	s.Meaning = synonyms
	root, dir, file := place(t, animals)
	x := openWith(t, root, file, s.URL, Money{Known: true})
	if a := find(t, x, Query{Text: "feline"}); a.Mode != Lexical || !strings.Contains(a.Reason.String(), "no file is embedded yet") {
		t.Errorf("before: %+v", a)
	}
	e := embed(t, x)
	if e.Made != 3 || e.Missing != 0 || e.Tokens != 21 || !e.Priced || !e.Reason.IsZero() || e.Model != "nomic-embed-text" {
		t.Errorf("embedded %+v", e)
	}
	for text, want := range map[string]string{"feline": "cat.md", "canine": "dog.md", "the bird sings": "lib/bird.md"} {
		a := find(t, x, Query{Text: text})
		if a.Mode != Hybrid || !a.Reason.IsZero() || len(a.Hits) == 0 || a.Hits[0].Path != want {
			t.Errorf("%q: %+v", text, a)
		}
	}
	if a := find(t, x, Query{Text: "feline", Under: "lib"}); a.Mode != Hybrid || len(a.Hits) != 1 || a.Hits[0].Path != "lib/bird.md" {
		t.Errorf("below a directory: %+v", a)
	}
	if a := find(t, x, Query{Text: " "}); a.Mode != Lexical || !a.Reason.IsZero() || len(a.Hits) != 0 {
		t.Errorf("nothing is asked: %+v", a)
	}
	// Moved, copied and back again: the text is the same. Of what changed only the new text is
	// sent.
	if err := os.Rename(filepath.Join(dir, "cat.md"), filepath.Join(dir, "lib", "animal.md")); err != nil {
		t.Fatal(err)
	}
	put(t, dir, "copy.md", animals["dog.md"])
	put(t, dir, "lib/bird.md", "# Bird\n\nThe bird flies south.\n")
	if e = embed(t, x); e.Made != 1 || e.Missing != 0 {
		t.Errorf("embedded %+v", e)
	}
	put(t, dir, "lib/bird.md", animals["lib/bird.md"])
	if e = embed(t, x); e.Made != 0 || e.Missing != 0 {
		t.Errorf("embedded %+v", e)
	}
	a := find(t, x, Query{Text: "feline"})
	if a.Hits[0].Path != "lib/animal.md" {
		t.Errorf("after it was moved: %+v", a)
	}
	if a = find(t, x, Query{Text: "canine", Limit: 2}); a.Hits[0].Path == a.Hits[1].Path || a.Hits[0].Text != a.Hits[1].Text {
		t.Errorf("both copies: %+v", a)
	}
	for _, h := range find(t, x, Query{Text: "flies south"}).Hits {
		if strings.Contains(h.Text, "flies south") {
			t.Errorf("what is no longer there is found: %+v", h)
		}
	}
	for _, text := range slices.Concat(s.Requests()...) {
		if strings.Contains(text, "hunter2") {
			t.Fatalf("a secret reached the embedder: %q", text)
		}
	}
	// Another process sees what this one has made.
	other := openWith(t, root, file, s.URL, Money{Known: true})
	if a = find(t, other, Query{Text: "feline"}); a.Mode != Hybrid || a.Hits[0].Path != "lib/animal.md" {
		t.Errorf("for another one: %+v", a)
	}
	put(t, dir, "fox.md", "# Fox\n\nA fox is a canine.\n")
	embed(t, x)
	if a = find(t, other, Query{Text: "fox canine"}); a.Hits[0].Path != "fox.md" {
		t.Errorf("what came later: %+v", a)
	}
}

// TestEmbedderAway: a search is lexical and says why; what could not be embedded is when the
// embedder is back.
func TestEmbedderAway(t *testing.T) {
	s := providertest.NewEmbedServer(t, format())
	root, dir, file := place(t, animals)
	away := openWith(t, root, file, "http://127.0.0.1:1", Money{Known: true})
	e := embed(t, away)
	if e.Code != regie.CodeProviderOffline || e.Missing != 3 || e.Made != 0 || !strings.Contains(e.Reason.String(), "ollama serve") {
		t.Errorf("embedded %+v", e)
	}
	if a := find(t, away, Query{Text: "cat"}); a.Mode != Lexical || len(a.Hits) == 0 || !strings.Contains(a.Reason.String(), "cannot be reached") {
		t.Errorf("%+v", a)
	}
	back := openWith(t, root, file, s.URL, Money{Known: true})
	if e = embed(t, back); e.Made != 3 || e.Missing != 0 || !e.Reason.IsZero() {
		t.Errorf("embedded %+v", e)
	}
	// It goes away again: what is there is of no use without the vector of the question.
	if a := find(t, away, Query{Text: "the cat"}); a.Mode != Lexical || len(a.Hits) == 0 {
		t.Errorf("%+v", a)
	}
	// What is new waits, and the rest is found.
	s.Answer = func(w http.ResponseWriter, _ *http.Request, _ int, vectors [][]float32) bool {
		if len(vectors) == 1 && s.Requests()[len(s.Requests())-1][0] == "search_query: cat" {
			return false
		}
		format().Refuse(w, providertest.Scene{Status: http.StatusUnauthorized, Message: "who are you?"})
		return true
	}
	put(t, dir, "new.md", "# New\n\nA cat of another colour.\n")
	if e = embed(t, back); e.Missing != 1 || e.Code != regie.CodeProviderAuth {
		t.Errorf("embedded %+v", e)
	}
	if a := find(t, back, Query{Text: "cat"}); a.Mode != Hybrid || !strings.Contains(a.Reason.String(), "1 parts of files are not embedded yet") {
		t.Errorf("%+v", a)
	}
}

// TestAnotherEmbedder: until its vectors are there the search is lexical. Those of the old one
// stay, for whoever goes back to it, but not those of all.
func TestAnotherEmbedder(t *testing.T) {
	s := providertest.NewEmbedServer(t, format())
	root, _, file := place(t, animals)
	embed(t, openWith(t, root, file, s.URL, Money{Known: true}))
	formats := providertest.EmbedFormats()
	gemini := formats[slices.IndexFunc(formats, func(f providertest.EmbedFormat) bool { return f.Name == "gemini" })]
	g := providertest.NewEmbedServer(t, &gemini)
	e, err := gemini.Open(g.URL, 5*time.Second)
	if err != nil {
		t.Fatal(err)
	}
	x, err := Open(t.Context(), root, Config{Path: file, Embedder: e, Money: Money{Known: true}})
	if err != nil {
		t.Fatal(err)
	}
	defer x.Close()
	if a := find(t, x, Query{Text: "cat"}); a.Mode != Lexical || len(a.Hits) == 0 || a.Reason.IsZero() {
		t.Errorf("before: %+v", a)
	}
	if got := refresh(t, x); got.Changed != 0 {
		t.Errorf("%+v", got)
	}
	if got := embed(t, x); got.Made != 3 || !got.Estimated && !gemini.Counts {
		t.Errorf("%+v", got)
	}
	if a := find(t, x, Query{Text: "cat"}); a.Mode != Hybrid {
		t.Errorf("after: %+v", a)
	}
	var spaces, rows int
	if err := x.db.read.QueryRowContext(t.Context(), "SELECT (SELECT count(*) FROM spaces), (SELECT count(*) FROM embeddings)").Scan(&spaces, &rows); err != nil || spaces != 2 || rows != 6 {
		t.Errorf("%d spaces with %d vectors, %v", spaces, rows, err)
	}
	first := openWith(t, root, file, s.URL, Money{Known: true})
	put(t, root.Dir(), "new.md", "# New\n\nSomething else.\n")
	refresh(t, first)
	if got := embed(t, first); got.Made != 1 || got.Missing != 0 {
		t.Errorf("back at the first one: %+v", got)
	}
	if a := find(t, first, Query{Text: "cat"}); a.Mode != Hybrid {
		t.Errorf("%+v", a)
	}
	for i, f := range formats { // the others take the place of who was not used for longest, which is the second
		if f.Name != "gemini" && f.Name != format().Name {
			o := providertest.NewEmbedServer(t, &formats[i])
			e, err := formats[i].Open(o.URL, 5*time.Second)
			if err != nil {
				t.Fatal(err)
			}
			y, err := Open(t.Context(), root, Config{Path: file, Embedder: e, Money: Money{Known: true}})
			if err != nil {
				t.Fatal(err)
			}
			embed(t, y)
			embed(t, first)
			_ = y.Close()
		}
	}
	names := ""
	if err := first.db.read.QueryRowContext(t.Context(), "SELECT count(*), (SELECT count(*) FROM embeddings), (SELECT group_concat(name) FROM spaces) FROM spaces").Scan(&spaces, &rows, &names); err != nil ||
		spaces > maxSpaces || rows > 4*maxSpaces || !strings.Contains(names, first.config.Embedder.Space()) {
		t.Errorf("%d spaces (%s) with %d vectors, %v", spaces, names, rows, err)
	}
	if len(formats) > maxSpaces && strings.Contains(names, e.Space()) {
		t.Errorf("the one that was not used for longest is still there: %s", names)
	}
	if got := embed(t, first); got.Made != 0 {
		t.Errorf("embedded again: %+v", got)
	}
}

// thick is a workspace whose texts fill several batches.
func thick(n int) map[string]string {
	out := map[string]string{}
	for i := range n {
		out[fmt.Sprintf("d%d/f%03d.md", i%7, i)] = fmt.Sprintf("# Title %d\n\n%s\n", i, strings.Repeat(fmt.Sprintf("word%d thing ", i), 40))
	}
	return out
}

// TestKilledWhileEmbedding kills a process while a batch is under way: nothing is paid for twice
// but that batch, and all is embedded in the end.
func TestKilledWhileEmbedding(t *testing.T) {
	if address := os.Getenv("REGIE_TEST_EMBED"); address != "" {
		root, err := workspace.Open(os.Getenv("REGIE_TEST_ROOT"))
		if err != nil {
			t.Fatal(err)
		}
		embed(t, openWith(t, root, os.Getenv("REGIE_TEST_INDEX"), address, Money{Known: true, PerDay: 1e9, Price: price.Price{Rates: price.Rates{Input: 20_000}}}))
		return
	}
	const files = 200
	s := providertest.NewEmbedServer(t, format())
	root, dir, file := place(t, thick(files))
	var mu sync.Mutex
	var victim *exec.Cmd
	until := 0
	s.Answer = func(_ http.ResponseWriter, r *http.Request, request int, _ [][]float32) bool {
		mu.Lock()
		spared := victim == nil || request < until
		if !spared {
			_ = victim.Process.Kill()
		}
		mu.Unlock()
		if !spared {
			<-r.Context().Done() // until the connection breaks
		}
		return !spared
	}
	for _, when := range []int{0, 2, 3} {
		child := exec.CommandContext(t.Context(), os.Args[0], "-test.run", "^TestKilledWhileEmbedding$")
		child.Env = append(os.Environ(), "REGIE_TEST_EMBED="+s.URL, "REGIE_TEST_ROOT="+dir, "REGIE_TEST_INDEX="+file)
		mu.Lock()
		until = len(s.Requests()) + when
		err := child.Start()
		victim = child
		mu.Unlock()
		if err != nil || child.Wait() == nil {
			t.Fatalf("it was not killed: %v", err)
		}
	}
	mu.Lock()
	victim = nil
	mu.Unlock()
	x := openWith(t, root, file, s.URL, Money{Known: true, PerDay: 1e9, Price: price.Price{Rates: price.Rates{Input: 20_000}}})
	if e := embed(t, x); e.Missing != 0 || !e.Reason.IsZero() {
		t.Fatalf("embedded %+v", e)
	}
	most, _ := x.config.Embedder.Batch()
	sent := map[string]int{}
	for _, text := range documents(s) {
		sent[text]++
	}
	again := 0
	for _, times := range sent {
		again += times - 1
	}
	if len(sent) != files || again > 3*most || again == 0 {
		t.Errorf("%d texts were sent, %d of them again; three batches of %d were under way", len(sent), again, most)
	}
	if a := find(t, x, Query{Text: "word17 thing"}); a.Mode != Hybrid || !a.Reason.IsZero() {
		t.Errorf("%+v", a)
	}
	var spent int64
	if err := x.db.read.QueryRowContext(t.Context(), "SELECT microusd FROM embedding_costs").Scan(&spent); err != nil || spent <= x.config.Money.Price.Input*7*files/1e6 {
		t.Errorf("%d are counted, %v: what was under way when it was killed is not among them", spent, err)
	}
}

// TestEmbedTogether: two that embed at once, as two processes do, embed each text once, while
// others search and files go.
func TestEmbedTogether(t *testing.T) {
	s := providertest.NewEmbedServer(t, format())
	root, dir, file := place(t, thick(120))
	var group sync.WaitGroup
	for range 2 {
		x := openWith(t, root, file, s.URL, Money{Known: true})
		group.Go(func() {
			if e := embed(t, x); e.Missing != 0 {
				t.Errorf("embedded %+v", e)
			}
		})
		group.Go(func() {
			for i := range 20 {
				find(t, x, Query{Text: fmt.Sprintf("word%d", i%3)})
			}
		})
	}
	group.Wait()
	texts := documents(s)
	if slices.Sort(texts); len(slices.Compact(slices.Clone(texts))) != len(texts) || len(texts) != 120 {
		t.Errorf("%d texts were sent", len(texts))
	}
	x := openWith(t, root, file, s.URL, Money{Known: true})
	find(t, x, Query{Text: "word1"})
	if err := os.RemoveAll(filepath.Join(dir, "d1")); err != nil {
		t.Fatal(err)
	}
	refresh(t, x)
	if a := find(t, x, Query{Text: "word1 thing", Limit: 50}); a.Mode != Hybrid || slices.ContainsFunc(a.Hits, func(h Hit) bool { return strings.HasPrefix(h.Path, "d1/") }) {
		t.Errorf("%d hits, %s", len(a.Hits), a.Mode)
	}
}

// TestFailingTexts: a text that makes the model fail takes no other with it, is not sent again, and
// is found by its words.
func TestFailingTexts(t *testing.T) {
	s := providertest.NewEmbedServer(t, format())
	poisoned := func(texts []string) bool {
		return slices.ContainsFunc(texts, func(text string) bool { return strings.Contains(text, "word13 ") })
	}
	s.Answer = func(w http.ResponseWriter, _ *http.Request, request int, _ [][]float32) bool {
		if poisoned(s.Requests()[request]) {
			format().Refuse(w, providertest.Scene{Status: http.StatusInternalServerError, Message: "failed to encode response: json: unsupported value: NaN"})
			return true
		}
		return false
	}
	root, _, file := place(t, thick(60))
	x := openWith(t, root, file, s.URL, Money{Known: true})
	if e := embed(t, x); e.Made != 59 || e.Refused != 1 || e.Missing != 0 || !e.Reason.IsZero() {
		t.Errorf("embedded %+v", e)
	}
	before := len(s.Requests())
	if e := embed(t, x); e.Made != 0 || len(s.Requests()) != before {
		t.Errorf("embedded %+v after %d more requests", e, len(s.Requests())-before)
	}
	s.Answer = nil
	if a := find(t, x, Query{Text: "word13"}); a.Mode != Hybrid || a.Hits[0].Path != "d6/f013.md" {
		t.Errorf("%+v", a)
	}
	// Where every text fails it is the embedder, and no text is to blame.
	root, _, file = place(t, thick(5))
	s.Answer = func(w http.ResponseWriter, _ *http.Request, _ int, _ [][]float32) bool {
		format().Refuse(w, providertest.Scene{Status: http.StatusInternalServerError, Message: "out of memory"})
		return true
	}
	x = openWith(t, root, file, s.URL, Money{Known: true})
	if e := embed(t, x); e.Made != 0 || e.Refused != 0 || e.Missing != 5 || e.Code != regie.CodeProviderBusy || !strings.Contains(e.Reason.String(), "out of memory") {
		t.Errorf("embedded %+v", e)
	}
	s.Answer = nil
	if e := embed(t, x); e.Made != 5 {
		t.Errorf("embedded %+v", e)
	}
}

// TestEmbedAgain: a busy embedder is asked again after what it wishes, and left alone where that is
// long; other dimensions than before are refused.
func TestEmbedAgain(t *testing.T) {
	s := providertest.NewEmbedServer(t, format())
	root, dir, file := place(t, animals)
	x := openWith(t, root, file, s.URL, Money{Known: true})
	var rests []time.Duration
	x.rest = func(_ context.Context, d time.Duration) error { rests = append(rests, d); return nil }
	s.Answer = func(w http.ResponseWriter, _ *http.Request, request int, _ [][]float32) bool {
		if request < 2 {
			format().Refuse(w, providertest.Scene{Status: http.StatusTooManyRequests, Message: "slow down", RetryAfter: []string{"7", ""}[request]})
		}
		return request < 2
	}
	if e := embed(t, x); e.Made != 3 || !slices.Equal(rests, []time.Duration{7 * time.Second, 2 * time.Second}) {
		t.Errorf("embedded %+v after %v", e, rests)
	}
	put(t, dir, "new.md", "# New\n\nSomething else.\n")
	s.Answer = func(w http.ResponseWriter, _ *http.Request, _ int, _ [][]float32) bool {
		format().Refuse(w, providertest.Scene{Status: http.StatusTooManyRequests, Message: "slow down", RetryAfter: "3600"})
		return true
	}
	rests = nil
	if e := embed(t, x); e.Missing != 1 || e.Code != regie.CodeProviderBusy || len(rests) != 0 {
		t.Errorf("embedded %+v after %v", e, rests)
	}
	s.Answer = func(w http.ResponseWriter, _ *http.Request, _ int, vectors [][]float32) bool {
		for i := range vectors {
			vectors[i] = vectors[i][:32]
		}
		format().Reply(w, vectors)
		return true
	}
	other := openWith(t, root, file, s.URL, Money{Known: true}) // one that has not seen the vectors before
	if e := embed(t, other); e.Missing != 1 || e.Code != regie.CodeBadReply || !strings.Contains(e.Reason.String(), "32 dimensions where the index has 64") {
		t.Errorf("embedded %+v", e)
	}
	if a := find(t, other, Query{Text: "cat"}); a.Mode != Lexical || !strings.Contains(a.Reason.String(), "another embedding model") || len(a.Hits) == 0 {
		t.Errorf("%+v", a)
	}
}
