package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"github.com/regie-run/regie"
	"github.com/regie-run/regie/internal/access"
	"github.com/regie-run/regie/internal/app"
	"github.com/regie-run/regie/internal/compat"
	"github.com/regie-run/regie/internal/config"
	"github.com/regie-run/regie/internal/dispatch"
)

// P13: a proxy between client and provider, at 2,000 requests a second. This process is client and
// provider; each contestant is a separate process: Regie's endpoint with its engine, log and store,
// or a plain forwarder.
const (
	proxyRate  = 2000 // requests a second
	proxyModel = "far/bench"
	proxyReply = `{"id":"bench","object":"chat.completion","created":1,"model":"bench","choices":[{"index":0,"message":{"role":"assistant","content":"ok"},` +
		`"finish_reason":"stop"}],"usage":{"prompt_tokens":100,"completion_tokens":20}}`
)

// forwarded is a contestant's final report.
type forwarded struct {
	PeakMiB float64
	CPU     time.Duration // of all its requests
}

// forwards is the role of a contestant: it prints its address, serves until standard input closes,
// and prints its usage.
func forwards(who, upstream string) error {
	dir, err := os.MkdirTemp("", "regie-bench-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	handler, done, err := forwarder(who, upstream, dir)
	if err != nil {
		return err
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return errors.Join(err, done())
	}
	begun, err := resources()
	if err != nil {
		return errors.Join(err, done())
	}
	fmt.Println("http://" + listener.Addr().String())
	server := &http.Server{Handler: handler, ReadHeaderTimeout: time.Minute}
	go func() { _ = server.Serve(listener) }() // ends with the process
	_, err = io.Copy(io.Discard, os.Stdin)
	if err = errors.Join(err, server.Close(), done()); err != nil {
		return err
	}
	usage, err := resources()
	took := usage.Utime.Nano() + usage.Stime.Nano() - begun.Utime.Nano() - begun.Stime.Nano()
	cost, _ := json.Marshal(forwarded{PeakMiB: float64(usage.Maxrss) / 1024, CPU: time.Duration(took)})
	fmt.Println(string(cost))
	return err
}

func forwarder(who, upstream, dir string) (http.Handler, func() error, error) {
	if who == "forwarder" {
		client := &http.Client{Transport: &http.Transport{
			MaxIdleConns:        256,
			MaxIdleConnsPerHost: 256, DisableCompression: true,
		}}
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { forward(client, upstream, w, r) }),
			func() error { return nil }, nil
	}
	settings, err := config.Load(func(string) string { return "" }, config.Flags{
		DataDir: filepath.Join(dir, "data"), Provider: config.ProviderOpenAI, BaseURL: upstream + "/v1", Model: "bench",
	})
	if err != nil {
		return nil, nil, err
	}
	settings.Providers["far"] = config.Provider{
		Name: "far", Type: config.ProviderOpenAI, API: config.APIChat,
		BaseURL: upstream + "/v1", Origin: map[string]string{},
	}
	engine, err := app.OpenEngine(context.Background(), app.Options{Config: settings})
	if err != nil {
		return nil, nil, err
	}
	asOwner := access.AsOwner(context.Background())
	place, err := engine.Service().Workspaces.Open(asOwner, dispatch.WorkspaceRequest{Path: dir})
	if err != nil {
		return nil, nil, errors.Join(err, engine.Close())
	}
	return compat.Handler(compat.Config{
		Service: engine.Service(), Proxy: engine.Proxy(), Workspace: func(context.Context) (regie.Workspace, error) {
			return place, nil
		},
	}), engine.Close, nil
}

// forward is the plain forwarder: it reads, sends and copies.
func forward(client *http.Client, upstream string, w http.ResponseWriter, r *http.Request) {
	request, err := http.NewRequestWithContext(r.Context(), r.Method, upstream+r.URL.Path, r.Body)
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadGateway)
		return
	}
	request.ContentLength = r.ContentLength
	request.Header.Set("Content-Type", "application/json")
	response, err := client.Do(request)
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadGateway)
		return
	}
	defer response.Body.Close()
	w.Header().Set("Content-Type", response.Header.Get("Content-Type"))
	w.WriteHeader(response.StatusCode)
	_, _ = io.Copy(w, response.Body)
}

