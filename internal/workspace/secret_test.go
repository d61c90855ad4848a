package workspace_test

import (
	"testing"

	"github.com/regie-run/regie/internal/workspace"
)

// TestHoldsSecret looks at ignored files too: a command reads them.
func TestHoldsSecret(t *testing.T) {
	for name, want := range map[string]bool{
		"a/b/.env": true, "build/id_rsa": true, "a.txt": false, ".env.example": false, ".git/x.pem": false,
	} {
		p := newPlace(t)
		p.file(".gitignore", "build\n")
		p.file(name, "x")
		if got := workspace.HoldsSecret(t.Context(), p.dir); got != want {
			t.Errorf("%s: %t", name, got)
		}
	}
}
