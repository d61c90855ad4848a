package mcp

import (
	"strings"
	"testing"
	"time"

	"github.com/regie-run/regie"
)

func TestValidate(t *testing.T) {
	command := func(change func(*Config)) Config {
		c := Config{Name: "box", Command: []string{"server", "--flag"}}
		change(&c)
		return c
	}
	far := func(change func(*Config)) Config {
		c := Config{Name: "box", URL: "https://example.org/mcp?token=tk-canary"}
		change(&c)
		return c
	}
	for name, row := range map[string]struct {
		c    Config
		says string // "" is fine
	}{
		"a command":         {command(func(*Config) {}), ""},
		"a url":             {far(func(*Config) {}), ""},
		"all of a command":  {command(func(c *Config) { c.Dir, c.Env, c.Allow = "/", map[string]string{"A_1": ""}, []string{"get_*"} }), ""},
		"all of a url":      {far(func(c *Config) { c.Headers = map[string]string{"X-Key": "v"}; c.Timeout = time.Hour }), ""},
		"name with parts":   {command(func(c *Config) { c.Name = "my-box_2" }), ""},
		"no name":           {command(func(c *Config) { c.Name = "" }), "not a valid name"},
		"a dot":             {command(func(c *Config) { c.Name = "a.b" }), "not a valid name"},
		"a slash":           {command(func(c *Config) { c.Name = "../x" }), "not a valid name"},
		"wire separator":    {command(func(c *Config) { c.Name = "a__b" }), "not a valid name"},
		"ends in _":         {command(func(c *Config) { c.Name = "a_" }), "not a valid name"},
		"long name":         {command(func(c *Config) { c.Name = strings.Repeat("a", 41) }), "not a valid name"},
		"a toolkit's":       {command(func(c *Config) { c.Name = "files" }), "name of a toolkit"},
		"a toolkit's, case": {command(func(c *Config) { c.Name = "Shell" }), "name of a toolkit"},
		"neither":           {Config{Name: "box"}, "neither"},
		"both":              {command(func(c *Config) { c.URL = "https://example.org" }), "both"},
		"empty command":     {command(func(c *Config) { c.Command = []string{""} }), "empty command"},
		"relative dir":      {command(func(c *Config) { c.Dir = "here" }), "absolute"},
		"command + headers": {command(func(c *Config) { c.Headers = map[string]string{"A": ""} }), "headers"},
		"not an address":    {far(func(c *Config) { c.URL = "example.org/tk-canary" }), "not an address"},
		"another scheme":    {far(func(c *Config) { c.URL = "file:///etc/passwd" }), "not an address"},
		"no host":           {far(func(c *Config) { c.URL = "http:///mcp" }), "not an address"},
		"unreadable":        {far(func(c *Config) { c.URL = "http://a b\x7f/tk-canary" }), "not an address"},
		"user in it":        {far(func(c *Config) { c.URL = "https://u:tk-canary@example.org" }), "user or password"},
		"url + env":         {far(func(c *Config) { c.Env = map[string]string{"A": ""} }), "environment"},
		"bad header":        {far(func(c *Config) { c.Headers = map[string]string{"A B": ""} }), "cannot be sent"},
		"header injection":  {far(func(c *Config) { c.Headers = map[string]string{"A": "b\r\nHost: tk-canary"} }), "cannot be sent"},
		"reserved header":   {far(func(c *Config) { c.Headers = map[string]string{"mcp-session-id": "1"} }), "sets itself"},
		"replayed by Go":    {far(func(c *Config) { c.Headers = map[string]string{"idempotency-key": "1"} }), "sets itself"},
		"negative timeout":  {command(func(c *Config) { c.Timeout = -1 }), "negative"},
		"negative start":    {command(func(c *Config) { c.StartTimeout = -1 }), "negative"},
		"bad pattern":       {command(func(c *Config) { c.Deny = []string{"["} }), "pattern"},
		"setting: probe":    {command(func(c *Config) { c.Tools = map[string]Setting{"a": {Class: regie.ClassVerifiable}} }), "class read"},
		"setting: clash":    {command(func(c *Config) { c.Tools = map[string]Setting{"a": {regie.KindQuery, regie.ClassOnce}} }), "class read"},
		"setting: clash 2":  {command(func(c *Config) { c.Tools = map[string]Setting{"a": {regie.KindAction, regie.ClassRead}} }), "class read"},
		"setting: kind":     {command(func(c *Config) { c.Tools = map[string]Setting{"a": {Kind: "x"}} }), "class read"},
	} {
		err := row.c.Validate()
		if row.says == "" && err != nil || row.says != "" && (regie.CodeOf(err) != regie.CodeBadRequest || !strings.Contains(err.Error(), row.says)) {
			t.Errorf("%s: %v", name, err)
		}
		if err != nil && strings.Contains(err.Error(), "canary") {
			t.Errorf("%s: a secret is printed: %v", name, err)
		}
	}
	if _, err := New(Config{Name: "box"}); regie.CodeOf(err) != regie.CodeBadRequest {
		t.Errorf("a bad configuration connects: %v", err)
	}
}

func TestFilters(t *testing.T) {
	for _, row := range []struct {
		allow, deny []string
		want        string
	}{
		{nil, nil, "get_a get_b repo/list set"},
		{[]string{"get_*"}, nil, "get_a get_b"},
		{[]string{"get_*", "set"}, []string{"*_b"}, "get_a set"},
		{nil, []string{"*"}, ""}, // a star stops at a slash in the server's name; ours has none
		{[]string{"repo/*"}, nil, "repo/list"},
		{[]string{"nothing"}, nil, ""},
	} {
		c := Config{Allow: row.allow, Deny: row.deny}
		var got []string
		for _, name := range []string{"get_a", "get_b", "repo/list", "set"} {
			if c.offersTool(name, operationName(name)) {
				got = append(got, name)
			}
		}
		if strings.Join(got, " ") != row.want {
			t.Errorf("%v without %v: %q, not %q", row.allow, row.deny, got, row.want)
		}
	}
}

func TestSecrets(t *testing.T) {
	c := Config{
		URL:     "https://example.org/?api_key=qk-canary&page=overview",
		Headers: map[string]string{"Authorization": "Bearer hk-canary", "X-Tenant": "household"},
		Env:     map[string]string{"GITHUB_TOKEN": "ek-canary", "ROOT": "/home/somebody", "PIN_KEY": "1234"},
	}
	got := hideSecrets("qk-canary overview Bearer hk-canary hk-canary household ek-canary /home/somebody 1234", c.secretValues())
	if want := "[hidden] overview [hidden] [hidden] household [hidden] /home/somebody 1234"; got != want {
		t.Errorf("got %q", got)
	}
}
