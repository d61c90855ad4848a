package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/url"
	"os"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/regie-run/regie"
	"github.com/regie-run/regie/internal/app"
	"github.com/regie-run/regie/internal/config"
	"github.com/regie-run/regie/internal/plain"
)

type setupFlags struct{ keyStdin, keyring bool }

func (c *command) setupCommand() *cobra.Command {
	var f setupFlags
	cmd := &cobra.Command{
		Use: "setup", Annotations: map[string]string{ofThisMachine: "yes"}, Args: usage(cobra.NoArgs),
		Short: c.text.T("Choose a model: a key, a server, or the demo"),
		Long:  c.text.T("Choose the model that answers from now on. What you choose is tried out with one request, which costs nothing, and stored in setup.yaml beside your regie.yaml, readable by you alone; a key is never shown.\n\nWithout a terminal: regie setup --provider anthropic --key-stdin < key, or regie setup --base-url http://127.0.0.1:8000/v1 --model NAME."),
		PersistentPreRunE: func(cmd *cobra.Command, args []string) error {
			switch aside, err := config.SetAside(os.Getenv); {
			case err != nil:
				return err
			case aside != "":
				c.tell("! " + c.text.T("what regie setup had stored does not fit, and lies in %s now", aside))
			}
			return cmd.Root().PersistentPreRunE(cmd, args)
		},
		RunE: func(cmd *cobra.Command, _ []string) error { return c.setup(cmd.Context(), f) },
	}
	cmd.Flags().BoolVar(&f.keyStdin, "key-stdin", false, c.text.T("read the key from the first line of standard input"))
	cmd.Flags().BoolVar(&f.keyring, "keyring", false,
		c.text.T("keep the key of --key-stdin in the keyring of the operating system, not in setup.yaml"))
	c.modelFlags(cmd)
	return cmd
}

// setup asks a person, or takes what the flags say.
func (c *command) setup(ctx context.Context, f setupFlags) error {
	in := bufio.NewReader(c.stdin)
	if c.flags.Provider != "" || c.flags.BaseURL != "" {
		return c.setupByFlags(ctx, f, in)
	}
	if f.keyStdin || !attended(c.stdin, c.stderr) {
		return regie.Errorf(codeUsage,
			"without a terminal say what to set up: --provider anthropic --key-stdin, or --base-url with --model (see --help)")
	}
	found := app.Detect(ctx, c.config, os.Getenv)
	c.looked(&found)
	type choice struct {
		what string
		run  func() error
	}
	var choices []choice
	if found.Running && len(found.Models) > 0 {
		choices = append(choices, choice{c.text.T("Ollama on this machine"), func() error {
			return c.take(ctx, in, config.Provider{
				Name: config.ProviderOllama,
				Type: config.ProviderOllama, BaseURL: found.Ollama,
			})
		}})
	}
	for _, name := range found.Keys {
		p, _ := c.config.Named(name)
		choices = append(choices, choice{
			c.text.T("%s, as it is configured (%s)", name, orDash(p.Origin["api_key"])),
			func() error { return c.take(ctx, in, p) },
		})
	}
	choices = append(choices,
		choice{
			c.text.T("paste a key (%s)", strings.Join(config.KeyVendors(), ", ")),
			func() error { return c.pasteKey(ctx, in) },
		},
		choice{c.text.T("the address of a model server"), func() error { return c.nameServer(ctx, in, "") }},
		choice{
			c.text.T("the demo: a few rules, no model, nothing to pay"),
			func() error { return c.store(config.Provider{Name: config.ProviderDemo}, "", nil) },
		})
	for {
		fmt.Fprintln(c.stderr)
		for i, one := range choices {
			c.tell(fmt.Sprintf("  %d. %s", i+1, one.what))
		}
		n, err := c.number(in, c.text.T("Which? "), len(choices))
		if err == nil {
			err = choices[n].run()
		}
		if _, left := errors.AsType[exit](err); err == nil || left || regie.CodeOf(err) == regie.CodeNoPermission {
			return err
		}
		c.tell("✗ " + c.text.Error(err)) // nothing was stored: they choose again, Ctrl-D ends
	}
}

