package sqlite

import (
	"context"
	"maps"
	"sync"
	"time"

	"github.com/regie-run/regie/internal/store"
)

// settingCache keeps what Settings read until something is settled: it is asked for at each round,
// and hardly ever changes.
type settingCache struct {
	mu      sync.Mutex
	version int64
	read    map[string]string
}

func (c *settingCache) get() (read map[string]string, version int64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.read, c.version
}

// put keeps what was read under a version; where something was settled meanwhile it is not kept.
func (c *settingCache) put(read map[string]string, version int64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if version == c.version {
		c.read = read
	}
}

func (c *settingCache) changed() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.version++
	c.read = nil
}

// Settings returns the values that were settled by the interface and hold, by their names (decision
// 52).
func (s tokenStore) Settings(ctx context.Context) (map[string]string, error) {
	known, version := s.settled.get()
	if known != nil && s.other == nil { // with other processes each look is a fresh one
		return maps.Clone(known), nil
	}
	rows, err := s.read.QueryContext(ctx,
		"SELECT name, value FROM settings s WHERE value <> '' AND n = (SELECT max(n) FROM settings l WHERE l.name = s.name)")
	if err != nil {
		return nil, explain(err, FileName)
	}
	defer rows.Close()
	out := map[string]string{}
	for rows.Next() {
		var name, value string
		if err := rows.Scan(&name, &value); err != nil {
			return nil, explain(err, FileName)
		}
		out[name] = value
	}
	if err := rows.Err(); err != nil {
		return nil, explain(err, FileName)
	}
	s.settled.put(maps.Clone(out), version)
	return out, nil
}

// Settle stores values that hold from now on, all of them or none, and who said so.
func (s tokenStore) Settle(ctx context.Context, values []store.Setting, by string) error {
	now := time.Now()
	defer s.settled.changed()
	return s.writer.do(ctx, func(t *tx) error {
		for _, v := range values {
			if err := t.exec("INSERT INTO settings (name, value, by, at) VALUES (?, ?, ?, ?)", v.Name, v.Value, by,
				now.UnixMicro()); err != nil {
				return err
			}
		}
		return nil
	})
}
