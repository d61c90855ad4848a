package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os/exec"
	"strings"
	"time"

	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/performance"
	"github.com/chromedp/chromedp"

	"github.com/regie-run/regie"
)

// An answer of 16 kB comes in pieces, as from a model that is quick.
const (
	pacedModel  = modelPrefix + "p"
	pacedPieces = 40
	pacedPause  = 25 * time.Millisecond
	pieceWords  = 50
)

// pacedPiece returns a piece of the paced answer: a short paragraph.
func pacedPiece(n int) string {
	return strings.Repeat(fmt.Sprintf("word%03d ", n), pieceWords) + "\n\n"
}

// streamPaced answers with the pieces, one after the other.
func (s *server) streamPaced(w http.ResponseWriter) {
	w.Header().Set("Content-Type", "text/event-stream")
	for n := range pacedPieces {
		text, _ := json.Marshal(pacedPiece(n)) // of text it does not fail
		_, _ = fmt.Fprintf(w, envelope, `{"content":`+string(text)+`}`)
		_ = http.NewResponseController(w).Flush()
		time.Sleep(pacedPause)
	}
	_, _ = fmt.Fprint(w, ending("stop"))
}

// floorPage appends the same pieces to a page, and does nothing else.
const floorPage = `<!doctype html><title>floor</title><main></main><p></p><script>
const source = new EventSource("/pieces");
source.onmessage = (event) => {
  const block = document.createElement("p");
  block.append(JSON.parse(event.data));
  document.querySelector("main").append(block);
  scrollTo(0, document.body.scrollHeight);
};
source.addEventListener("end", () => { source.close(); document.querySelector("p:last-of-type").className = "turn end"; });
</script>`

// serveFloorPage serves the page that only appends.
func serveFloorPage() *httptest.Server {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /{$}", func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/html")
		_, _ = fmt.Fprint(w, floorPage)
	})
	mux.HandleFunc("GET /pieces", func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/event-stream")
		for n := range pacedPieces {
			text, _ := json.Marshal(pacedPiece(n)) // of text it does not fail
			_, _ = fmt.Fprintf(w, "data: %s\n\n", text)
			_ = http.NewResponseController(w).Flush()
			time.Sleep(pacedPause)
		}
		_, _ = fmt.Fprint(w, "event: end\ndata: x\n\n")
	})
	return httptest.NewServer(mux)
}

// browsing measures the pages in Chromium: the first paint of a chat, and the main thread's time
// for an answer of 16 kB. Without Chromium it prints why it does not.
func (s *session) browsing() error {
	program, err := exec.LookPath("chromium")
	if err != nil {
		fmt.Println("| pages: no Chromium here | | | | |")
		return nil
	}
	r, err := s.startRemote()
	if err != nil {
		return err
	}
	floor := serveFloorPage()
	defer floor.Close()
	ctx, stop := chromedp.NewExecAllocator(context.Background(), chromedp.ExecPath(program), chromedp.NoSandbox,
		chromedp.Headless, chromedp.DisableGPU, chromedp.NoFirstRun)
	defer stop()
	ctx, end := chromedp.NewContext(ctx)
	defer end()
	ctx, cancel := context.WithTimeout(ctx, 5*time.Minute)
	defer cancel()
	var link struct {
		URL string `json:"url"`
	}
	if err := r.post("/api/v1/setup-links", struct{}{}, &link); err != nil {
		return errors.Join(err, r.stop())
	}
	err = chromedp.Do(ctx, chromedp.Navigate(link.URL), chromedp.Click("button"),
		chromedp.WaitVisible("#text"))
	if err == nil {
		_, err = chromedp.Call(ctx, performance.Enable, performance.EnableParams{})
	}
	var paints, floorPaints, busy, floorBusy []float64
	for n := 0; n < s.rounds && err == nil; n++ {
		var a, b pageCost
		if a, err = r.openChat(ctx); err == nil {
			b, err = measurePage(ctx, floor.URL, func() error { return nil })
		}
		paints, floorPaints = append(paints, a.Paint), append(floorPaints, b.Paint)
		busy, floorBusy = append(busy, a.Busy), append(floorBusy, b.Busy)
	}
	fmt.Printf("| the first paint of a chat, ms | %.0f | %.0f | | ≤ 100 |\n", median(paints), median(floorPaints))
	fmt.Printf("| the main thread's time of an answer of 16 kB, ms | %.0f | %.0f | %.2f | ≤ 1.6 |\n", median(busy),
		median(floorBusy), median(busy)/median(floorBusy))
	return errors.Join(err, r.stop())
}

// pageCost is what a page takes: until its first paint, and of the main thread until an answer is
// shown, in milliseconds.
type pageCost struct{ Paint, Busy float64 }

// openChat shows a chat in which an answer comes.
func (r *remote) openChat(ctx context.Context) (pageCost, error) {
	var made regie.Session
	if err := r.post("/api/v1/sessions", map[string]any{"workspace_id": r.workspace}, &made); err != nil {
		return pageCost{}, err
	}
	return measurePage(ctx, r.url+"/chats/"+made.ID.String(), func() error {
		return r.post("/api/v1/runs", map[string]any{
			"session_id": made.ID, "client_message_id": "1", "text": job("shown"),
			"provider": "openai", "model": pacedModel,
		}, &struct{}{})
	})
}

// measurePage opens a page and waits for the end of the answer that begin starts.
func measurePage(ctx context.Context, url string, begin func() error) (out pageCost, err error) {
	if err := chromedp.Do(ctx, chromedp.Navigate(url)); err != nil {
		return out, err
	}
	before, err := taskTime(ctx)
	if err == nil {
		err = begin()
	}
	if err != nil {
		return out, err
	}
	if _, err = chromedp.Run(ctx, chromedp.Poll[bool](`!!document.querySelector(".turn.end")`,
		chromedp.WithPollingInterval(200*time.Millisecond))); err != nil {
		return out, err
	}
	after, err := taskTime(ctx)
	if err != nil {
		return out, err
	}
	out.Busy = 1000 * (after - before)
	out.Paint, err = chromedp.Run(ctx, chromedp.Evaluate[float64](
		`performance.getEntriesByName("first-contentful-paint")[0]?.startTime ?? 0`))
	return out, err
}

// taskTime returns how long the main thread has worked, in seconds.
func taskTime(ctx context.Context) (float64, error) {
	found, err := chromedp.Call(ctx, performance.GetMetrics, cdp.Empty{})
	if err != nil {
		return 0, err
	}
	for _, m := range found.Metrics {
		if m.Name == "TaskDuration" {
			return m.Value, nil
		}
	}
	return 0, errors.New("the browser does not tell the time of its tasks")
}
