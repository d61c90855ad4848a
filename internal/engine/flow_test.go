package engine

import "testing"

func TestHoldPrivate(t *testing.T) {
	files := FileSettings{Private: []string{"pay/**", "docs/a.md", "*.pay"}}
	for name, want := range map[string]bool{
		"pay/2026/x": true, "pay": true, "docs/a.md": true, "x/y.pay": true, "": true,
		"payroll/x": false, "docs/b.md": false, "a.md": false, ".": false,
	} {
		if got := files.holdPrivate(name); got != want {
			t.Errorf("%q: %t", name, got)
		}
	}
	if (&FileSettings{}).holdPrivate("") {
		t.Error("nothing is private")
	}
}
