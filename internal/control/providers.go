package control

import (
	"cmp"
	"context"
	"maps"
	"os"
	"slices"

	"github.com/regie-run/regie"
	"github.com/regie-run/regie/internal/config"
	"github.com/regie-run/regie/internal/dispatch"
)

// Providers lists what can answer now, and what is stored for the next start. Keys are never shown.
func (c *Catalog) Providers(ctx context.Context) ([]dispatch.ProviderView, error) {
	if _, err := c.authorize(ctx, "list_providers"); err != nil {
		return nil, err
	}
	var stored config.Setup
	if c.Settings.SetupFile != "" {
		var err error
		if stored, err = config.ReadSetup(c.Settings.SetupFile); err != nil {
			return nil, err
		}
	}
	names := slices.Concat(c.Settings.ProviderNames(), slices.Collect(maps.Keys(stored.Providers)))
	if c.Settings.Provider != "" {
		names = append(names, c.Settings.Provider)
	}
	slices.Sort(names)
	out := []dispatch.ProviderView{}
	for _, name := range slices.Compact(names) {
		out = append(out, c.viewProvider(&stored, name))
	}
	return out, nil
}

// viewProvider returns a provider as it is stored, else as it answers now.
func (c *Catalog) viewProvider(stored *config.Setup, name string) dispatch.ProviderView {
	p, _ := c.Settings.Named(name)
	view := dispatch.ProviderView{
		Name: name, Type: cmp.Or(p.Type, name), BaseURL: p.BaseURL, HasKey: p.APIKey != "",
		Chosen: name == c.Settings.Provider, Place: c.Settings.ProviderPlace(name),
	}
	before, wasStored := c.Settings.AtStart(name)
	now, isStored := stored.Providers[name]
	if _, fixed := c.Settings.File.Providers[name]; fixed || !isStored && !wasStored {
		return view
	}
	view.Removed = !isStored
	view.Place, view.Restart = "", isStored != wasStored || !now.Same(before)
	if isStored {
		view.Type, view.BaseURL, view.Model = now.Type, now.BaseURL, now.Models[config.DefaultSize]
		view.HasKey = now.APIKey != "" || view.HasKey && !view.Restart
		if stored.Provider == name {
			view.Model = cmp.Or(stored.Model, view.Model)
			view.Restart = view.Restart || !view.Chosen
		}
	}
	return view
}

// ProviderTypes returns the types that a provider can have.
func ProviderTypes() []string { return config.TypeNames() }

// AddProvider tries a provider and stores it as regie setup does. It returns CodeConflict for a
// name that is taken and the codes of changeProvider.
func (c *Catalog) AddProvider(ctx context.Context, in dispatch.NewProvider) (dispatch.ProviderView, error) {
	if _, err := c.authorizeAll(ctx, "change_providers"); err != nil {
		return dispatch.ProviderView{}, err
	}
	return c.changeProvider(ctx, config.Provider{Name: in.Name, Type: in.Type}, true, in.ProviderFields)
}

// ChangeProvider tries a stored provider with changes and stores it. It returns CodeNotFound for
// one that is not stored and the codes of changeProvider.
func (c *Catalog) ChangeProvider(ctx context.Context, in dispatch.ProviderEdit) (dispatch.ProviderView, error) {
	if _, err := c.authorizeAll(ctx, "change_providers"); err != nil {
		return dispatch.ProviderView{}, err
	}
	return c.changeProvider(ctx, config.Provider{Name: in.Name}, false, in.ProviderFields)
}

// RemoveProvider removes a stored provider. A key in a keyring stays there. It returns CodeNotFound
// for one that is not stored, and CodeConflict where an agent of regie.yaml needs it.
func (c *Catalog) RemoveProvider(ctx context.Context, name string) error {
	if _, err := c.authorizeAll(ctx, "change_providers"); err != nil {
		return err
	}
	stored, unlock, err := c.openProviders(name)
	if err != nil {
		return err
	}
	defer unlock()
	if _, found := stored.Providers[name]; !found {
		return regie.Errorf(regie.CodeNotFound, "no provider %s is stored", name)
	}
	for agent, settings := range c.Settings.File.Agents {
		if settings.Provider == name {
			return regie.Errorf(regie.CodeConflict,
				"the agent %s of regie.yaml needs the provider %s: change the agent first", agent, name)
		}
	}
	if delete(stored.Providers, name); stored.Provider == name {
		stored.Provider, stored.Model = "", ""
	}
	return stored.Write(c.Settings.SetupFile)
}

