package providertest

import (
	"errors"
	"io"
	"math"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/regie-run/regie"
	"github.com/regie-run/regie/internal/provider"
)

// EmbedConform is the shared test suite of all HTTP embedders. Conform covers what an embedder
// shares with the model calls of its server.
func EmbedConform(t *testing.T, f *EmbedFormat) {
	t.Helper()
	t.Run("vectors", f.vectors)
	t.Run("batches", f.batches)
	t.Run("too long", f.cutsTexts)
	t.Run("broken", f.broken)
	t.Run("cut", f.cutAnswers)
	t.Run("refusals", f.refuses)
	t.Run("huge", f.hugeAnswer)
}

func (f *EmbedFormat) open(t *testing.T, address string) provider.Embedder {
	t.Helper()
	e, err := f.Open(address, 5*time.Second)
	if err != nil {
		t.Fatal(err)
	}
	return e
}

// vectors: each text gets its own vector of length 1, in the order of the texts. The request
// carries the purpose and the key.
func (f *EmbedFormat) vectors(t *testing.T) {
	s := NewEmbedServer(t, f)
	e := f.open(t, s.URL)
	if e.Name() != f.Name || e.Model() != f.Model || e.Free() != slices.Contains(own, f.Name) ||
		!strings.Contains(e.Space(), f.Model) {
		t.Errorf("%s %s %s, free: %v", e.Name(), e.Model(), e.Space(), e.Free())
	}
	texts := []string{"one é \"x\"\x00", "two\u2028three", "the third"}
	for i, purpose := range []provider.Purpose{provider.ForDocument, provider.ForQuery} {
		got, err := e.Embed(t.Context(), purpose, texts)
		if err != nil {
			t.Fatal(err)
		}
		if s.tasks[i] != f.task[purpose] {
			t.Errorf("%s has the task %q", purpose, s.tasks[i])
		}
		if len(got.Vectors) != len(texts) || len(got.Cut) != 0 || got.Estimated == f.Counts || f.Counts &&
			got.Usage.Input != 21 || got.Usage.Input == 0 {
			t.Fatalf("%d vectors, cut %v, usage %+v, estimated: %v", len(got.Vectors),
				got.Cut, got.Usage, got.Estimated)
		}
		for j, sent := range s.Requests()[i] {
			if want := f.before[purpose] + strings.ReplaceAll(texts[j], "\x00", "\uFFFD"); sent != want {
				t.Errorf("text %d was sent as %q, want %q", j, sent, want)
			}
			if near := cosine(Meaning(sent), got.Vectors[j]); math.Abs(near-1) > 1e-5 ||
				math.Abs(cosine(got.Vectors[j], got.Vectors[j])*length(got.Vectors[j])-1) > 1e-5 {
				t.Errorf("vector %d is not that of its text (%.3f), or not of length 1", j, near)
			}
		}
	}
	if key := strings.Join(slices.Concat(s.header["Authorization"], s.header["X-Goog-Api-Key"]),
		" "); !strings.Contains(key, "sk-canary") {
		t.Error("the key was not sent")
	}
}

func length(v []float32) float64 {
	sum := 0.0
	for _, x := range v {
		sum += float64(x) * float64(x)
	}
	return math.Sqrt(sum)
}

func cosine(a, b []float32) float64 {
	sum := 0.0
	for i := range a {
		sum += float64(a[i]) * float64(b[i])
	}
	return sum / length(a) / length(b)
}

// batches: an invalid batch is not sent.
func (f *EmbedFormat) batches(t *testing.T) {
	s := NewEmbedServer(t, f)
	e := f.open(t, s.URL)
	most, bytes := e.Batch()
	for name, texts := range map[string][]string{
		"none": nil, "a blank one": {"a", " \n"}, "too many": slices.Repeat([]string{"a"}, most+1),
		"too much": {strings.Repeat("a", bytes/2+1), strings.Repeat("b", bytes/2+1)},
	} {
		if _, err := e.Embed(t.Context(), provider.ForDocument, texts); provider.CodeOf(err) != regie.CodeBadRequest {
			t.Errorf("%s: %v", name, err)
		}
	}
	if n := len(s.Requests()); n != 0 {
		t.Errorf("%d requests were sent", n)
	}
	if got, err := e.Embed(t.Context(), provider.ForDocument, slices.Repeat([]string{"a"}, most)); err != nil ||
		len(got.Vectors) != most {
		t.Errorf("a whole batch: %v", err)
	}
}

