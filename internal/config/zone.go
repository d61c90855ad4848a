package config

import (
	"os"
	"strings"
	"sync"
	"time"
	_ "time/tzdata" // the names of time zones are the same on each machine, one without a list of them too

	"github.com/regie-run/regie"
)

// Workspace is what holds for the place where agents work (spec 13, decision 52).
type Workspace struct {
	// TimeZone is the IANA name of the zone for the agents' date and time; empty means the
	// machine's.
	TimeZone string `yaml:"time_zone"`
}

func (w *Workspace) checkValues() error {
	if w.TimeZone == "" {
		return nil
	}
	if _, err := time.LoadLocation(w.TimeZone); err != nil || w.TimeZone == regie.LocalZone {
		return regie.Errorf(regie.CodeBadRequest,
			"%q is not a time zone: use a name such as Europe/Paris or UTC", w.TimeZone)
	}
	return nil
}

// Zone returns the name of the agents' time zone: the configured one, else the machine's, or
// regie.LocalZone where that has no name.
func (w *Workspace) Zone() string {
	if w.TimeZone != "" {
		return w.TimeZone
	}
	return machineZone()
}

// machineZone stays what it is while the process runs, as time.Local does.
var machineZone = sync.OnceValue(func() string {
	name := time.Local.String() //nolint:gosmopolitan // the machine's is the default
	if name == regie.LocalZone {
		target, err := os.Readlink("/etc/localtime")
		if _, after, found := strings.Cut(target, "zoneinfo/"); err == nil && found {
			name = after
		}
	}
	if _, err := time.LoadLocation(name); err != nil {
		return regie.LocalZone
	}
	return name
})
