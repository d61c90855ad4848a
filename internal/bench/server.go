package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"strconv"
	"strings"
	"sync"
	"time"
)

// The model's name tells the script: bench-N makes N exchanges of two calls, then answers.
const (
	modelPrefix  = "bench-"
	answerTokens = 200
	toolA        = "bench.noop_a"
	toolB        = "bench.noop_b"
	wireA        = "bench__noop_a"
	wireB        = "bench__noop_b"
	// envelope is a streamed chunk around its delta.
	envelope = `data: {"id":"bench","object":"chat.completion.chunk","created":1,"model":"bench",` +
		`"choices":[{"index":0,"delta":%s,"finish_reason":null}]}` + "\n\n"
)

// server is the scripted model: no latency, and no state but the times. It reads the script from
// the model's name at the head of the request, and the step from the number of assistant messages.
// A plain scan keeps its own cost out of the measurement.
type server struct {
	answer []byte

	streams map[int][]byte // under mu: by tokens, all of a stream but its first one
	mu      sync.Mutex
	last    map[string]time.Time // when a run's last response byte was written
	gaps    []gap
}

// gap is the time from a response's last byte to the full arrival of the next request: the
// runtime's whole cost of a step.
type gap struct {
	Step int   `json:"step"`
	NS   int64 `json:"ns"`
}

func newServer() *server {
	s := &server{last: map[string]time.Time{}, streams: map[int][]byte{}}
	var b bytes.Buffer
	for i := range answerTokens {
		fmt.Fprintf(&b, envelope, fmt.Sprintf(`{"content":" token%d"}`, i))
	}
	b.WriteString(ending("stop"))
	s.answer = b.Bytes()
	return s
}

func (s *server) handler() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("POST /v1/chat/completions", s.complete)
	mux.HandleFunc("POST /gaps", s.takeGaps)
	return mux
}

// serve runs the server until standard input closes; it prints its address.
func serve() error {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	fmt.Println("http://" + listener.Addr().String())
	server := &http.Server{Handler: newServer().handler(), ReadHeaderTimeout: time.Minute}
	go func() { _ = server.Serve(listener) }() // ends with the process
	_, err = io.Copy(io.Discard, os.Stdin)
	return err
}

func ending(reason string) string {
	return "data: {\"choices\":[{\"index\":0,\"delta\":{},\"finish_reason\":\"" + reason + "\"}]}\n\n" +
		"data: {\"choices\":[],\"usage\":{\"prompt_tokens\":100,\"completion_tokens\":20}}\n\ndata: [DONE]\n\n"
}

func callsOf(step int) []byte {
	var b bytes.Buffer
	for i, name := range []string{wireA, wireB} {
		fmt.Fprintf(&b, envelope, fmt.Sprintf(`{"tool_calls":[{"index":%d,"id":"call_%d_%d","type":"function",`+
			`"function":{"name":"%s","arguments":"{\"n\":%d}"}}]}`, i, step, i, name, step))
	}
	b.WriteString(ending("tool_calls"))
	return b.Bytes()
}

func (s *server) complete(w http.ResponseWriter, r *http.Request) {
	body := make([]byte, r.ContentLength)
	if _, err := io.ReadFull(r.Body, body); err != nil {
		return
	}
	arrived := time.Now()
	if _, rest, ok := bytes.Cut(body[:min(len(body), 4<<10)], []byte(`"model":"`+streamPrefix)); ok {
		number, _, _ := bytes.Cut(rest, []byte{'"'})
		if tokens, err := strconv.Atoi(string(number)); err == nil && tokens > 0 {
			s.stream(w, tokens)
			return
		}
	}
	if bytes.Contains(body[:min(len(body), 4<<10)], []byte(`"model":"`+pacedModel+`"`)) {
		s.streamPaced(w)
		return
	}
	steps, run, err := readScript(body)
	if err != nil {
		http.Error(w, `{"error":{"message":"`+err.Error()+`"}}`, http.StatusBadRequest)
		return
	}
	step := bytes.Count(body, []byte(`"role":"assistant"`))
	s.mu.Lock()
	if last, ok := s.last[run]; ok {
		s.gaps = append(s.gaps, gap{Step: step, NS: arrived.Sub(last).Nanoseconds()})
	}
	s.mu.Unlock()
	w.Header().Set("Content-Type", "text/event-stream")
	reply := s.answer
	if step < steps {
		reply = callsOf(step)
	}
	_, _ = w.Write(reply) // the whole reply at once: the model has no latency
	now := time.Now()
	s.mu.Lock()
	if step < steps {
		s.last[run] = now
	} else {
		delete(s.last, run)
	}
	s.mu.Unlock()
}

// readScript reads the number of steps from the model's name and the run's name from the first user
// message.
func readScript(body []byte) (steps int, run string, err error) {
	head := body[:min(len(body), 64<<10)]
	_, rest, ok := bytes.Cut(head, []byte(`"model":"`+modelPrefix))
	number, _, _ := bytes.Cut(rest, []byte{'"'})
	if steps, err = strconv.Atoi(string(number)); !ok || err != nil {
		return 0, "", fmt.Errorf("no script in the model's name")
	}
	_, rest, ok = bytes.Cut(head, []byte("bench run "))
	if !ok {
		return 0, "", fmt.Errorf("no run in the first message")
	}
	return steps, string(rest[:bytes.IndexByte(rest, '.')]), nil
}

func (s *server) takeGaps(w http.ResponseWriter, _ *http.Request) {
	s.mu.Lock()
	gaps := s.gaps
	s.gaps = nil
	s.mu.Unlock()
	_ = json.NewEncoder(w).Encode(gaps)
}

// job is the user's message of a run.
func job(run string) string { return "bench run " + run + ". Do your work." }

func modelName(steps int) string { return modelPrefix + strconv.Itoa(steps) }

// fetchGaps takes the gaps that the server has measured since the last time.
func fetchGaps(url string) ([]gap, error) {
	response, err := http.Post(strings.TrimSuffix(url, "/v1")+"/gaps", "", nil)
	if err != nil {
		return nil, err
	}
	defer response.Body.Close()
	var gaps []gap
	err = json.NewDecoder(response.Body).Decode(&gaps)
	return gaps, err
}