// setupByFlags is setup without questions.
func (c *command) setupByFlags(ctx context.Context, f setupFlags, in *bufio.Reader) error {
	if c.flags.Provider == config.ProviderDemo {
		return c.store(config.Provider{Name: config.ProviderDemo}, "", nil)
	}
	p, ok := c.config.Named(c.config.Provider)
	if !ok || p.Type == "" {
		return regie.Errorf(codeUsage, "the provider %s cannot be set up: use %s", c.config.Provider,
			strings.Join(append(config.TypeNames(false), config.ProviderDemo), ", "))
	}
	if f.keyStdin {
		key, err := line(in)
		if err != nil {
			return err
		}
		if err := plausible(key); err != nil {
			return err
		}
		p = pasted(p, key)
	} else if f.keyring {
		return regie.Errorf(codeUsage, "--keyring says where the key of --key-stdin is kept: give it there")
	}
	p, models, untried := c.try(ctx, p)
	if untried != nil && (regie.CodeOf(untried) != regie.CodeProviderRejected || c.config.Model == "") {
		return untried
	}
	model := c.config.Model
	if model == "" {
		if model = preferred(p, models); model == "" {
			return regie.Errorf(codeUsage, "name the model with --model: the server has %s", names(models))
		}
	}
	if err := knows(models, model); err != nil {
		return err
	}
	if f.keyring {
		kept, err := config.KeepInKeyring(p)
		if err != nil {
			return err
		}
		p = kept
	}
	return c.store(p, model, untried)
}

// pasted is a provider with a key that a person has given now.
func pasted(p config.Provider, key string) config.Provider {
	p.APIKey, p.Origin = key, maps.Clone(p.Origin)
	delete(p.Origin, "api_key")
	return p
}

// keep asks where a key is kept that a person has given, where there is a keyring that answers;
// else it is kept in the private file.
func (c *command) keep(in *bufio.Reader, p config.Provider) (config.Provider, error) {
	if name := p.KeptInKeyring(); name != "" && p.APIKey != "" { // and stays there
		return config.InKeyring(p, name), nil
	}
	if p.APIKey == "" || p.Origin["api_key"] != "" && os.Getenv(p.Origin["api_key"]) == p.APIKey ||
		!config.KeyringAnswers() {
		return p, nil
	}
	c.tell("  1. " + c.text.T("in the keyring of this system"))
	c.tell("  2. " + c.text.T("in setup.yaml, readable by you alone"))
	for {
		answer, err := c.ask(in, c.text.T("Where is the key kept? (Enter for 1): "))
		switch {
		case err != nil:
			return p, err
		case answer == "" || answer == "1":
			return config.KeepInKeyring(p)
		case answer == "2":
			return p, nil
		}
	}
}

// try asks a provider for its models; the error says why nothing was tried out. Where nothing is at
// the address of an OpenAI-compatible server that names no path, the path is tried that nearly all
// of them have, and taken.
func (c *command) try(ctx context.Context, p config.Provider) (config.Provider, []app.ModelInfo, error) {
	models, err := app.TryProvider(ctx, p)
	u, failed := url.Parse(p.BaseURL)
	if err != nil && failed == nil && regie.CodeOf(err) != regie.CodeProviderAuth {
		if proxy, _ := http.ProxyFromEnvironment(&http.Request{URL: u}); proxy != nil {
			c.tell(c.text.T("asked through the proxy %s, which the environment names", proxy.Host))
		}
	}
	if regie.CodeOf(err) != regie.CodeProviderRejected || p.Type != config.ProviderOpenAI || failed != nil ||
		strings.Trim(u.Path, "/") != "" {
		return p, models, err
	}
	there := p
	there.BaseURL = strings.TrimRight(p.BaseURL, "/") + "/v1"
	models, failed = app.TryProvider(ctx, there)
	if failed != nil {
		return p, nil, err
	}
	c.tell(c.text.T("nothing answers under %s, but %s does: that is taken", p.BaseURL, there.BaseURL))
	return there, models, nil
}

// knows refuses a model that the server does not list.
func knows(models []app.ModelInfo, name string) error {
	if len(models) == 0 || slices.ContainsFunc(models, func(m app.ModelInfo) bool {
		return m.Name == name ||
			m.Name == name+":latest"
	}) {
		return nil
	}
	return regie.Errorf(regie.CodeNoModel, "the server has no model %s: it has %s", name, names(models))
}

