package wire

import (
	"net/http"
	"strings"
	"testing"
)

// TestNotThere: what a server does not know is the path that an address lacks, or the model.
func TestNotThere(t *testing.T) {
	const example = "http://127.0.0.1:8000/v1"
	for address, want := range map[string]string{
		"http://127.0.0.1:9":    "answered 404: its address may lack a path; try http://127.0.0.1:9/v1: nothing here",
		"http://127.0.0.1:9/":   "try http://127.0.0.1:9/v1: nothing here",
		"http://127.0.0.1:9/v2": "answered 404: is it the model's name, or the address? regie models shows both: nothing here",
	} {
		s, err := New(Config{Address: address, Example: example, API: "Chat Completions"})
		if err != nil {
			t.Fatal(err)
		}
		if e := s.refused(http.StatusNotFound, nil, strings.NewReader("nothing here")); !strings.HasSuffix(e.Message, want) {
			t.Errorf("%s: %s", address, e.Message)
		}
	}
}
