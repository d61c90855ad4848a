package config

import (
	"encoding/json"
	"reflect"
	"slices"
	"strings"

	"github.com/google/jsonschema-go/jsonschema"

	"github.com/regie-run/regie"
)

// KeyNeed says whether servers of a type want a key.
type KeyNeed string

// The needs of a key.
const (
	KeyAlways    KeyNeed = "always"    // the vendor's own server does
	KeyElsewhere KeyNeed = "elsewhere" // those of others do, those on this machine mostly not
	KeyOptional  KeyNeed = "optional"  // only behind something that asks for one
	KeyNever     KeyNeed = "never"     // there is no server
)

// ProviderType is a kind of model API that this build speaks, with what a person can say of one
// (spec 6.3). There is no other list of them: files are held to it, regie setup asks by it, and
// regie models --types shows it.
type ProviderType struct {
	// Name is the word for it in settings.
	Name string
	// Title is its display name, About what it is.
	Title, About regie.Sentence
	// Settings are the keys of an entry of this type below providers, in the order in which people
	// are shown them; none where it has no entry.
	Settings []Setting
	Key      KeyNeed
}

// Setting is one key of a provider.
type Setting struct {
	// Name is the key.
	Name string
	// Title is a word or two for it, About what it settles.
	Title, About regie.Sentence
	// Type is that of JSON Schema.
	Type string
	// Words are all that it may be; nil does not bound it.
	Words []string
	// Least is the smallest number; 0 does not bound it.
	Least float64
	// Default is what holds where it is left out, Example what it looks like; empty where nothing
	// can be said.
	Default, Example string
	// Secret is never shown.
	Secret bool
	// Asked says that regie setup asks for it, Required that it cannot be left empty there.
	Asked, Required bool
}

// HasEntry reports whether a provider of the type is configured below providers.
func (t *ProviderType) HasEntry() bool { return len(t.Settings) > 0 }

// Setting returns a setting of the type by its name, or nil.
func (t *ProviderType) Setting(name string) *Setting {
	for i := range t.Settings {
		if t.Settings[i].Name == name {
			return &t.Settings[i]
		}
	}
	return nil
}

// Types are the provider types that this build knows, each anew.
func Types() []ProviderType {
	return []ProviderType{
		{
			Name: ProviderAnthropic, Key: KeyAlways, Title: regie.Verbatim("Anthropic"),
			About: regie.Say("The Messages API of Anthropic"), Settings: settingsOf(ProviderAnthropic,
				tierSetting(strings.Fields(vendors[ProviderAnthropic].tiers))),
		},
		{
			Name: ProviderOpenAI, Key: KeyElsewhere, Title: regie.Say("OpenAI and compatible"),
			About: regie.Say("Chat Completions or Responses: OpenAI, Groq, DeepSeek, Mistral, OpenRouter, Perplexity, vLLM, LM Studio, llama.cpp and others"),
			Settings: settingsOf(ProviderOpenAI, Setting{
				Name: "api", Type: "string", Words: []string{APIChat, APIResponses}, Title: regie.Say("Spoken API"),
				About: regie.Say("Which of OpenAI's APIs is spoken; left out it is responses at OpenAI's own address and chat everywhere else"),
			}, tierSetting(nil)),
		},
		{
			Name: ProviderGemini, Key: KeyAlways, Title: regie.Verbatim("Gemini"),
			About: regie.Say("The Gemini API of Google"), Settings: settingsOf(ProviderGemini),
		},
		{
			Name: ProviderOllama, Key: KeyOptional, Title: regie.Verbatim("Ollama"),
			About: regie.Say("Models on one's own machine, by Ollama's own API"),
			Settings: settingsOf(ProviderOllama, Setting{
				Name: "num_ctx", Type: "integer", Least: 1024, Title: regie.Say("Context"),
				About: regie.Say("The context that a model is loaded with, in tokens"),
			}, Setting{
				Name: "keep_alive", Type: "string", Example: "10m", Title: regie.Say("Time in memory"),
				About: regie.Say("How long a model stays in memory after a request: a duration, seconds, 0 for not at all, -1 for ever"),
			}),
		},
		{
			Name: ProviderDemo, Key: KeyNever, Title: regie.Say("Demo"),
			About: regie.Say("A few rules, built in; not a model"),
		},
		{
			Name: ProviderReplay, Key: KeyNever, Title: regie.Say("Replay"),
			About: regie.Say("Answers from a recording, named with --replay FILE"),
		},
	}
}

