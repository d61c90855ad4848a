package main

import (
	"bufio"
	"bytes"
	"context"
	"database/sql"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"path/filepath"
	"strings"
	"sync"

	_ "modernc.org/sqlite" // the same driver as Regie's
)

// floor is the bare loop. storage is "none", "full" (one commit at a time) or "group" (group
// commit, both at synchronous=FULL).
type floor struct {
	url     string
	storage string
	client  *http.Client
	db      *sql.DB
	mu      sync.Mutex // storage full: one writer at a time
	insert  *sql.Stmt
	group   chan *floorCommit
	done    chan struct{}
	noop    func()
}

// floorCommit is what one step stores.
type floorCommit struct {
	rows []floorRow
	err  error
	done chan struct{}
}

type floorRow struct {
	run, role string
	seq       int
	body      []byte
}

func newFloor(url, dir, storage string, noop func()) (*floor, error) {
	f := &floor{
		url: url, storage: storage,
		noop: noop, client: &http.Client{Transport: &http.Transport{
			MaxIdleConnsPerHost: 256, WriteBufferSize: 64 << 10,
		}},
	}
	if storage == "none" {
		return f, nil
	}
	var err error
	f.db, err = sql.Open("sqlite", "file:"+filepath.Join(dir, "floor.db")+
		"?_pragma=journal_mode(WAL)&_pragma=synchronous(FULL)&_txlock=immediate")
	if err != nil {
		return nil, err
	}
	f.db.SetMaxOpenConns(1)
	if _, err := f.db.Exec("CREATE TABLE messages (run TEXT, seq INTEGER, role TEXT, body BLOB, PRIMARY KEY (run, seq)) WITHOUT ROWID"); err != nil {
		return nil, err
	}
	if f.insert, err = f.db.Prepare("INSERT INTO messages (run, seq, role, body) VALUES (?, ?, ?, ?)"); err != nil {
		return nil, err
	}
	if storage == "group" {
		f.group, f.done = make(chan *floorCommit, 256), make(chan struct{})
		go f.writer()
	}
	return f, nil
}

func (f *floor) close() error {
	if f.group != nil {
		close(f.group)
		<-f.done
	}
	if f.db == nil {
		return nil
	}
	return f.db.Close()
}

// commit stores the rows of one step; it returns when they are on the disk.
func (f *floor) commit(rows ...floorRow) error {
	switch f.storage {
	case "none":
		return nil
	case "group":
		c := &floorCommit{rows: rows, done: make(chan struct{})}
		f.group <- c
		<-c.done
		return c.err
	default:
		f.mu.Lock()
		defer f.mu.Unlock()
		return f.write(&floorCommit{rows: rows})
	}
}

func (f *floor) write(commits ...*floorCommit) error {
	tx, err := f.db.Begin()
	if err != nil {
		return err
	}
	insert := tx.Stmt(f.insert)
	for _, c := range commits {
		for _, r := range c.rows {
			if _, err := insert.Exec(r.run, r.seq, r.role, r.body); err != nil {
				_ = tx.Rollback()
				return err
			}
		}
	}
	return tx.Commit()
}

// writer groups what waits into one commit.
func (f *floor) writer() {
	defer close(f.done)
	for first := range f.group {
		group := []*floorCommit{first}
		for more := true; more && len(group) < 256; {
			select {
			case c, ok := <-f.group:
				if more = ok; ok {
					group = append(group, c)
				}
			default:
				more = false
			}
		}
		err := f.write(group...)
		for _, c := range group {
			c.err = err
			close(c.done)
		}
	}
}

type floorMessage struct {
	Role       string      `json:"role"`
	Content    string      `json:"content,omitempty"`
	ToolCalls  []floorCall `json:"tool_calls,omitempty"`
	ToolCallID string      `json:"tool_call_id,omitempty"`
}

type floorCall struct {
	ID       string `json:"id"`
	Type     string `json:"type"`
	Function struct {
		Name      string `json:"name"`
		Arguments string `json:"arguments"`
	} `json:"function"`
}

// run performs one run: the obvious loop, which appends to its body and never encodes it again.
func (f *floor) run(ctx context.Context, name string, steps int) error {
	body := []byte(`{"model":"` + modelName(steps) +
		`","stream":true,"stream_options":{"include_usage":true},"max_tokens":8192,"tools":[` +
		`{"type":"function","function":{"name":"` + wireA +
		`","description":"does nothing","parameters":{"type":"object"}}},` +
		`{"type":"function","function":{"name":"` + wireB +
		`","description":"does nothing","parameters":{"type":"object"}}}],"messages":[`)
	seq := 0
	add := func(m floorMessage) (floorRow, error) {
		data, err := json.Marshal(m)
		if seq > 0 {
			body = append(body, ',')
		}
		body = append(body, data...)
		seq++
		return floorRow{run: name, seq: seq, role: m.Role, body: data}, err
	}
	row, err := add(floorMessage{Role: "user", Content: job(name)})
	if err != nil {
		return err
	}
	if err := f.commit(row); err != nil {
		return err
	}
	for {
		reply, err := f.ask(ctx, append(body, "]}"...))
		if err != nil {
			return err
		}
		if row, err = add(reply); err != nil {
			return err
		}
		if err := f.commit(row); err != nil {
			return err
		}
		if len(reply.ToolCalls) == 0 {
			return nil
		}
		var group sync.WaitGroup
		for range reply.ToolCalls {
			group.Go(f.noop)
		}
		group.Wait()
		rows := make([]floorRow, len(reply.ToolCalls))
		for i, c := range reply.ToolCalls {
			if rows[i], err = add(floorMessage{Role: "tool", ToolCallID: c.ID, Content: "ok"}); err != nil {
				return err
			}
		}
		if err := f.commit(rows...); err != nil {
			return err
		}
	}
}

type floorChunk struct {
	Choices []struct {
		Delta struct {
			Content   string `json:"content"`
			ToolCalls []struct {
				Index int `json:"index"`
				floorCall
			} `json:"tool_calls"`
		} `json:"delta"`
	} `json:"choices"`
}

func (f *floor) ask(ctx context.Context, body []byte) (floorMessage, error) {
	reply := floorMessage{Role: "assistant"}
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, f.url+"/chat/completions", bytes.NewReader(body))
	if err != nil {
		return reply, err
	}
	request.Header.Set("Content-Type", "application/json")
	response, err := f.client.Do(request)
	if err != nil {
		return reply, err
	}
	defer response.Body.Close()
	var text strings.Builder
	in := bufio.NewReader(response.Body)
	for {
		line, err := in.ReadSlice('\n')
		if err == io.EOF {
			return reply, fmt.Errorf("the stream was cut")
		}
		if err != nil {
			return reply, err
		}
		data, ok := bytes.CutPrefix(line, []byte("data: "))
		if !ok {
			continue
		}
		if bytes.HasPrefix(data, []byte("[DONE]")) {
			reply.Content = text.String()
			_, err := io.Copy(io.Discard, in) // so that the connection is used again
			return reply, err
		}
		var chunk floorChunk
		if err := json.Unmarshal(data, &chunk); err != nil {
			return reply, err
		}
		for _, choice := range chunk.Choices {
			text.WriteString(choice.Delta.Content)
			for _, c := range choice.Delta.ToolCalls {
				reply.ToolCalls = append(reply.ToolCalls, c.floorCall)
			}
		}
	}
}
