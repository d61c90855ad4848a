package config

import (
	"cmp"
	"net/mail"
	"net/url"
	"path/filepath"
	"slices"
	"strings"

	"github.com/regie-run/regie"
)

// The types of channels.
const (
	ChannelWebhook = "webhook"
	ChannelNtfy    = "ntfy"
	ChannelSMTP    = "smtp"
	ChannelDesktop = "desktop"
)

// Channel is where notifications go (decision 60). No file of a project can define one.
type Channel struct {
	// Type is the protocol: webhook (signed by Standard Webhooks), ntfy, smtp or desktop.
	Type string `yaml:"type"`
	// On are the kinds of notifications; all of them where it is left out.
	On []regie.NotificationKind `yaml:"on"`
	// Workspace is the one workspace that the channel is for, an absolute path.
	Workspace string `yaml:"workspace"`
	// User is the name of the one user that the channel is for.
	User string `yaml:"user"`
	// Content is whether the name of the session and the question to the person are sent too: they
	// leave the machine then.
	Content bool `yaml:"content"`
	// Link is the address of the web pages for links to them, such as https://regie.example.com.
	Link string `yaml:"link"`
	// URL is where a webhook or an ntfy topic is.
	URL string `yaml:"url"`
	// SecretEnv is the variable that holds the secret by which webhooks are signed (whsec_…).
	SecretEnv string `yaml:"secret_env"`
	// TokenEnv is the variable that holds an access token of the ntfy server.
	TokenEnv string `yaml:"token_env"`
	// Host is the mail server.
	Host string `yaml:"host"`
	// Port is the port of the mail server; by default 587 for starttls, 465 for tls, 25 for none.
	Port int `yaml:"port"`
	// TLS is how mail is protected on its way: starttls, tls or none.
	TLS string `yaml:"tls"`
	// From is the sender of mail.
	From string `yaml:"from"`
	// To are the receivers of mail.
	To []string `yaml:"to"`
	// Username is the login at the mail server; none where it is left out.
	Username string `yaml:"username"`
	// PasswordEnv is the variable that holds the password of the login.
	PasswordEnv string `yaml:"password_env"`
	// Secret is what the variable holds; empty where it is not set.
	Secret string `yaml:"-"`
}

// SecretVariable returns the variable with the channel's secret, empty for none.
func (c *Channel) SecretVariable() string { return cmp.Or(c.SecretEnv, c.TokenEnv, c.PasswordEnv) }

// Kinds are the kinds of notifications that the channel delivers.
func (c *Channel) Kinds() []regie.NotificationKind {
	if len(c.On) == 0 {
		return regie.NotificationKinds()
	}
	return c.On
}

func (c *Channel) checkValues() error {
	for _, key := range []struct {
		name            string
		isSet           bool
		types, required string
	}{
		{"url", c.URL != "", "webhook ntfy", "webhook ntfy"},
		{"secret_env", c.SecretEnv != "", "webhook", "webhook"},
		{"token_env", c.TokenEnv != "", "ntfy", ""},
		{"host", c.Host != "", "smtp", "smtp"},
		{"port", c.Port != 0, "smtp", ""},
		{"tls", c.TLS != "", "smtp", ""},
		{"from", c.From != "", "smtp", "smtp"},
		{"to", len(c.To) > 0, "smtp", "smtp"},
		{"username", c.Username != "", "smtp", ""},
		{"password_env", c.PasswordEnv != "", "smtp", ""},
	} {
		switch {
		case key.isSet && !slices.Contains(strings.Fields(key.types), c.Type):
			return regie.Errorf(regie.CodeBadRequest, "%s does not belong to the type %s", key.name, c.Type)
		case !key.isSet && slices.Contains(strings.Fields(key.required), c.Type):
			return regie.Errorf(regie.CodeBadRequest, "%s is missing", key.name)
		}
	}
	for _, address := range []string{c.URL, c.Link} {
		u, err := url.Parse(address)
		if address != "" && (err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https") {
			return regie.Errorf(regie.CodeBadRequest, "%q is not an address: write it like https://example.com/path", address)
		}
	}
	if c.Workspace != "" && !filepath.IsAbs(c.Workspace) {
		return regie.Errorf(regie.CodeBadRequest, "the workspace %q is not an absolute path", c.Workspace)
	}
	for _, address := range append([]string{c.From}, c.To...) {
		if _, err := mail.ParseAddress(address); err != nil && c.Type == ChannelSMTP {
			return regie.Errorf(regie.CodeBadRequest, "%q is not a mail address", address)
		}
	}
	return nil
}

// addChannelRules adds the rules of channels' keys.
func addChannelRules(rules map[string]keyRule) {
	kinds := make([]string, 0, len(regie.NotificationKinds()))
	for _, kind := range regie.NotificationKinds() {
		kinds = append(kinds, string(kind))
	}
	rules["notifications.*.type"] = keyRule{
		words: []string{ChannelWebhook, ChannelNtfy, ChannelSMTP, ChannelDesktop}, required: true,
	}
	rules["notifications.*.on[]"] = keyRule{words: kinds}
	rules["notifications.*.port"] = keyRule{least: "1", most: "65535"}
	rules["notifications.*.tls"] = words("starttls", "tls", "none")
	rules["notifications.*.to"] = keyRule{most: "20"}
}
