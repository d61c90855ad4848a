package engine

import "sync"

// memo keeps values that never change under their key. At most of them are kept: then it starts
// anew. It may be used from any goroutine.
type memo[K comparable, V any] struct {
	most int
	mu   sync.Mutex
	kept map[K]V
}

// get returns the value of a key, which create makes where it is not kept.
func (m *memo[K, V]) get(key K, create func() (V, error)) (V, error) {
	m.mu.Lock()
	v, ok := m.kept[key]
	m.mu.Unlock()
	if ok {
		return v, nil
	}
	v, err := create()
	if err != nil {
		return v, err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.kept == nil || len(m.kept) >= m.most {
		m.kept = map[K]V{}
	}
	m.kept[key] = v
	return v, nil
}
