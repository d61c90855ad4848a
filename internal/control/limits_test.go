package control

import (
	"testing"

	"github.com/regie-run/regie"
	"github.com/regie-run/regie/internal/provider"
)

// capable is a provider that only says what it can.
type capable struct {
	provider.Provider
	can provider.Capabilities
}

// Capabilities implements provider.Provider.
func (c capable) Capabilities(string) provider.Capabilities { return c.can }

// TestCheckDialect: a run keeps its dialect under another provider, which must support it.
func TestCheckDialect(t *testing.T) {
	for _, c := range []struct {
		name    string
		dialect regie.Dialect
		can     provider.Capabilities
		want    regie.Code
	}{
		{"native, with tools", regie.DialectNative, provider.Capabilities{NativeTools: true}, ""},
		{"native, without tools", regie.DialectNative, provider.Capabilities{}, regie.CodeBadRequest},
		{"JSON, with tools", regie.DialectJSON, provider.Capabilities{NativeTools: true}, ""},
		{"JSON, without tools", regie.DialectJSON, provider.Capabilities{}, ""},
		{"JSON, native alone", regie.DialectJSON, provider.Capabilities{NativeTools: true, NativeOnly: true}, regie.CodeBadRequest},
	} {
		k := &core{Config: Config{Models: func(string, regie.Hash) (provider.Provider, error) { return capable{can: c.can}, nil }}}
		if err := k.checkDialect(c.dialect, "p", "m", regie.Hash{}); regie.CodeOf(err) != c.want && (err != nil || c.want != "") {
			t.Errorf("%s: %v, want %q", c.name, err, c.want)
		}
	}
}
