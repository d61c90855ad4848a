package anthropic_test

import (
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"

	"github.com/regie-run/regie"
	"github.com/regie-run/regie/internal/provider"
	"github.com/regie-run/regie/internal/provider/anthropic"
)

// cacheServer is a Messages API with the vendor's prompt cache: what lies before a mark is written,
// and found again by a later request that has a mark at it or at most documentedLookBack blocks
// behind it. A token is a byte here.
type cacheServer struct {
	t      *testing.T
	calls  []int    // how many calls each reply makes
	usages [][3]int // input, creation and read of each request
	cached map[[sha256.Size]byte]bool
}

// documentedLookBack is what the vendor documents: about 20 blocks.
const documentedLookBack = 20

// cacheBlock is one of a request's, in the order of the cache: tools, system, messages.
type cacheBlock struct {
	size   int
	prefix [sha256.Size]byte // of everything up to it
	mark   bool
}

func (s *cacheServer) blocks(r *http.Request) (out []cacheBlock) {
	var request struct {
		Tools, System []map[string]any
		Messages      []struct {
			Role    string
			Content json.RawMessage
		}
	}
	if err := json.NewDecoder(r.Body).Decode(&request); err != nil {
		s.t.Error(err)
	}
	var before [sha256.Size]byte
	add := func(kind string, members map[string]any) {
		_, mark := members["cache_control"]
		delete(members, "cache_control")
		data, err := json.Marshal(members)
		if err != nil {
			s.t.Error(err)
		}
		before = sha256.Sum256(append(append(before[:], kind...), data...))
		out = append(out, cacheBlock{len(data), before, mark})
	}
	for _, tool := range request.Tools {
		add("tool", tool)
	}
	for _, level := range request.System {
		add("system", level)
	}
	for _, m := range request.Messages {
		var content []map[string]any
		if json.Unmarshal(m.Content, &content) != nil {
			content = []map[string]any{{"type": "text", "text": string(m.Content)}}
		}
		for _, members := range content {
			add(m.Role, members)
		}
	}
	return out
}

// count is what a request costs: input that is neither written nor read, written, read.
func (s *cacheServer) count(blocks []cacheBlock) (usage [3]int) {
	last, read, marks := -1, -1, []int{}
	for i := range slices.Backward(blocks) {
		if blocks[i].mark {
			marks, last = append(marks, i), max(last, i)
		}
	}
	if len(marks) > 4 {
		s.t.Errorf("%d marks, the API takes 4", len(marks))
	}
	for _, mark := range marks {
		for i := mark; i >= max(0, mark-documentedLookBack) && i > read; i-- {
			if s.cached[blocks[i].prefix] {
				read = i
			}
		}
	}
	for i, b := range blocks {
		switch {
		case i <= read:
			usage[2] += b.size
		case i <= last:
			usage[1] += b.size
		default:
			usage[0] += b.size
		}
	}
	for _, mark := range marks {
		s.cached[blocks[mark].prefix] = true
	}
	return usage
}

func (s *cacheServer) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	usage := s.count(s.blocks(r))
	lines := []string{fmt.Sprintf(`{"type":"message_start","message":{"usage":{"input_tokens":%d,"cache_creation_input_tokens":%d,"cache_read_input_tokens":%d}}}`, usage[0], usage[1], usage[2])}
	lines = append(lines, fmt.Sprintf(`{"type":"content_block_start","index":0,"content_block":{"type":"text","text":"step %d"}}`, len(s.usages)))
	reason := "end_turn"
	for i := range s.calls[len(s.usages)] {
		lines = append(lines, block(i+1, fmt.Sprintf(`{"type":"tool_use","id":"toolu_%d_%d","name":"files__read_file","input":{}}`, len(s.usages), i)))
		reason = "tool_use"
	}
	s.usages = append(s.usages, usage)
	w.Header().Set("Content-Type", "text/event-stream")
	_, _ = w.Write([]byte(events(append(lines, because(reason), ended)...)))
}

// exchanges runs a thread whose replies make so many calls each, and returns what each request read
// of the cache and could have read: all that was written or read by the one before it.
func exchanges(t *testing.T, s *cacheServer) (reads, possible []int64) {
	t.Helper()
	s.t, s.cached = t, map[[sha256.Size]byte]bool{}
	server := httptest.NewServer(s)
	defer server.Close()
	p, err := anthropic.New(anthropic.Config{Name: "test", BaseURL: server.URL})
	if err != nil {
		t.Fatal(err)
	}
	with := head
	with.Level1, with.Level2 = strings.Repeat("You are. ", 50), strings.Repeat("They are. ", 50)
	c, err := p.Open(with)
	if err != nil {
		t.Fatal(err)
	}
	c.Append(user("go"))
	before := int64(0)
	for i := range s.calls {
		c.EndWith(provider.Tail{Guidance: strings.Repeat("x", i)}) // never part of what is cached
		reply, err := c.Send(t.Context(), nil)
		if err != nil {
			t.Fatal(err)
		}
		u := reply.Usage
		if got := [3]int{int(u.Input - u.CacheCreation - u.CacheRead), int(u.CacheCreation), int(u.CacheRead)}; got != s.usages[i] {
			t.Errorf("request %d cost %v, and the reply says %v", i, s.usages[i], got)
		}
		reads, possible = append(reads, u.CacheRead), append(possible, before)
		before = u.CacheRead + u.CacheCreation
		var ids []string
		for _, part := range reply.Parts {
			if part.Type == regie.PartCall {
				ids = append(ids, part.Call.ID)
			}
		}
		c.Append(provider.Turn{Role: provider.RoleAssistant, Parts: reply.Parts})
		if len(ids) > 0 {
			c.Append(results(ids...))
		} else {
			c.Append(user("and now?"))
		}
	}
	return reads, possible
}

// TestCachedReads: each request reads from the cache all that the one before it left there, also
// behind an exchange of 10 calls, which is more blocks than the API looks back (decision 50).
func TestCachedReads(t *testing.T) {
	calls := []int{0, 1, 3, 10, 0, 7, 8, 10, 10, 1}
	reads, possible := exchanges(t, &cacheServer{calls: calls})
	if possible[1] == 0 || !slices.Equal(reads, possible) {
		t.Errorf("of %v\nread %v", possible, reads)
	}
}
