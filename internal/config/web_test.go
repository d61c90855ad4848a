package config

import (
	"fmt"
	"testing"
)

func TestWebPrivate(t *testing.T) {
	w := Web{AllowPrivate: []string{"Wiki.example", "10.1.2.3/16", "::1", "127.0.0.1"}}
	hosts, ranges := w.Private()
	if got := fmt.Sprint(hosts, ranges); got != "[wiki.example] [10.1.0.0/16 ::1/128 127.0.0.1/32]" || w.checkValues() != nil {
		t.Error(got, w.checkValues())
	}
	if off := false; !w.On() || (&Web{Enabled: &off}).On() {
		t.Error("it is on unless it is turned off")
	}
}
