package config

import (
	"strings"
	"testing"
	"time"
)

func TestShell(t *testing.T) {
	f, _, err := parseFile("x", []byte("shell: {sandbox: landlock, network: true, max_timeout: 2m, max_processes: 16, max_memory_bytes: 67108864, env: [A, B_C], read: [/srv/models]}\n"))
	if err != nil || f.Shell.Sandbox != "landlock" || !f.Shell.Network || f.Shell.MaxTimeout != 2*time.Minute || f.Shell.MaxProcesses != 16 || f.Shell.MaxMemoryBytes != 64<<20 || len(f.Shell.Env) != 2 || f.Shell.Read[0] != "/srv/models" {
		t.Errorf("%+v, %v", f.Shell, err)
	}
	for text, want := range map[string]string{
		"shell: {sandbox: docker}":        "use auto, bubblewrap, landlock, none",
		"shell: {max_timeout: 1ms}":       "between 1s and 24h",
		"shell: {max_timeout: 25h}":       "between 1s and 24h",
		"shell: {max_timeout: -1s}":       "between 1s and 24h",
		"shell: {max_processes: 15}":      "at least 16",
		"shell: {max_memory_bytes: 1}":    "at least 67108864",
		"shell: {env: [A=b]}":             "not a variable name",
		`shell: {env: [""]}`:              "not a variable name",
		"shell: {read: [models]}":         "not an absolute path",
		"shell: {read: [/]}":              "not an absolute path",
		"shell: {read: [/srv/..]}":        "not an absolute path",
		"shell: {sandboxx: auto}":         "sandbox",
		"shell: {network: true, cpu: 10}": "cpu",
	} {
		if _, _, err := parseFile("x", []byte(text+"\n")); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", text, err)
		}
	}
}
