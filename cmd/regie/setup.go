package main

import (
	"bufio"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"
	"golang.org/x/term"

	"github.com/regie-run/regie"
	"github.com/regie-run/regie/internal/app"
	"github.com/regie-run/regie/internal/config"
	"github.com/regie-run/regie/internal/sanitize"
)

// newSetupCommand chooses the model that answers from now on.
func newSetupCommand(env *environment) *cobra.Command {
	var keyStdin, keyring bool
	cmd := &cobra.Command{
		Use: "setup", Annotations: map[string]string{localOnly: "yes"}, Args: checkArgCount(0, 0),
		Short: env.T("Choose a model: a key, a server, or the demo"),
		Long:  env.T("Choose the default model. Your choice is tested with one request, which is free of charge, and stored in setup.yaml beside your regie.yaml, readable by you alone. Keys are never shown.\n\nWithout a terminal: regie setup --provider anthropic --key-stdin < key, or regie setup --base-url http://127.0.0.1:8000/v1 --model NAME."),
		RunE: func(cmd *cobra.Command, _ []string) error {
			switch {
			case env.flags.Provider != "" || env.flags.BaseURL != "":
				return setupByFlags(cmd.Context(), env, keyStdin, keyring)
			case keyStdin || !isAttended(env.stdin, env.stderr):
				return regie.Errorf(codeUsage,
					"without a terminal say what to set up: --provider anthropic --key-stdin, or --base-url with --model (see --help)")
			}
			return newSetupDialog(env).runDialog(cmd.Context())
		},
	}
	cmd.Flags().BoolVar(&keyStdin, "key-stdin", false, env.T("read the key from the first line of standard input"))
	cmd.Flags().BoolVar(&keyring, "keyring", false,
		env.T("keep the key of --key-stdin in the keyring of the operating system, not in setup.yaml"))
	addModelFlags(env, cmd)
	return cmd
}

// setupByFlags stores the values of the flags.
func setupByFlags(ctx context.Context, env *environment, keyStdin, keyring bool) error {
	if env.flags.Provider == config.ProviderDemo {
		return storeSetup(env, config.Provider{Name: config.ProviderDemo}, "", nil)
	}
	p, ok := env.config.Named(env.config.Provider)
	if !ok || p.Type == "" {
		return regie.Errorf(codeUsage, "the provider %s cannot be set up: use %s", env.config.Provider,
			strings.Join(append(config.TypeNames(), config.ProviderDemo), ", "))
	}
	if keyStdin {
		key, err := readLine(bufio.NewReader(env.stdin))
		if refused, ok := errors.AsType[*regie.Error](config.CheckKey(key)); err == nil && ok {
			refused.Code = codeUsage
			err = refused
		}
		if err != nil {
			return err
		}
		p = withKey(p, key)
	}
	tried, err := app.TryModel(ctx, p, env.config.Model)
	if err != nil {
		return err
	}
	if p = tried.Provider; tried.Model == "" {
		return regie.Errorf(codeUsage, "name the model with --model: the server has %s", tried.ModelNames())
	}
	if keyring {
		kept, err := config.KeepInKeyring(p)
		if err != nil {
			return err
		}
		p = kept
	}
	return storeSetup(env, p, tried.Model, tried.Untried)
}

// withKey returns a provider with a key that the person gave.
func withKey(p config.Provider, key string) config.Provider {
	p.APIKey, p.Origin = key, maps.Clone(p.Origin)
	delete(p.Origin, "api_key")
	return p
}

// storeSetup stores the choice. untried says why it was not tried, nil where it was.
func storeSetup(env *environment, p config.Provider, model string, untried error) error {
	path, err := config.SaveSetup(os.Getenv, p, model)
	if err != nil {
		return err
	}
	model = cmp.Or(model, p.Name)
	if name := p.KeptInKeyring(); name != "" && p.APIKey != "" {
		env.printWrapped("✓ " + env.T("the key is in the keyring of this system, as %s of regie; no file has it", name))
	}
	now, err := config.Load(os.Getenv, config.Flags{DataDir: env.flags.DataDir, Config: env.flags.Config})
	switch {
	case err == nil && now.Provider != p.Name:
		env.printWrapped(env.T("! stored in %s (readable by you alone), but %s overrides it with another provider or model",
			path, now.Origin["provider"]))
	case untried != nil:
		env.printWrapped(env.T("! %s with %s is stored in %s (readable by you alone) but was not tested: its server does not list its models (%s). Test it: regie run hello",
			p.Name, model, path, env.text.Error(untried)))
	case p.Name == config.ProviderDemo:
		env.printWrapped(env.T("✓ the demo answers from now on (stored in %s, readable by you alone)", path))
	default:
		env.printWrapped(env.T("✓ %s with %s answers from now on (stored in %s, readable by you alone)", p.Name, model, path))
	}
	return nil
}

