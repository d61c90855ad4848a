package metrics

import (
	"regexp"
	"slices"

	"github.com/prometheus/client_golang/prometheus"
)

// Names are those of all metrics of Regie's own, in order.
func (m *Metrics) Names() []string { return slices.Clone(m.names) }

var fullName = regexp.MustCompile(`fqName: "([^"]+)"`)

// namesOf asks collectors for what they are going to tell. A description shows its name in no other
// way.
func namesOf(all []prometheus.Collector) (out []string) {
	for _, c := range all {
		found := make(chan *prometheus.Desc, 64)
		c.Describe(found)
		close(found)
		for d := range found {
			if name := fullName.FindStringSubmatch(d.String()); name != nil {
				out = append(out, name[1])
			}
		}
	}
	slices.Sort(out)
	return slices.Compact(out)
}