// openProviders reads the stored providers for a change of one, which no other change overlaps
// until unlock is called. It returns CodeConflict for a provider that a file fixes.
func (c *Catalog) openProviders(name string) (stored config.Setup, unlock func(), err error) {
	if c.Settings.SetupFile == "" {
		return stored, nil, regie.Errorf(regie.CodeConflict,
			"this server was started with one file of settings: change its providers in %s",
			c.Settings.Origin["file"])
	}
	if _, fixed := c.Settings.File.Providers[name]; fixed {
		return stored, nil, regie.Errorf(regie.CodeConflict,
			"the provider %s is fixed by %s: change it there", name, c.Settings.ProviderPlace(name))
	}
	c.changing.Lock()
	if stored, err = config.ReadSetup(c.Settings.SetupFile); err != nil {
		c.changing.Unlock()
	}
	return stored, c.changing.Unlock, err
}

// changeProvider tries and stores a new provider, or the stored one of its name, with changes.
// Nothing is stored of one that fails. It returns the codes of TryProvider and of the keyring, and
// CodeProviderAuth where a stored key would go to another address.
func (c *Catalog) changeProvider(ctx context.Context, p config.Provider, add bool, in dispatch.ProviderFields) (
	view dispatch.ProviderView, err error,
) {
	stored, unlock, err := c.openProviders(p.Name)
	if err != nil {
		return view, err
	}
	defer unlock()
	before, found := stored.Providers[p.Name]
	if !add {
		before.Name = p.Name
		p = before
	}
	if in.Model == "" && stored.Provider == p.Name {
		in.Model = stored.Model
	}
	address := cmp.Or(config.CompleteAddress(in.BaseURL), p.BaseURL)
	switch {
	case add && found:
		err = regie.Errorf(regie.CodeConflict, "there is a provider %s: change it, or take another name", p.Name)
	case !add && !found:
		err = regie.Errorf(regie.CodeNotFound, "no provider %s is stored", p.Name)
	case in.Key != "":
		p.APIKey, p.APIKeyEnv, err = in.Key, "", config.CheckKey(in.Key)
	case address != p.BaseURL && p.APIKey+p.APIKeyEnv != "":
		err = regie.Errorf(regie.CodeProviderAuth,
			"the key of %s is for %s only: give the key for the new address", p.Name, p.BaseURL)
	}
	if err == nil {
		p.BaseURL = address
		p, view.Untested, err = c.tryProvider(ctx, p, in.Model)
	}
	if err == nil && in.Key != "" && in.Keyring {
		p, err = config.KeepInKeyring(p)
	}
	if err != nil {
		return view, err
	}
	if stored.Put(p); in.Chosen || stored.Provider == p.Name {
		stored.Provider, stored.Model = p.Name, p.Models[config.DefaultSize]
	}
	untested := view.Untested
	view = c.viewProvider(&stored, p.Name)
	view.Untested = untested
	return view, stored.Write(c.Settings.SetupFile)
}

// tryProvider asks a provider for its models and returns it as it is stored, with its default
// model. untested says why the server was not asked.
func (c *Catalog) tryProvider(ctx context.Context, p config.Provider, model string) (
	_ config.Provider, untested string, err error,
) {
	whole, err := config.CompleteProvider(os.Getenv, p, c.Settings.SetupFile)
	if err != nil {
		return p, "", err
	}
	tried, model, unasked, err := c.TryProvider(ctx, whole, cmp.Or(model, p.Models[config.DefaultSize]))
	if unasked != nil {
		untested = unasked.Error()
	}
	p.Type, p.BaseURL, p.Models = tried.Type, tried.BaseURL, maps.Clone(p.Models)
	if p.Models == nil {
		p.Models = map[string]string{}
	}
	p.Models[config.DefaultSize] = model
	return p, untested, err
}