// requireModelOrSetup requires a model; at a terminal, a person without one chooses it first.
func requireModelOrSetup(ctx context.Context, env *environment) error {
	err := env.requireModel(ctx)
	attended := isAttended(env.stdin, env.stderr)
	offered := err == nil && attended && env.offerModel(ctx) &&
		env.askConfirmation(env.T("Choose it now? [y/N] "), env.T("the demo answers")) == nil
	if !offered && (regie.CodeOf(err) != regie.CodeNoModel || env.config.Provider != "" || !attended) {
		return err
	}
	if err := newSetupDialog(env).runDialog(ctx); err != nil {
		return err
	}
	if env.config, err = config.Load(os.Getenv, env.flags); err != nil {
		return err
	}
	return env.requireModel(ctx)
}

// setupDialog asks a person at a terminal which model answers.
type setupDialog struct {
	*environment
	line *term.Terminal // edits the answers
}

func newSetupDialog(env *environment) *setupDialog {
	return &setupDialog{environment: env, line: term.NewTerminal(struct {
		io.Reader
		io.Writer
	}{env.stdin, env.stderr}, "")}
}

// runDialog asks until a choice is stored; Ctrl-D ends it.
func (d *setupDialog) runDialog(ctx context.Context) error {
	found := app.Detect(ctx, d.config, os.Getenv)
	showDetected(d.environment, &found)
	var names []string
	var choices []func() error
	offer := func(name string, choose func() error) {
		names, choices = append(names, name), append(choices, choose)
	}
	if found.Running && len(found.Models) > 0 {
		offer(d.T("Ollama on this machine"), func() error {
			return d.chooseModel(ctx, config.Provider{
				Name: config.ProviderOllama, Type: config.ProviderOllama, BaseURL: found.Ollama,
			})
		})
	}
	for _, name := range found.Keys {
		p, _ := d.config.Named(name)
		offer(d.T("%s, as it is configured (%s)", name, cmp.Or(p.Origin["api_key"], "-")),
			func() error { return d.chooseModel(ctx, p) })
	}
	offer(d.T("paste a key (%s)", strings.Join(config.KeyVendors(), ", ")), func() error { return d.pasteKey(ctx) })
	offer(d.T("the address of a model server"), func() error { return d.askServer(ctx, "") })
	offer(d.T("the demo: scripted replies, no model, free of charge"), func() error {
		return storeSetup(d.environment, config.Provider{Name: config.ProviderDemo}, "", nil)
	})
	for {
		fmt.Fprintln(d.stderr)
		n, err := d.askChoice(names, d.T("Which? (Enter for %d): ", 1), 1)
		if err == nil {
			err = choices[n]()
		}
		if _, left := errors.AsType[exit](err); err == nil || left || regie.CodeOf(err) == regie.CodeNoPermission {
			return err
		}
		d.printWrapped("✗ " + d.text.Error(err)) // nothing was stored: the person chooses again
	}
}

// pasteKey asks for a key, and for its vendor if the key does not show it. It sends the key nowhere
// before that.
func (d *setupDialog) pasteKey(ctx context.Context) error {
	key, err := d.askSecret(d.T("Paste the key (it is not shown): "))
	if err == nil {
		err = config.CheckKey(key)
	}
	if err != nil {
		return err
	}
	name, vendors := config.VendorOfKey(key), config.KeyVendors()
	if !slices.Contains(vendors, name) {
		d.printWrapped(d.T("The key does not show its vendor, so it has not been sent anywhere yet. Which vendor is it from?"))
		// by default it is still sent nowhere
		n, err := d.askChoice(append(slices.Clone(vendors), d.T("the address of a model server")),
			d.T("Which? (Enter for %d): ", len(vendors)+1), len(vendors)+1)
		if err != nil {
			return err
		}
		if n == len(vendors) {
			return d.askServer(ctx, key)
		}
		name = vendors[n]
	}
	// the variables of other servers do not belong to this key
	settings, err := config.Load(func(variable string) string {
		if strings.HasPrefix(variable, "REGIE_") {
			return ""
		}
		return os.Getenv(variable)
	}, config.Flags{Provider: name, DataDir: d.flags.DataDir})
	if err != nil {
		return err
	}
	p, _ := settings.Named(name)
	return d.chooseModel(ctx, withKey(p, key))
}

// askServer asks for a server, and for its key unless it is given.
func (d *setupDialog) askServer(ctx context.Context, key string) (err error) {
	const usual = "http://127.0.0.1:8000/v1"
	p := config.Provider{Name: "server", Type: config.ProviderOpenAI, APIKey: key}
	if p.BaseURL, err = d.askLine(d.T("Address (Enter for %s): ", usual)); err == nil {
		p.BaseURL, err = d.completeAddress(cmp.Or(p.BaseURL, usual))
	}
	if key == "" && err == nil {
		p.APIKey, err = d.askSecret(d.T("Key (it is not shown; empty for none): "))
	}
	if err != nil {
		return err
	}
	p.BaseURL = strings.TrimRight(p.BaseURL, "/")
	return d.chooseModel(ctx, p)
}

