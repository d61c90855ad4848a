package config

import (
	"strings"
	"testing"
	"time"

	"github.com/regie-run/regie"
)

func TestZone(t *testing.T) {
	for zone, want := range map[string]string{ // want is of the error, empty for none
		"Europe/Paris": "", "UTC": "", "America/Argentina/Buenos_Aires": "",
		"Europe/Pari": "is not a time zone", "Local": "is not a time zone", "+02:00": "is not a time zone", "../../etc/passwd": "is not a time zone",
		"[UTC]": "must be", "{UTC: 1}": "must be",
	} {
		c, err := load(t, "workspace: {time_zone: "+zone+"}", nil)
		switch {
		case want == "" && (err != nil || c.File.Workspace.Zone() != zone):
			t.Errorf("%s: %q, %v", zone, c.File.Workspace.Zone(), err)
		case want == "must be" && regie.CodeOf(err) == regie.CodeBadRequest:
		case want != "" && (err == nil || !strings.Contains(err.Error(), want)):
			t.Errorf("%s: %v", zone, err)
		}
	}
	if _, err := load(t, "workspace: {time_zon: UTC}", nil); err == nil || !strings.Contains(err.Error(), "did you mean time_zone?") {
		t.Errorf("%v", err)
	}
	c, err := load(t, "workspace: {}", nil)
	if err != nil {
		t.Fatal(err)
	}
	zone, err := time.LoadLocation(c.File.Workspace.Zone())
	if err != nil {
		t.Fatal(err)
	}
	for month := range 12 { // the machine's, by whatever name
		at := time.Date(2026, time.Month(month+1), 1, 12, 0, 0, 0, time.UTC)
		_, want := at.Local().Zone()
		if _, got := at.In(zone).Zone(); got != want {
			t.Errorf("in %v %s is %d s from UTC, the machine %d", at.Month(), c.File.Workspace.Zone(), got, want)
		}
	}
}
