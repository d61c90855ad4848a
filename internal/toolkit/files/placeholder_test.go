package files

import (
	"strings"
	"testing"

	"github.com/regie-run/regie"
	"github.com/regie-run/regie/internal/tool"
)

// TestPlaceholder: what stands for a secret that was not shown is not written in the secret's
// place; where it stood before it stays what it is.
func TestPlaceholder(t *testing.T) {
	d := newDesk(t)
	const canary = "sk-test-CANARY123456789"
	mask := tool.NewMask([]tool.Secret{{Name: "KEY", Value: canary}})
	d.file("conf.txt", "a: 1\nkey: "+canary+"\n")
	d.file("notes.txt", "we say [secret: KEY]\n")
	for _, row := range []struct {
		name, operation string
		args            object
		refused         bool
	}{
		{"all of it", "write_file", object{"path": "conf.txt", "content": "a: 2\nkey: [secret: KEY]\n", "mode": "overwrite"}, true},
		{"a new file", "write_file", object{"path": "new.txt", "content": "key: [secret: KEY]\n"}, true},
		{"at the end", "write_file", object{"path": "conf.txt", "content": "key: [secret: KEY]\n", "mode": "append"}, true},
		{"an edit", "edit_file", object{"path": "conf.txt", "edits": []any{object{"old": "a: 1", "new": "key: [secret: KEY]"}}}, true},
		{"beside it", "edit_file", object{"path": "conf.txt", "edits": []any{object{"old": "a: 1", "new": "a: 2"}}}, false},
		{"another name", "write_file", object{"path": "other.txt", "content": "[secret: OTHER]\n"}, false},
		{"where it stood", "write_file", object{"path": "notes.txt", "content": "they say [secret: KEY]\n", "mode": "overwrite"}, false},
	} {
		c, problem := d.check(row.operation, row.args)
		if problem != nil {
			t.Fatalf("%s: %+v", row.name, problem)
		}
		c.inv.Mask = mask
		_, shown := tool.DescribeCall(t.Context(), c.tool, c.inv)
		problem = c.prepare(t)
		if !row.refused {
			if problem != nil || shown != nil || c.run(t).State != regie.CallSucceeded {
				t.Errorf("%s: %+v, %+v", row.name, problem, shown)
			}
			continue
		}
		for _, got := range []*regie.CallError{problem, shown} {
			if got == nil || got.Code != regie.CodeBadArguments || !strings.Contains(got.Message, "[secret: KEY] stands for a secret") {
				t.Errorf("%s: %+v", row.name, got)
			}
		}
	}
	if got := d.content("conf.txt"); got != "a: 2\nkey: "+canary+"\n" {
		t.Errorf("the file holds %q", got)
	}
}