// settingsOf are what all entries have, with the defaults of the type's own vendor, and what more a
// type has.
func settingsOf(kind string, more ...Setting) []Setting {
	v := vendors[kind]
	prices, example := regie.Say("What models cost, by name, in US dollars for a million tokens"), v.address
	if kind == ProviderOpenAI {
		example = "http://127.0.0.1:8000/v1"
	}
	return slices.Concat([]Setting{
		{
			Name: "type", Type: "string", Words: []string{kind}, Title: regie.Say("Kind of API"),
			About: regie.Say("The API; it may be left out where the provider is called as its type or vendor"),
		},
		{
			Name: "vendor", Type: "string", Words: Vendors(kind), Title: regie.Say("Vendor"),
			About: regie.Say("Whose server it is: its address and the variable of its key follow"),
		},
		{
			Name: "base_url", Type: "string", Default: v.address, Example: example, Asked: true,
			Required: true, Title: regie.Say("Address"),
			About: regie.Say("Where the server is"),
		},
		{
			Name: "api_key_env", Type: "string", Default: v.key, Title: regie.Say("Variable of the key"),
			About: regie.Say("The variable of the environment that holds the key"),
		},
		{
			Name: "api_key", Type: "string", Secret: true, Asked: true, Title: regie.Say("Key"),
			About: regie.Say("The key itself, which regie setup stores; a file that people write names its variable, or its place as keyring:NAME"),
		},
		{
			Name: "models", Type: "object", Title: regie.Say("Models"),
			About: regie.Say("Names for models: small, medium, large, or others"),
		},
		{Name: "prices", Type: "object", Title: regie.Say("Prices"), About: prices},
	}, more)
}

func tierSetting(words []string) Setting {
	return Setting{
		Name: "service_tier", Type: "string", Words: words, Title: regie.Say("Service tier"),
		About: regie.Say("How the vendor serves and prices requests, in its own word"),
	}
}

// TypeOf returns a provider type by its name; ok says that there is one.
func TypeOf(name string) (t ProviderType, ok bool) {
	for _, t := range Types() {
		if t.Name == name {
			return t, true
		}
	}
	return t, false
}

// TypeNames are the names of the provider types; of all, or of those that are configured below
// providers.
func TypeNames(all bool) (names []string) {
	for _, t := range Types() {
		if all || t.HasEntry() {
			names = append(names, t.Name)
		}
	}
	return names
}

// Vended are the types whose vendor sells keys, in the order in which one of theirs is looked for
// in the environment.
func Vended() (out []ProviderType) {
	for _, t := range Types() {
		if vendors[t.Name].key != "" {
			out = append(out, t)
		}
	}
	return out
}

// ConfigSchema is the JSON Schema of an entry of the type below providers, with titles and
// descriptions as say writes them. A secret is write-only.
func (t *ProviderType) ConfigSchema(say func(regie.Sentence) string) *jsonschema.Schema {
	s := &jsonschema.Schema{
		Schema: "https://json-schema.org/draft/2020-12/schema", Title: say(t.Title),
		Description: say(t.About), Type: "object",
		Properties:           map[string]*jsonschema.Schema{},
		AdditionalProperties: &jsonschema.Schema{Not: &jsonschema.Schema{}},
	}
	for i := range t.Settings {
		setting := &t.Settings[i]
		p := &jsonschema.Schema{
			Type: setting.Type, Title: say(setting.Title),
			Description: say(setting.About), WriteOnly: setting.Secret,
		}
		for _, word := range setting.Words {
			p.Enum = append(p.Enum, word)
		}
		if setting.Least > 0 {
			p.Minimum = &setting.Least
		}
		if setting.Default != "" {
			p.Default, _ = json.Marshal(setting.Default) // a text always encodes
		}
		if setting.Example != "" {
			p.Examples = []any{setting.Example}
		}
		switch setting.Name {
		case "models":
			p.AdditionalProperties = &jsonschema.Schema{Type: "string", MinLength: new(1)}
		case "prices":
			p.AdditionalProperties = &jsonschema.Schema{Type: "object", Required: []string{"input", "output"}}
		}
		s.Properties[setting.Name] = p
		s.PropertyOrder = append(s.PropertyOrder, setting.Name)
	}
	return s
}

// fits holds an entry to the schema of its type; path is the file that it is from.
func (p *Provider) fits(path string) error {
	t, known := TypeOf(p.Type)
	if !known || !t.HasEntry() {
		return regie.Errorf(regie.CodeBadRequest, "the provider %s (in %s) has no type that is known: use %s", p.Name,
			path, strings.Join(TypeNames(false), ", "))
	}
	value := reflect.ValueOf(*p)
	for i, field := range reflect.VisibleFields(value.Type()) {
		key, _, _ := strings.Cut(field.Tag.Get("yaml"), ",")
		if key == "" || key == "-" || value.Field(i).IsZero() {
			continue
		}
		setting := t.Setting(key)
		if setting == nil {
			return regie.Errorf(regie.CodeBadRequest,
				"the provider %s (in %s) is of type %s, which has no setting %s: leave it out", p.Name, path, p.Type,
				key)
		}
		if word := value.Field(i); setting.Words != nil && !slices.Contains(setting.Words, word.String()) {
			return regie.Errorf(regie.CodeBadRequest,
				"the provider %s (in %s) has the %s %q, which is not known: use %s", p.Name, path, key, word.String(),
				strings.Join(setting.Words, ", "))
		}
	}
	return nil
}
