package config

import (
	"net/netip"
	"path"
	"regexp"
	"strings"

	"github.com/regie-run/regie"
)

// Web is what agents may read of the internet.
type Web struct {
	// Enabled offers web.fetch.
	Enabled *bool `yaml:"enabled"`
	// AllowPrivate are hosts, addresses and ranges (CIDR) of this machine or a private network that
	// may be read. Without it only the open internet is.
	AllowPrivate []string `yaml:"allow_private"`
}

// On reports whether web.fetch is offered.
func (w *Web) On() bool { return w.Enabled == nil || *w.Enabled }

// hostName is a name that AllowPrivate may have.
var hostName = regexp.MustCompile(`^[a-zA-Z0-9]([a-zA-Z0-9.-]*[a-zA-Z0-9])?$`)

// Private returns the hosts and the ranges that AllowPrivate names.
func (w *Web) Private() (hosts []string, ranges []netip.Prefix) {
	for _, entry := range w.AllowPrivate {
		if prefix, err := netip.ParsePrefix(entry); err == nil {
			ranges = append(ranges, prefix.Masked())
		} else if at, err := netip.ParseAddr(entry); err == nil {
			ranges = append(ranges, netip.PrefixFrom(at, at.BitLen()))
		} else {
			hosts = append(hosts, strings.ToLower(entry))
		}
	}
	return hosts, ranges
}

// checkValues refuses a pattern that matches nothing.
func (a *Approvals) checkValues() error {
	for _, pattern := range a.Private {
		if _, err := path.Match(pattern, "a"); err != nil || pattern == "" || path.IsAbs(pattern) {
			return regie.Errorf(regie.CodeBadRequest,
				"private has %q: write docs/salaries/**, docs/a.md, or *.pay for a name anywhere", pattern)
		}
	}
	return nil
}

func (w *Web) checkValues() error {
	hosts, _ := w.Private()
	for _, host := range hosts {
		if !hostName.MatchString(host) {
			return regie.Errorf(regie.CodeBadRequest,
				"allow_private has %q: write a host as wiki.example, or a range as 10.1.0.0/16", host)
		}
	}
	return nil
}
