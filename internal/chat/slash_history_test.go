package chat

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"
)

// TestHistory: slash commands are kept for their workspace and across programs, a bounded number
// of them, and a file that cannot be read keeps nobody from working.
func TestHistory(t *testing.T) {
	dir := t.TempDir()
	h := NewHistory(dir)
	for i := range 2*maxHistory + 1 {
		h.Add("/a", fmt.Sprintf("/show %d", i))
	}
	h.Add("/b", "/undo")
	if got := NewHistory(dir).Typed("/b"); len(got) != 1 || got[0].Text != "/undo" {
		t.Errorf("%+v", got)
	}
	got := h.Typed("/a")
	if len(got) != maxHistory || got[0].Text != fmt.Sprintf("/show %d", maxHistory+1) || got[0].At.After(got[1].At) {
		t.Errorf("%d: %+v", len(got), got[:2])
	}
	if info, err := os.Stat(filepath.Join(dir, "slash_commands.jsonl")); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("%v %v", info, err)
	}
	broken := NewHistory(filepath.Join(dir, "missing"))
	broken.Add("/a", "/undo")
	(*History)(nil).Add("/a", "/undo")
	if got := append(broken.Typed("/a"), (*History)(nil).Typed("/a")...); len(got) != 0 {
		t.Errorf("%+v", got)
	}
}
