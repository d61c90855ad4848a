package metrics_test

import (
	"bytes"
	"os"
	"regexp"
	"strings"
	"testing"

	"go.yaml.in/yaml/v3"
)

// rules are those of Prometheus, as far as they are used here; another key is a mistake.
type rules struct {
	Groups []struct {
		Name  string `yaml:"name"`
		Rules []struct {
			Alert       string            `yaml:"alert"`
			Expr        string            `yaml:"expr"`
			For         string            `yaml:"for"`
			Labels      map[string]string `yaml:"labels"`
			Annotations map[string]string `yaml:"annotations"`
		} `yaml:"rules"`
	} `yaml:"groups"`
}

var named = regexp.MustCompile(`\b(?:regie|process|go)_[a-z_]+`)

// TestAlerts holds the rules that ship with Regie to its metrics: each that is named there is one
// that the server tells.
func TestAlerts(t *testing.T) {
	data, err := os.ReadFile("../../docs/alerts.yaml")
	if err != nil {
		t.Fatal(err)
	}
	var all rules
	decoder := yaml.NewDecoder(bytes.NewReader(data))
	decoder.KnownFields(true)
	if err := decoder.Decode(&all); err != nil {
		t.Fatal(err)
	}
	text := ""
	for _, file := range []string{"metrics.go", "scrape.go"} {
		source, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		text += string(source)
	}
	used, seen := 0, map[string]bool{}
	for _, group := range all.Groups {
		for _, rule := range group.Rules {
			if rule.Alert == "" || seen[rule.Alert] || rule.Expr == "" || rule.Annotations["summary"] == "" || rule.Labels["severity"] == "" {
				t.Errorf("the rule %q says too little, or stands twice", rule.Alert)
			}
			seen[rule.Alert] = true
			if strings.Count(rule.Expr, "(") != strings.Count(rule.Expr, ")") {
				t.Errorf("the brackets of %s do not match", rule.Alert)
			}
			for _, name := range named.FindAllString(rule.Expr, -1) {
				base := name
				for _, suffix := range []string{"_bucket", "_sum", "_count"} {
					base = strings.TrimSuffix(base, suffix)
				}
				if strings.HasPrefix(name, "regie_") && !strings.Contains(text, `"`+base+`"`) && !strings.Contains(text, `"`+strings.TrimPrefix(base, "regie_")+`"`) {
					t.Errorf("%s names %s, which nobody tells", rule.Alert, name)
				}
				used++
			}
		}
	}
	if used < len(seen) {
		t.Errorf("%d rules name only %d metrics", len(seen), used)
	}
}