// proxying measures P13: the time that each contestant adds to a direct request, in the same
// minute.
func (s *session) proxying() error {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	server := &http.Server{
		ReadHeaderTimeout: time.Minute,
		Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			_, _ = io.Copy(io.Discard, r.Body)
			w.Header().Set("Content-Type", "application/json")
			_, _ = io.WriteString(w, proxyReply)
		}),
	}
	go func() { _ = server.Serve(listener) }() // until Close
	defer server.Close()
	upstream := "http://" + listener.Addr().String()
	requests := 2 * proxyRate * s.scale
	var ourMean, theirMean, ourP99, theirP99, ourCPU, theirCPU, peak []float64
	for range s.rounds {
		straight, err := load(upstream, requests)
		if err != nil {
			return err
		}
		ours, cost, err := s.through("proxy", upstream, requests)
		if err != nil {
			return err
		}
		theirs, their, err := s.through("forwarder", upstream, requests)
		if err != nil {
			return err
		}
		ourMean, theirMean = append(ourMean, mean(ours)-mean(straight)), append(theirMean, mean(theirs)-mean(straight))
		ourP99, theirP99 = append(ourP99, percentile(ours, 99)-percentile(straight, 99)),
			append(theirP99, percentile(theirs, 99)-percentile(straight, 99))
		each := func(cpu time.Duration) float64 { return float64(cpu.Microseconds()) / float64(requests) }
		ourCPU, theirCPU, peak = append(ourCPU, each(cost.CPU)),
			append(theirCPU, each(their.CPU)), append(peak, cost.PeakMiB)
	}
	row("P13 added mean at 2,000 requests/s, ms")(median(ourMean), median(theirMean),
		median(ourMean)/median(theirMean), "≤ 0.2", "%.3f")
	row("P13 added p99, ms")(median(ourP99), median(theirP99), median(ourP99)/median(theirP99), "≤ 0.5", "%.3f")
	row("processor time of a request that is passed on, µs")(median(ourCPU), median(theirCPU),
		median(ourCPU)/median(theirCPU), "", "%.0f")
	fmt.Printf("| P13 peak memory, MiB | %.0f | | | ≤ 40 |\n", median(peak))
	return nil
}

// through puts a load through a contestant.
func (s *session) through(who, upstream string, requests int) (latencies []float64, cost forwarded, err error) {
	self, err := os.Executable()
	if err != nil {
		return nil, cost, err
	}
	command := exec.Command(self, "-role", who+" "+upstream)
	command.Stderr = os.Stderr
	stop, err := command.StdinPipe()
	if err != nil {
		return nil, cost, err
	}
	out, err := command.StdoutPipe()
	if err != nil {
		return nil, cost, err
	}
	if err := command.Start(); err != nil {
		return nil, cost, err
	}
	lines := bufio.NewReader(out)
	address, err := lines.ReadString('\n')
	if err == nil {
		latencies, err = load(strings.TrimSpace(address), requests)
	}
	_ = stop.Close()
	said, failed := lines.ReadString('\n')
	if failed == nil {
		failed = json.Unmarshal([]byte(said), &cost)
	}
	return latencies, cost, errors.Join(err, failed, command.Wait())
}

// load sends requests at their rate, whether or not those before are answered, and returns how long
// each took, in milliseconds. The first tenth warms up and is left out.
func load(address string, requests int) ([]float64, error) {
	client := &http.Client{Transport: &http.Transport{
		MaxIdleConns:        512,
		MaxIdleConnsPerHost: 512, DisableCompression: true,
	}}
	defer client.CloseIdleConnections()
	body := `{"model":"` + proxyModel + `","messages":[{"role":"system","content":"` +
		strings.Repeat("Be brief. ", 50) + `"},{"role":"user","content":"hi"}],"temperature":0.7}`
	latencies, failures := make([]float64, requests), make([]error, requests)
	var group sync.WaitGroup
	started := time.Now()
	for i := range requests {
		time.Sleep(time.Until(started.Add(time.Duration(i) * time.Second / proxyRate)))
		group.Go(func() {
			begun := time.Now()
			failures[i] = send(client, address, body)
			latencies[i] = float64(time.Since(begun).Nanoseconds()) / 1e6
		})
	}
	group.Wait()
	return latencies[requests/10:], errors.Join(failures...)
}

func send(client *http.Client, address, body string) error {
	request, err := http.NewRequestWithContext(context.Background(), http.MethodPost,
		address+"/v1/chat/completions", strings.NewReader(body))
	if err != nil {
		return err
	}
	response, err := client.Do(request)
	if err != nil {
		return err
	}
	defer response.Body.Close()
	said, err := io.ReadAll(response.Body)
	if err == nil && string(said) != proxyReply {
		err = fmt.Errorf("%d: %s", response.StatusCode, said)
	}
	return err
}

func mean(values []float64) (out float64) {
	for _, v := range values {
		out += v / float64(len(values))
	}
	return out
}
