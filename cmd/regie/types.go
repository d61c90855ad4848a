package main

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/google/jsonschema-go/jsonschema"

	"github.com/regie-run/regie/internal/config"
	"github.com/regie-run/regie/internal/plain"
)

// providerType is a type of providers as programs read it.
type providerType struct {
	Type        string `json:"type"`
	DisplayName string `json:"display_name"`
	About       string `json:"about"`
	Key         string `json:"key"` // always, elsewhere, optional, never
	// Schema is that of an entry below providers; null where there is none.
	Schema *jsonschema.Schema `json:"config_schema"`
}

// types lists the provider types and their settings (spec 6.3).
func (c *command) types(asJSON bool) error {
	if asJSON {
		out := []providerType{}
		for _, t := range config.Types() {
			one := providerType{
				Type: t.Name, DisplayName: c.text.Sentence(t.Title),
				About: c.text.Sentence(t.About), Key: string(t.Key),
			}
			if t.HasEntry() {
				one.Schema = t.ConfigSchema(c.text.Sentence)
			}
			out = append(out, one)
		}
		return writeJSON(c.stdout, map[string]any{"types": out})
	}
	line := func(s string) { fmt.Fprintln(c.stdout, plain.Strip(s)) }
	for i, t := range config.Types() {
		if i > 0 {
			line("")
		}
		line(t.Name + ": " + c.text.Sentence(t.Title))
		line("  " + c.text.Sentence(t.About))
		line("  " + c.keyLine(t.Key))
		for j := range t.Settings {
			line(c.settingLine(&t.Settings[j]))
		}
	}
	return nil
}

func (c *command) keyLine(need config.KeyNeed) string {
	switch need {
	case config.KeyAlways:
		return c.text.T("wants a key")
	case config.KeyElsewhere:
		return c.text.T("wants a key, except on this machine")
	case config.KeyOptional:
		return c.text.T("wants no key, unless something before it does")
	default:
		return c.text.T("needs no key")
	}
}

func (c *command) settingLine(s *config.Setting) string {
	out := fmt.Sprintf("    %-13s %s", s.Name, c.text.Sentence(s.About))
	var more []string
	if len(s.Words) > 1 {
		more = append(more, strings.Join(s.Words, " | "))
	}
	if s.Least > 0 {
		more = append(more, c.text.T("at least %s", strconv.FormatFloat(s.Least, 'f', -1, 64)))
	}
	if s.Default != "" {
		more = append(more, c.text.T("default %s", s.Default))
	}
	if s.Secret {
		more = append(more, c.text.T("never shown"))
	}
	if len(more) == 0 {
		return out
	}
	return out + " (" + strings.Join(more, "; ") + ")"
}
