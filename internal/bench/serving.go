package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"runtime/debug"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/regie-run/regie"
	"github.com/regie-run/regie/internal/app"
)

// serveAlone runs the server of a separate process: it prints its address, and its memory on each
// request.
func serveAlone() error {
	in := bufio.NewReader(os.Stdin)
	url, err := in.ReadString('\n')
	if err != nil {
		return err
	}
	dir, err := os.MkdirTemp("", "regie-bench-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	c, err := newRegie(context.Background(), trial{URL: strings.TrimSpace(url)}, dir, func() {})
	if err != nil {
		return err
	}
	served, err := c.engine.Serve(context.Background(), app.ServeConfig{Addr: "127.0.0.1:0"})
	if err != nil {
		return errors.Join(err, c.engine.Close())
	}
	token, err := app.ReadToken(dir + "/data")
	if err != nil {
		return errors.Join(err, c.engine.Close())
	}
	fmt.Println(served.URL, token, dir)
	for {
		if _, err := in.ReadString('\n'); err != nil {
			return c.engine.Close()
		}
		debug.FreeOSMemory()
		fmt.Println(resident())
	}
}

// resident is the process's memory in KiB.
func resident() int {
	data, err := os.ReadFile("/proc/self/statm")
	fields := strings.Fields(string(data))
	if err != nil || len(fields) < 2 {
		return 0
	}
	pages, _ := strconv.Atoi(fields[1]) // of the kernel's own making
	return pages * os.Getpagesize() >> 10
}

// remote is a server in another process.
type remote struct {
	url, token, dir string
	in              io.WriteCloser
	out             *bufio.Reader
	child           *exec.Cmd
	workspace       string
	http            http.Client
}

func (s *session) startRemote() (*remote, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	r := &remote{child: exec.Command(self, "-role", "serve")}
	r.child.Stderr = os.Stderr
	if r.in, err = r.child.StdinPipe(); err != nil {
		return nil, err
	}
	out, err := r.child.StdoutPipe()
	if err == nil {
		err = r.child.Start()
	}
	if err != nil {
		return nil, err
	}
	r.out = bufio.NewReader(out)
	_, err = fmt.Fprintln(r.in, s.url)
	line, readErr := r.out.ReadString('\n')
	if err = errors.Join(err, readErr); err != nil {
		return nil, errors.Join(err, r.stop())
	}
	if _, err := fmt.Sscan(line, &r.url, &r.token, &r.dir); err != nil {
		return nil, errors.Join(err, r.stop())
	}
	var place regie.Workspace
	if err := r.post("/api/v1/workspaces", map[string]any{"path": r.dir}, &place); err != nil {
		return nil, errors.Join(err, r.stop())
	}
	r.workspace = place.ID.String()
	return r, nil
}

func (r *remote) stop() error { return errors.Join(r.in.Close(), r.child.Wait()) }

// memory returns the server's memory, in KiB.
func (r *remote) memory() (int, error) {
	if _, err := fmt.Fprintln(r.in, "memory"); err != nil {
		return 0, err
	}
	line, err := r.out.ReadString('\n')
	if err != nil {
		return 0, err
	}
	return strconv.Atoi(strings.TrimSpace(line))
}

func (r *remote) request(path string, body any, accept string) (*http.Response, error) {
	data, err := json.Marshal(body)
	if err != nil {
		return nil, err
	}
	request, err := http.NewRequestWithContext(context.Background(), http.MethodPost, r.url+path, bytes.NewReader(data))
	if err != nil {
		return nil, err
	}
	request.Header.Set("Authorization", "Bearer "+r.token)
	request.Header.Set("Accept", accept)
	response, err := r.http.Do(request)
	if err == nil && response.StatusCode >= 300 {
		said, _ := io.ReadAll(response.Body)
		_ = response.Body.Close() // what it said matters more
		return nil, fmt.Errorf("%s: %s %s", path, response.Status, said)
	}
	return response, err
}

func (r *remote) post(path string, body, into any) error {
	response, err := r.request(path, body, "application/json")
	if err != nil {
		return err
	}
	defer response.Body.Close()
	return json.NewDecoder(response.Body).Decode(into)
}

// talk makes a session, says something, and reads its round to the end.
func (r *remote) talk() error {
	var made regie.Session
	if err := r.post("/api/v1/sessions", map[string]any{"workspace_id": r.workspace}, &made); err != nil {
		return err
	}
	response, err := r.request("/api/v1/sessions/"+made.ID.String()+"/messages", map[string]any{
		"content": job("served"), "provider": "openai", "model": modelName(3),
	}, "text/event-stream")
	if err != nil {
		return err
	}
	defer response.Body.Close()
	data, err := io.ReadAll(response.Body)
	if err == nil && !bytes.Contains(data, []byte(`"end_reason":"ANSWERED"`)) {
		err = fmt.Errorf("a run that was served ended otherwise: %s", data[max(0, len(data)-500):])
	}
	return err
}

// serving measures a server as its clients see it: sessions with a streamed round of three tool
// exchanges each, and idle streams. Each kind has a separate server, because a server notices a
// lost client only at the next heartbeat.
func (s *session) serving() error {
	for _, measure := range []func(*remote) error{
		func(r *remote) error { return errors.Join(r.load(16, 150*s.scale), r.load(64, 300*s.scale)) },
		func(r *remote) error { return r.quiet("an open stream", openStream) },
		func(r *remote) error { return r.quiet("an open WebSocket that follows one session", openSocket) },
	} {
		r, err := s.startRemote()
		if err != nil {
			return err
		}
		if err := errors.Join(measure(r), r.stop()); err != nil {
			return err
		}
	}
	return nil
}

func (r *remote) load(width, sessions int) error {
	r.http.Transport = &http.Transport{MaxIdleConnsPerHost: width}
	took := make([]int64, sessions)
	work := make(chan int)
	failed := make(chan error, width)
	var group sync.WaitGroup
	for range width {
		group.Go(func() {
			for n := range work {
				begun := time.Now()
				if err := r.talk(); err != nil {
					failed <- err
					return
				}
				took[n] = int64(time.Since(begun))
			}
		})
	}
	begun := time.Now()
	var err error
	for n := 0; n < sessions && err == nil; n++ {
		select {
		case work <- n:
		case err = <-failed:
		}
	}
	close(work)
	group.Wait()
	if err != nil {
		return err
	}
	rate := float64(sessions) / time.Since(begun).Seconds()
	held, err := r.memory()
	fmt.Printf(
		"| served sessions/s, ×%d | %.0f | | | |\n| a served session, p50 and p99, ms, ×%d | %.1f, %.1f | | | |\n| the server's memory behind them, MiB | %.0f | | | ≤ 64 |\n",
		width, rate, width, float64(percentile(took, 50))/1e6, float64(percentile(took, 99))/1e6, float64(held)/1024)
	return err
}
