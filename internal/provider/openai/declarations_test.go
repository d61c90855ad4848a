package openai

import (
	"encoding/json"
	"fmt"
	"testing"

	"github.com/regie-run/regie/internal/provider"
)

func declared() []provider.Tool {
	var tools []provider.Tool
	for i := range 20 {
		tools = append(tools, provider.Tool{
			Name: fmt.Sprintf("files__tool_%d", i), Description: "Reads a “file”\nof the workspace, " + fmt.Sprint(i),
			Parameters: json.RawMessage(`{"type":"object","properties":{"path":{"type":"string","description":"where it is"}}}`),
		})
	}
	return tools
}

// TestKeptDeclarations sends the same bytes whether the declarations were kept or encoded anew, to
// any server of this kind.
func TestKeptDeclarations(t *testing.T) {
	kept := &provider.Encoded{}
	for _, vendor := range []string{"", "deepseek", "openai", ""} {
		p, err := New(Config{Name: "x", BaseURL: "http://127.0.0.1:1/v1", Vendor: vendor})
		if err != nil {
			t.Fatal(err)
		}
		body := func(encoded *provider.Encoded) string {
			c, err := p.Open(provider.Head{Model: "m", Level1: "one", MaxOutput: 9, Tools: declared(), Encoded: encoded})
			if err != nil {
				t.Fatal(err)
			}
			opened, ok := c.(*conversation)
			if !ok {
				t.Fatalf("it opened %T", c)
			}
			whole := string(opened.Body())
			if !json.Valid([]byte(whole)) {
				t.Errorf("no JSON: %s", whole)
			}
			return whole
		}
		if anew, again := body(nil), body(kept); anew != again {
			t.Errorf("%s\nis not\n%s", again, anew)
		}
	}
}