// cutsTexts: a text that is too long for the model is cut and reported in Cut; the others stay
// whole.
func (f *EmbedFormat) cutsTexts(t *testing.T) {
	s := NewEmbedServer(t, f)
	s.Longest = 600
	e := f.open(t, s.URL)
	long := strings.Repeat("long ", 300)
	texts := []string{"a", "b", long, "c", "d", strings.Repeat("é ", 400)}
	got, err := e.Embed(t.Context(), provider.ForDocument, texts)
	if err != nil {
		t.Fatal(err)
	}
	if !slices.Equal(got.Cut, []int{2, 5}) || f.Counts && got.Usage.Input != 7*6 {
		t.Errorf("cut %v, usage %+v", got.Cut, got.Usage)
	}
	for i, text := range texts {
		if near := cosine(Meaning(f.before[provider.ForDocument]+text), got.Vectors[i]); near < 0.99 {
			t.Errorf("vector %d is not that of its text: %.3f", i, near)
		}
	}
	// A text beyond any model's bound is cut before it is sent.
	most, before := 0, len(s.Requests())
	if got, err = e.Embed(t.Context(), provider.ForDocument, []string{strings.Repeat("word ", 100_000)}); err != nil ||
		!slices.Equal(got.Cut, []int{0}) {
		t.Fatalf("%v, %v", got, err)
	}
	for _, request := range s.Requests()[before:] {
		most = max(most, len(request[0]))
	}
	if _, bytes := e.Batch(); most > bytes {
		t.Errorf("%d bytes were sent", most)
	}
	// A model that takes no text at all ends in CodeContextTooLarge.
	s.Longest = 1
	if _, err = e.Embed(t.Context(), provider.ForDocument, []string{strings.Repeat("é", 500)}); provider.CodeOf(
		err) != regie.CodeContextTooLarge {
		t.Errorf("it takes nothing: %v", err)
	}
}

// broken: invalid vectors, or those of other texts, are refused as a whole.
func (f *EmbedFormat) broken(t *testing.T) {
	mangled := func(change func(vectors [][]float32) [][]float32) func(http.ResponseWriter, [][]float32) {
		return func(w http.ResponseWriter, vectors [][]float32) { f.Reply(w, change(vectors)) }
	}
	written := func(text string) func(http.ResponseWriter, [][]float32) {
		return func(w http.ResponseWriter, _ [][]float32) {
			w.Header().Set("Content-Type", "application/json")
			_, _ = io.WriteString(w, text)
		}
	}
	replaced := func(to string) func(http.ResponseWriter, [][]float32) {
		return func(w http.ResponseWriter, vectors [][]float32) {
			for i := range vectors[1] {
				vectors[1][i] = 0.5
			}
			recorder := httptest.NewRecorder()
			f.Reply(recorder, vectors)
			written(strings.Replace(recorder.Body.String(), "[0.5,", to, 1))(w, nil)
		}
	}
	cases := map[string]func(http.ResponseWriter, [][]float32){
		"too few":  mangled(func(v [][]float32) [][]float32 { return v[:1] }),
		"too many": mangled(func(v [][]float32) [][]float32 { return append(v, v[0]) }),
		"none":     mangled(func([][]float32) [][]float32 { return nil }),
		"zero":     mangled(func(v [][]float32) [][]float32 { clear(v[1]); return v }),
		"shorter":  mangled(func(v [][]float32) [][]float32 { return [][]float32{v[0][:63], v[1][:63]} }),
		"one is":   mangled(func(v [][]float32) [][]float32 { return [][]float32{v[0], v[1][:63]} }),
		"empty":    mangled(func([][]float32) [][]float32 { return [][]float32{{}, {}} }),
		"nothing":  written(""), "an object": written("{}"), "a list": written("[]"), "a number": written("7"),
		"garbage": written("\x00\xff"), "no number": replaced(`["a",`), "null": replaced("[null,"),
		"beyond any": replaced("[1e999,"), "a list in it": replaced("[[0.5],"),
		"NaN": replaced("[NaN,"),
	}
	s := NewEmbedServer(t, f)
	e := f.open(t, s.URL)
	if _, err := e.Embed(t.Context(), provider.ForDocument, []string{"a", "b"}); err != nil {
		t.Fatal(err)
	}
	for name, answer := range cases {
		s.Answer = func(w http.ResponseWriter, _ *http.Request, _ int, vectors [][]float32) bool {
			answer(w, vectors)
			return true
		}
		got, err := e.Embed(t.Context(), provider.ForDocument, []string{"a", "b"})
		if failed, ok := errors.AsType[*provider.Error](err); got != nil || !ok ||
			failed.Code != regie.CodeBadReply || !failed.Retryable {
			t.Errorf("%s: %v, %v", name, got, err)
		}
	}
}

