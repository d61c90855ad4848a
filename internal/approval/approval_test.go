package approval_test

import (
	"testing"

	"github.com/regie-run/regie"
	"github.com/regie-run/regie/internal/approval"
)

func TestDecide(t *testing.T) {
	for _, c := range []struct {
		allow []string
		tool  string
		kind  regie.CallKind
		want  approval.Verdict
	}{
		{nil, "files.read_file", regie.KindQuery, approval.Allow},
		{nil, "files.write_file", regie.KindAction, approval.Ask},
		{[]string{"files.write_file"}, "files.write_file", regie.KindAction, approval.Allow},
		{[]string{"files.*"}, "files.write_file", regie.KindAction, approval.Allow},
		{[]string{"*.*"}, "bank.pay", regie.KindAction, approval.Allow},
		{[]string{"files.*"}, "filesystem.wipe", regie.KindAction, approval.Ask},
		{[]string{"files.write"}, "files.write_file", regie.KindAction, approval.Ask},
		{[]string{"shell.*", "notes.*"}, "notes.create_note", regie.KindAction, approval.Allow},
		{[]string{"[broken"}, "files.write_file", regie.KindAction, approval.Ask},
	} {
		if got := approval.Decide(approval.Policy{Allow: c.allow}, c.tool, c.kind); got != c.want {
			t.Errorf("%s %s with %v: %s, want %s", c.kind, c.tool, c.allow, got, c.want)
		}
	}
	for name, policy := range map[string]approval.Policy{"broken": {Allow: []string{"[x"}}, "empty": {Allow: []string{""}}, "unknown": {OnApproval: "maybe"}} {
		if policy.Validate() == nil {
			t.Errorf("the %s policy is accepted", name)
		}
	}
	if err := (approval.Policy{Allow: []string{"files.*"}, OnApproval: approval.FailRun}).Validate(); err != nil {
		t.Error(err)
	}
}
