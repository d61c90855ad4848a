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
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/regie-run/regie"
	"github.com/regie-run/regie/internal/access"
	"github.com/regie-run/regie/internal/config"
	"github.com/regie-run/regie/internal/dispatch"
)

// streamPrefix begins the name of a model that streams as many tokens as its name says. Its first
// token says when it was sent.
const (
	streamPrefix = modelPrefix + "s"
	firstMark    = "@"
)

// stream answers with tokens: the first one flushed separately, the others in one piece.
func (s *server) stream(w http.ResponseWriter, tokens int) {
	w.Header().Set("Content-Type", "text/event-stream")
	s.mu.Lock()
	rest, ok := s.streams[tokens]
	if !ok {
		var b bytes.Buffer
		for i := range tokens - 1 {
			fmt.Fprintf(&b, envelope, fmt.Sprintf(`{"content":" token%d"}`, i))
		}
		b.WriteString(ending("stop"))
		rest = b.Bytes()
		s.streams[tokens] = rest
	}
	s.mu.Unlock()
	_, _ = fmt.Fprintf(w, envelope, fmt.Sprintf(`{"content":"%s%d"}`, firstMark, time.Now().UnixNano()))
	_ = http.NewResponseController(w).Flush()
	_, _ = w.Write(rest)
}

// sinceSent returns how long ago a first token was sent, in nanoseconds; 0 for other tokens. A late
// listener gets it in one piece with the tokens behind it.
func sinceSent(token string) int64 {
	text, ok := strings.CutPrefix(token, firstMark)
	text, _, _ = strings.Cut(text, " ")
	at, err := strconv.ParseInt(text, 10, 64)
	if !ok || err != nil {
		return 0
	}
	return time.Now().UnixNano() - at
}

// streaming measures P4: the cost of a token with zero, one and five listeners, and the delay of
// the first token compared with a bare client.
func (s *session) streaming() error {
	var one, further, added []float64
	for range s.rounds {
		var cost [3]float64
		for i, listeners := range []int{0, 1, 5} {
			r, _, err := s.trial(trial{Contestant: "regie", Tokens: 1000, Listeners: listeners, Runs: 40 * s.scale})
			if err != nil {
				return err
			}
			cost[i] = r.CPU
		}
		one, further = append(one, cost[1]-cost[0]), append(further, (cost[2]-cost[1])/4)
		ours, _, err := s.trial(trial{Contestant: "regie", Tokens: 20, Listeners: 1, Runs: 300 * s.scale})
		if err != nil {
			return err
		}
		theirs, _, err := s.trial(trial{Contestant: "floor-none", Tokens: 20, Listeners: 1, Runs: 300 * s.scale})
		if err != nil {
			return err
		}
		added = append(added, float64(percentile(ours.First, 99)-percentile(theirs.First, 99))/1e6)
	}
	fmt.Printf("| P4 p99 of the first token, added to a bare client's, ms | %.3f | | | ≤ 0.3 |\n", median(added))
	fmt.Printf("| P4 processor time of a token to one listener, µs | %.2f | | | ≤ 3 |\n", median(one))
	fmt.Printf("| P4 the same to each further one, µs | %.2f | | | ≤ 2 |\n", median(further))
	return nil
}

// listener is a contestant of P4.
type listener interface {
	// listen makes runs of that many tokens with that many listeners, and returns the delay of each
	// first token.
	listen(ctx context.Context, tokens, listeners, runs int) (first []int64, err error)
}

// streams is a trial of P4.
func (t trial) streams(c contender) (result, error) {
	l, ok := c.(listener)
	if !ok {
		return result{}, fmt.Errorf("%s does not stream", t.Contestant)
	}
	if _, err := l.listen(context.Background(), t.Tokens, t.Listeners, 10); err != nil { // warm
		return result{}, err
	}
	before, err := resources()
	if err != nil {
		return result{}, err
	}
	first, err := l.listen(context.Background(), t.Tokens, t.Listeners, t.Runs)
	after, failed := resources()
	return result{First: first, CPU: (processor(after) - processor(before)) / float64(t.Tokens*t.Runs)},
		errors.Join(err, failed)
}

