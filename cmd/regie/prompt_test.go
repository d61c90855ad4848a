package main

import (
	"encoding/json"
	"testing"

	"github.com/regie-run/regie/internal/dispatch"
)

// TestReadablePrompt: a request is shown as the JSON that it is, or as a text where it is something
// else.
func TestReadablePrompt(t *testing.T) {
	t.Parallel()
	for body, want := range map[string]string{`{"model":"m"}`: `{"model":"m"}`, "{\"a\":1}\n{\"b\":2}\n": `"{\"a\":1}\n{\"b\":2}\n"`, "plain": `"plain"`, "": `""`} {
		data, err := json.Marshal(readable(dispatch.Prompt{Model: "m", Body: []byte(body)}))
		var got struct {
			Model string
			Body  json.RawMessage
		}
		if err == nil {
			err = json.Unmarshal(data, &got)
		}
		if err != nil || string(got.Body) != want || got.Model != "m" {
			t.Errorf("%q: %s, %v", body, got.Body, err)
		}
	}
}