func names(models []app.ModelInfo) string {
	const most = 12
	out := make([]string, 0, most)
	for i := range models {
		if i == most {
			out = append(out, "…")
			break
		}
		out = append(out, models[i].Name)
	}
	return strings.Join(out, ", ")
}

// preferred is the model that is offered first: the medium one, else Ollama's newest that can call
// tools, else the only one.
func preferred(p config.Provider, models []app.ModelInfo) string {
	capable := []string{}
	for i := range models {
		if models[i].Name == p.Models[config.DefaultSize] {
			return models[i].Name
		}
		if models[i].Tools {
			capable = append(capable, models[i].Name)
		}
	}
	if len(capable) == 1 || len(capable) > 1 && p.Type == config.ProviderOllama {
		return capable[0]
	}
	return ""
}

// leastKey is shorter than any vendor's key, in bytes.
const leastKey = 8

// plausible refuses what cannot be a key, before it is sent to somebody.
func plausible(key string) error {
	if len(key) < leastKey || strings.ContainsFunc(key, func(r rune) bool { return r <= ' ' || r >= 0x7f }) {
		return regie.Errorf(codeUsage, "that is no key: a key is one long word; nothing was sent")
	}
	return nil
}

func (c *command) pasteKey(ctx context.Context, in *bufio.Reader) error {
	key, err := c.secret(in, c.text.T("Paste the key (it is not shown): "))
	if err != nil {
		return err
	}
	if err := plausible(key); err != nil {
		return err
	}
	name := config.VendorOfKey(key)
	if !slices.Contains(config.KeyVendors(), name) {
		if name, err = c.askVendor(in, name); err != nil {
			return err
		}
	}
	if name == "" {
		return c.nameServer(ctx, in, key)
	}
	probe := config.Flags{Provider: name, DataDir: c.flags.DataDir}
	// what the variables say of other servers does not belong to this key
	settings, err := config.Load(func(variable string) string {
		if strings.HasPrefix(variable, "REGIE_") {
			return ""
		}
		return os.Getenv(variable)
	}, probe)
	if err != nil {
		return err
	}
	p, _ := settings.Named(name)
	return c.take(ctx, in, pasted(p, key))
}

// askVendor asks which vendor a key is for, empty for a server of another address. The key was sent
// to nobody yet.
func (c *command) askVendor(in *bufio.Reader, looksLike string) (string, error) {
	if looksLike == "" {
		c.tell(c.text.T("The key does not say whose it is, so it is sent to nobody yet. Whose key is it?"))
	} else {
		c.tell(c.text.T("This is a key of %s, whose address is not known here: choose the address of a model server.",
			looksLike))
	}
	names := config.KeyVendors()
	for i, name := range names {
		c.tell(fmt.Sprintf("  %d. %s", i+1, name))
	}
	c.tell(fmt.Sprintf("  %d. %s", len(names)+1, c.text.T("the address of a model server")))
	n, err := c.number(in, c.text.T("Which? "), len(names)+1)
	if err != nil || n == len(names) {
		return "", err
	}
	return names[n], nil
}

// nameServer asks for a server, and for its key where none is given.
func (c *command) nameServer(ctx context.Context, in *bufio.Reader, key string) error {
	kind, _ := config.TypeOf(config.ProviderOpenAI)
	answers := map[string]string{"api_key": key}
	for i := range kind.Settings {
		setting := &kind.Settings[i]
		if !setting.Asked || answers[setting.Name] != "" {
			continue
		}
		answer, err := c.askSetting(in, setting)
		if err != nil {
			return err
		}
		answers[setting.Name] = answer
	}
	return c.take(ctx, in, config.Provider{
		Name: "server", Type: kind.Name,
		BaseURL: strings.TrimRight(answers["base_url"], "/"), APIKey: answers["api_key"],
	})
}

// askSetting asks for a setting as the registry of types has it: a secret is not shown, what is
// required is asked for until it is there.
func (c *command) askSetting(in *bufio.Reader, s *config.Setting) (string, error) {
	title := c.text.Sentence(s.Title)
	question, ask := c.text.T("%s: ", title), c.ask
	switch {
	case s.Secret:
		question, ask = c.text.T("%s (it is not shown; empty for none): ", title), c.secret
	case s.Example != "":
		question = c.text.T("%s (such as %s): ", title, s.Example)
	}
	for {
		answer, err := ask(in, question)
		if err != nil || answer != "" || !s.Required {
			return answer, err
		}
	}
}