// runsOfSession is how many runs a session of P4 has: their prompts stay short.
const runsOfSession = 5

// listen implements listener.
func (c *contestant) listen(ctx context.Context, tokens, listeners, runs int) (first []int64, err error) {
	for done := 0; done < runs; done += runsOfSession {
		session := regie.NewID()
		if err := c.streamed(ctx, session, modelName(0)); err != nil { // there is a session to listen to now
			return nil, err
		}
		var mu sync.Mutex
		var group sync.WaitGroup
		joined := make(chan struct{}, listeners)
		for range listeners {
			group.Go(func() {
				ends, heard := 0, 0
				events := c.engine.Service().Events
				failed := events.Follow(access.AsOwner(ctx), session, 0, func(item dispatch.Item) error {
					if item.Delta != nil {
						heard += strings.Count(item.Delta.Content, " token")
						if ns := sinceSent(item.Delta.Content); ns > 0 {
							mu.Lock()
							first = append(first, ns)
							mu.Unlock()
						}
						return nil
					}
					if item.Event == nil || item.Event.Type != regie.EventRound ||
						!bytes.Contains(item.Event.Body, []byte(`"ENDED"`)) {
						return nil
					}
					switch ends++; ends {
					case 1:
						joined <- struct{}{}
					case 1 + runsOfSession:
						return io.EOF
					}
					return nil
				})
				mu.Lock()
				defer mu.Unlock()
				if !errors.Is(failed, io.EOF) {
					err = errors.Join(err, failed)
				} else if heard < (tokens-1)*runsOfSession*9/10 {
					err = errors.Join(err, fmt.Errorf("a listener heard %d of %d tokens",
						heard, (tokens-1)*runsOfSession))
				}
			})
		}
		for range listeners {
			<-joined
		}
		for range runsOfSession {
			if failed := c.streamed(ctx, session, streamPrefix+strconv.Itoa(tokens)); failed != nil {
				return nil, failed
			}
		}
		group.Wait()
		if err != nil {
			return nil, err
		}
	}
	return first, nil
}

// streamed is one run of P4.
func (c *contestant) streamed(ctx context.Context, session regie.ID, model string) error {
	run, err := c.engine.Service().Rounds.Submit(access.AsOwner(ctx), dispatch.RunRequest{
		SessionID: session, Root: c.dir, FoundBy: "directory", Text: job("stream"), Agent: "main",
		Provider: config.ProviderOpenAI, Model: model,
	})
	if err != nil {
		return err
	}
	return c.engine.Wait(ctx, run.RoundID)
}

// listen implements listener: a simple client that reads the stream line by line.
func (f *floor) listen(ctx context.Context, tokens, _, runs int) (first []int64, err error) {
	body := `{"model":"` + streamPrefix + strconv.Itoa(tokens) +
		`","stream":true,"messages":[{"role":"user","content":"` + job("stream") + `"}]}`
	for range runs {
		request, err := http.NewRequestWithContext(ctx, http.MethodPost,
			f.url+"/chat/completions", strings.NewReader(body))
		if err != nil {
			return nil, err
		}
		response, err := f.client.Do(request)
		if err != nil {
			return nil, err
		}
		in := bufio.NewReader(response.Body)
		for {
			line, err := in.ReadSlice('\n')
			if err != nil {
				break
			}
			var chunk floorChunk
			if data, ok := bytes.CutPrefix(line, []byte("data: {")); !ok ||
				json.Unmarshal(append([]byte("{"), data...), &chunk) != nil {
				continue
			}
			for _, choice := range chunk.Choices {
				if ns := sinceSent(choice.Delta.Content); ns > 0 {
					first = append(first, ns)
				}
			}
		}
		if err := response.Body.Close(); err != nil {
			return nil, err
		}
	}
	return first, nil
}