// cutAnswers ends an answer after every byte, with and without an orderly end.
func (f *EmbedFormat) cutAnswers(t *testing.T) {
	s := NewEmbedServer(t, f)
	e := f.open(t, s.URL)
	recorder := httptest.NewRecorder()
	f.Reply(recorder, [][]float32{Meaning("a")})
	whole := recorder.Body.String()
	var at atomic.Int64 // a handler may still read it when its client has gone
	aborts := func(cut int) bool { return cut%97 == 1 && cut < len(whole) }
	s.Answer = func(w http.ResponseWriter, _ *http.Request, _ int, _ [][]float32) bool {
		cut := int(at.Load())
		w.Header().Set("Content-Type", "application/json")
		_, _ = io.WriteString(w, whole[:cut])
		_ = http.NewResponseController(w).Flush()
		if aborts(cut) {
			panic(http.ErrAbortHandler)
		}
		return true
	}
	for cut := range len(whole) {
		at.Store(int64(cut))
		got, err := e.Embed(t.Context(), provider.ForDocument, []string{"a"})
		if failed, ok := errors.AsType[*provider.Error](err); got != nil || !ok || !failed.Retryable || aborts(cut) &&
			failed.Code != regie.CodeTruncatedStream {
			t.Fatalf("cut after %d of %d bytes: %v, %v", cut, len(whole), got, err)
		}
	}
	at.Store(int64(len(whole)))
	if _, err := e.Embed(t.Context(), provider.ForDocument, []string{"a"}); err != nil {
		t.Error(err)
	}
}

// refuses: Conform covers the meaning of a status for the same server; this covers the error
// message.
func (f *EmbedFormat) refuses(t *testing.T) {
	s := NewEmbedServer(t, f)
	e := f.open(t, s.URL)
	for _, scene := range []Scene{
		{Status: 401, Kind: "authentication_error", Message: "invalid key sk-canary"},
		{Status: 404, Kind: "not_found_error", Message: `model "nomic-embed-text" not found, try pulling it first`},
	} {
		s.Answer = func(w http.ResponseWriter, _ *http.Request, _ int, _ [][]float32) bool {
			f.Refuse(w, scene)
			return true
		}
		got, err := e.Embed(t.Context(), provider.ForDocument, []string{"a"})
		if failed, ok := errors.AsType[*provider.Error](err); got != nil || !ok || failed.Retryable ||
			failed.Status != scene.Status || strings.Contains(failed.Message, "sk-canary") ||
			f.Name == "ollama" && scene.Status == 404 && !strings.Contains(failed.Message, "ollama pull") {
			t.Errorf("%v, %+v", got, err)
		}
	}
	for kind, body := range map[string]string{
		"text/html": "<html>\x1b[31mlogin", "application/json": "<html>502", "": "<html>",
	} {
		s.Answer = func(w http.ResponseWriter, _ *http.Request, _ int, _ [][]float32) bool {
			w.Header()["Content-Type"] = []string{kind}
			_, _ = io.WriteString(w, body)
			return true
		}
		_, err := e.Embed(t.Context(), provider.ForDocument, []string{"a"})
		if provider.CodeOf(err) != regie.CodeProviderRejected || strings.ContainsRune(err.Error(), 0x1b) ||
			!strings.Contains(err.Error(), "does not speak") {
			t.Errorf("%q in place of vectors: %v", kind, err)
		}
	}
}

// hugeAnswer is left at its bound, long before its end.
func (f *EmbedFormat) hugeAnswer(t *testing.T) {
	s := NewEmbedServer(t, f)
	s.Answer = func(w http.ResponseWriter, _ *http.Request, _ int, _ [][]float32) bool {
		w.Header().Set("Content-Type", "application/json")
		for range 100 {
			if _, err := io.WriteString(w, strings.Repeat(" ", 1<<20)); err != nil {
				return true
			}
		}
		return true
	}
	if _, err := f.open(t, s.URL).Embed(t.Context(), provider.ForQuery,
		[]string{"a"}); provider.CodeOf(err) != regie.CodeReplyTooLarge {
		t.Errorf("got %v", err)
	}
}