// take tries a provider out, has a model chosen, and stores both.
func (c *command) take(ctx context.Context, in *bufio.Reader, p config.Provider) error {
	c.tell(c.text.T("trying %s …", p.BaseURL))
	p, models, untried := c.try(ctx, p)
	if untried != nil && regie.CodeOf(untried) != regie.CodeProviderRejected {
		return untried
	}
	offered := preferred(p, models)
	const most = 20
	for i := range models[:min(len(models), most)] {
		c.tell(fmt.Sprintf("  %2d. %s", i+1, strings.TrimSpace(c.modelLine(&models[i]))))
	}
	question := c.text.T("Model (a number or a name): ")
	if offered != "" {
		question = c.text.T("Model (a number or a name; Enter for %s): ", offered)
	}
	for {
		answer, err := c.ask(in, plain.Strip(question))
		if err != nil {
			return err
		}
		if answer == "" {
			answer = offered
		}
		if n, err := strconv.Atoi(answer); err == nil && n >= 1 && n <= len(models) {
			answer = models[n-1].Name
		}
		if answer == "" {
			continue
		}
		if err := knows(models, answer); err != nil {
			c.tell(c.text.Error(err))
			continue
		}
		if p, err = c.keep(in, p); err != nil {
			return err
		}
		return c.store(p, answer, untried)
	}
}

// store stores the choice. untried says why it was not tried out, nil where it was.
func (c *command) store(p config.Provider, model string, untried error) error {
	if from := p.Origin["api_key"]; from != "" && os.Getenv(from) == p.APIKey {
		p.APIKey = "" // it stays in its variable
	} else {
		p.APIKeyEnv = ""
	}
	path, err := config.SaveSetup(os.Getenv, p, model)
	if err != nil {
		return err
	}
	if model == "" {
		model = p.Name
	}
	if name := p.KeptInKeyring(); name != "" && p.APIKey != "" {
		c.tell("✓ " + c.text.T("the key is in the keyring of this system, as %s of regie; no file has it", name))
	}
	if over := c.overruled(p.Name, model); over != "" {
		c.tell(c.text.T(
			"! stored in %s, readable by you alone, but %s goes before it and names another provider or model", path,
			over))
		return nil
	}
	if untried != nil {
		c.tell(c.text.T(
			"! %s with %s is stored in %s, readable by you alone, but was not tried out: its server gives no list of models (%s). Try it: regie run hello",
			p.Name, model, path, c.text.Error(untried)))
		return nil
	}
	c.tell(c.text.T("✓ %s with %s answers from now on (stored in %s, readable by you alone)", p.Name, model, path))
	return nil
}

// overruled is what goes before what was just stored, empty where nothing does.
func (c *command) overruled(provider, model string) string {
	flags := c.flags
	flags.Provider, flags.Model, flags.BaseURL = "", "", ""
	now, err := config.Load(os.Getenv, flags)
	switch {
	case err != nil:
		return ""
	case now.Provider != provider:
		return now.Origin["provider"]
	case now.Model != model && model != provider:
		return now.Origin["model"]
	default:
		return ""
	}
}

// number asks for one of n, until it is one.
func (c *command) number(in *bufio.Reader, question string, n int) (int, error) {
	for {
		answer, err := c.ask(in, question)
		if err != nil {
			return 0, err
		}
		if i, err := strconv.Atoi(answer); err == nil && i >= 1 && i <= n {
			return i - 1, nil
		}
	}
}

func (c *command) ask(in *bufio.Reader, question string) (string, error) {
	fmt.Fprint(c.stderr, fold(question, columns(c.stderr)))
	return line(in)
}

// line reads a line; at the end of the input, nothing was chosen.
func line(in *bufio.Reader) (string, error) {
	text, err := in.ReadString('\n')
	if text = strings.TrimSpace(text); err != nil && (text == "" || !errors.Is(err, io.EOF)) {
		return "", exit{exitInterrupted}
	}
	return text, nil
}

// secret reads a line without showing it.
func (c *command) secret(in *bufio.Reader, question string) (string, error) {
	show := hide(c.stdin) // before it is asked for: who pastes at once is not shown either
	fmt.Fprint(c.stderr, fold(question, columns(c.stderr)))
	defer func() {
		show()
		fmt.Fprintln(c.stderr)
	}()
	return line(in)
}
