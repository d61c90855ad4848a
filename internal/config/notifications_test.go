package config_test

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/regie-run/regie"
	"github.com/regie-run/regie/internal/config"
)

// loadText loads a named file with a text.
func loadText(t *testing.T, text string, env map[string]string) (config.Config, error) {
	t.Helper()
	path := filepath.Join(t.TempDir(), "regie.yaml")
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	get := func(name string) string { return env[name] }
	return config.Load(get, config.Flags{Config: path, DataDir: t.TempDir(), Provider: "demo"})
}

// TestNotifications_Refused: what no channel can be is refused, with the line or the key.
func TestNotifications_Refused(t *testing.T) {
	t.Parallel()
	for entry, want := range map[string]string{
		`{}`:                                                                 "notifications.c.type is missing",
		`{type: sms}`:                                                        "use webhook, ntfy, smtp, desktop",
		`{type: desktop, ony: [approval]}`:                                   "unknown key ony, did you mean on?",
		`{type: desktop, on: [approvals]}`:                                   `notifications.c.on[1] is "approvals": use approval, question`,
		`{type: desktop, on: [test]}`:                                        `is "test"`,
		`{type: desktop, url: "https://x.y"}`:                                "url does not belong to the type desktop",
		`{type: desktop, workspace: here}`:                                   `the workspace "here" is not an absolute path`,
		`{type: webhook, url: "https://x.y"}`:                                "secret_env is missing",
		`{type: webhook, secret_env: S}`:                                     "url is missing",
		`{type: ntfy}`:                                                       "url is missing",
		`{type: ntfy, url: "ftp://x.y"}`:                                     `"ftp://x.y" is not an address`,
		`{type: ntfy, url: "https:///t"}`:                                    "is not an address",
		`{type: ntfy, url: "https://x.y/t", secret_env: S}`:                  "secret_env does not belong to the type ntfy",
		`{type: desktop, link: "javascript:alert(1)"}`:                       "is not an address",
		`{type: smtp, host: h, from: a@b.c}`:                                 "to is missing",
		`{type: smtp, host: h, to: [a@b.c]}`:                                 "from is missing",
		`{type: smtp, from: a@b.c, to: [a@b.c]}`:                             "host is missing",
		`{type: smtp, host: h, from: a@b.c, to: [a@b.c], tls: ssl}`:          "use starttls, tls, none",
		`{type: smtp, host: h, from: a@b.c, to: [a@b.c], port: 70000}`:       "between 1 and 65535",
		`{type: smtp, host: h, from: "a@b.c\r\nBcc: x@y.z", to: [a@b.c]}`:    "is not a mail address",
		`{type: smtp, host: h, from: a@b.c, to: ["a@b.c, x@y.z"]}`:           "is not a mail address",
		`{type: smtp, host: h, from: a@b.c, to: ["a@b.c\nRCPT TO:<x@y.z>"]}`: "is not a mail address",
	} {
		_, err := loadText(t, "notifications: {c: "+entry+"}", nil)
		if regie.CodeOf(err) != regie.CodeBadRequest || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %s", entry, err, want)
		}
	}
	if _, err := loadText(t, `notifications: {"a\r\nb": {type: desktop}}`, nil); err == nil || !strings.Contains(err.Error(), "valid name of a channel") {
		t.Errorf("a channel with a line break in its name: %v", err)
	}
}

// TestNotifications_Loaded: secrets come from variables, and are masked; a missing one stops no
// other command.
func TestNotifications_Loaded(t *testing.T) {
	t.Parallel()
	const text = `
notifications:
  hook: {type: webhook, url: "https://example.com/in", secret_env: HOOK, on: [failure, budget], workspace: /w, user: ada}
  phone: {type: ntfy, url: "https://ntfy.sh/topic", token_env: NTFY, content: true}
  mail: {type: smtp, host: mail.example.com, from: "Regie <regie@example.com>", to: [ada@example.com], username: u, password_env: MAIL}
  here: {type: desktop}
`
	env := map[string]string{"HOOK": "whsec_c2VjcmV0LW9mLWEtd2ViaG9vaw==", "NTFY": "tk_0123456789abcdef"}
	c, err := loadText(t, text, env)
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, name := range []string{"hook", "phone", "mail", "here"} {
		channel := c.File.Notifications[name]
		got = append(got, fmt.Sprint(channel.Secret, " ", len(channel.Kinds())))
	}
	want := []string{env["HOOK"] + " 2", env["NTFY"] + " 8", " 8", " 8"}
	if !slices.Equal(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
	masked := map[string]string{}
	for _, key := range c.Keys(func(name string) string { return env[name] }) {
		masked[key.Name] = key.Value
	}
	if masked["HOOK"] != env["HOOK"] || masked["NTFY"] != env["NTFY"] {
		t.Errorf("masked are %v", masked)
	}
	for _, v := range c.Values() {
		if strings.Contains(v.Value, env["HOOK"]) || strings.Contains(v.Value, env["NTFY"]) {
			t.Errorf("config show prints the secret: %+v", v)
		}
	}
}