// completeAddress asks how a server of another machine is reached where its address does not say.
func (d *setupDialog) completeAddress(address string) (string, error) {
	if address = config.CompleteAddress(address); strings.Contains(address, "://") {
		return address, nil
	}
	n, err := d.askChoice([]string{
		"https://" + address, d.T("%s (others on the network can read everything, the key too)", "http://"+address),
	}, d.T("Which? (Enter for %d): ", 1), 1)
	return []string{"https://", "http://"}[n] + address, err
}

// chooseModel tries a provider, asks for a model, and stores both.
func (d *setupDialog) chooseModel(ctx context.Context, p config.Provider) error {
	d.printWrapped(d.T("testing %s …", p.BaseURL))
	tried, err := app.TryProvider(ctx, p)
	if err != nil {
		return err
	}
	p, models := tried.Provider, tried.Models
	for i := range models {
		d.printWrapped(fmt.Sprintf("  %2d. %s", i+1, strings.TrimSpace(modelLine(d.environment, &models[i]))))
	}
	offered, question := tried.Model, d.T("Model (a number or a name): ")
	if offered == "" && len(models) > 0 {
		offered = models[0].Name
	}
	if offered != "" {
		question = d.T("Model (a number or a name; Enter for %s): ", offered)
	}
	for {
		answer, err := d.askLine(sanitize.Strip(question))
		if err != nil {
			return err
		}
		answer = cmp.Or(answer, offered)
		if n, err := strconv.Atoi(answer); err == nil && n >= 1 && n <= len(models) {
			answer = models[n-1].Name
		}
		if answer == "" {
			continue
		}
		if err := tried.CheckModel(answer); err != nil {
			d.printWrapped(d.text.Error(err))
			continue
		}
		if p, err = d.chooseKeyStore(p); err != nil {
			return err
		}
		return storeSetup(d.environment, p, answer, tried.Untried)
	}
}

// chooseKeyStore asks where a given key is kept, if a keyring answers; else it is kept in the
// private file.
func (d *setupDialog) chooseKeyStore(p config.Provider) (config.Provider, error) {
	if name := p.KeptInKeyring(); name != "" && p.APIKey != "" { // and stays there
		return config.InKeyring(p, name), nil
	}
	if p.APIKey == "" || p.Origin["api_key"] != "" && os.Getenv(p.Origin["api_key"]) == p.APIKey ||
		!config.KeyringAnswers() {
		return p, nil
	}
	n, err := d.askChoice([]string{d.T("in the keyring of this system"), d.T("in setup.yaml, readable by you alone")},
		d.T("Where is the key kept? (Enter for 1): "), 1)
	if err != nil || n == 1 {
		return p, err
	}
	return config.KeepInKeyring(p)
}

// askChoice shows a numbered list and returns the index of the choice; byDefault is the number for
// an empty line.
func (d *setupDialog) askChoice(names []string, question string, byDefault int) (int, error) {
	for i, name := range names {
		d.printWrapped(fmt.Sprintf("  %d. %s", i+1, name))
	}
	for {
		answer, err := d.askLine(question)
		if err != nil {
			return 0, err
		}
		if n, err := strconv.Atoi(cmp.Or(answer, strconv.Itoa(byDefault))); err == nil && n >= 1 && n <= len(names) {
			return n - 1, nil
		}
	}
}

// askLine asks for a line, which the arrow keys edit.
func (d *setupDialog) askLine(question string) (string, error) {
	return d.readAnswer(question, setTermios, func(prompt string) (string, error) {
		d.line.SetPrompt(prompt)
		return d.line.ReadLine()
	})
}

// askSecret asks for a line without showing it. The rest of a paste is forgotten.
func (d *setupDialog) askSecret(question string) (string, error) {
	return d.readAnswer(question, forgetTermios, d.line.ReadPassword)
}

// readAnswer shows a question and reads its answer; at the end of the input it returns an exit.
func (d *setupDialog) readAnswer(question string, restoring uint, read func(string) (string, error)) (string, error) {
	defer readRaw(d.stdin, restoring)() // before the question: a key may be pasted at once
	width := terminalWidth(d.stderr)
	if width > 0 {
		_ = d.line.SetSize(width, 1) // it writes nothing at the beginning of a line
	}
	question = strings.TrimRight(foldLines(question, width), " ") + " "
	last := strings.LastIndexByte(question, '\n') + 1
	fmt.Fprint(d.stderr, question[:last])
	answer, err := read(question[last:])
	if err != nil {
		fmt.Fprintln(d.stderr)
		return "", exit{exitInterrupted}
	}
	return strings.TrimSpace(answer), nil
}

// readLine reads a line; at the end of the input it returns an exit.
func readLine(in *bufio.Reader) (string, error) {
	text, err := in.ReadString('\n')
	if text = strings.TrimSpace(text); err != nil && (text == "" || !errors.Is(err, io.EOF)) {
		return "", exit{exitInterrupted}
	}
	return text, nil
}
