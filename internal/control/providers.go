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

// AddProvider tries a provider and stores it as regie setup does. It returns CodeConflict for a
// name that is taken and the codes of saveProvider.
func (c *Catalog) AddProvider(ctx context.Context, in dispatch.NewProvider) (dispatch.ProviderView, error) {
	return c.changeProvider(ctx, in.Name, func(stored *config.Setup) (config.Provider, error) {
		if _, taken := stored.Providers[in.Name]; taken {
			return config.Provider{}, regie.Errorf(regie.CodeConflict, "there is a provider %s: change it, or take another name", in.Name)
		}
		return config.Provider{Name: in.Name, Type: in.Type}, nil
	}, in.ProviderFields)
}

// ChangeProvider tries a stored provider with changes and stores it. It returns CodeNotFound for
// one that is not stored and the codes of saveProvider.
func (c *Catalog) ChangeProvider(ctx context.Context, in dispatch.ProviderEdit) (dispatch.ProviderView, error) {
	return c.changeProvider(ctx, in.Name, func(stored *config.Setup) (config.Provider, error) {
		p, found := stored.Providers[in.Name]
		p.Name = in.Name
		switch {
		case !found:
			return p, regie.Errorf(regie.CodeNotFound, "no provider %s is stored", in.Name)
		case in.BaseURL != "" && in.BaseURL != p.BaseURL && in.Key == "" && p.APIKey+p.APIKeyEnv != "":
			return p, regie.Errorf(regie.CodeProviderAuth,
				"the key of %s is for %s only: give the key for the new address", in.Name, p.BaseURL)
		}
		return p, nil
	}, in.ProviderFields)
}

// RemoveProvider removes a stored provider. A key in a keyring stays there. It returns CodeNotFound
// for one that is not stored, and CodeConflict where an agent of regie.yaml needs it.
func (c *Catalog) RemoveProvider(ctx context.Context, name string) error {
	stored, unlock, err := c.openProviders(ctx, name)
	if err != nil {
		return err
	}
	defer unlock()
	if _, found := stored.Providers[name]; !found {
		return regie.Errorf(regie.CodeNotFound, "no provider %s is stored", name)
	}
	for agent, settings := range c.Settings.File.Agents {
		if settings.Provider == name {
			return regie.Errorf(regie.CodeConflict, "the agent %s of regie.yaml needs the provider %s: change the agent first", agent, name)
		}
	}
	if delete(stored.Providers, name); stored.Provider == name {
		stored.Provider, stored.Model = "", ""
	}
	return stored.Write(c.Settings.SetupFile)
}

// openProviders reads the stored providers for a change of one, which no other change overlaps
// until unlock is called. It returns CodeConflict for a provider that a file fixes.
func (c *Catalog) openProviders(ctx context.Context, name string) (stored config.Setup, unlock func(), err error) {
	if _, err = c.authorizeAll(ctx, "change_providers"); err != nil {
		return stored, nil, err
	}
	if c.Settings.SetupFile == "" {
		return stored, nil, regie.Errorf(regie.CodeConflict, "this server was started with one file of settings: change its providers in %s",
			c.Settings.Origin["file"])
	}
	if _, fixed := c.Settings.File.Providers[name]; fixed {
		return stored, nil, regie.Errorf(regie.CodeConflict, "the provider %s is fixed by %s: change it there", name, c.Settings.ProviderPlace(name))
	}
	c.changing.Lock()
	if stored, err = config.ReadSetup(c.Settings.SetupFile); err != nil {
		c.changing.Unlock()
	}
	return stored, c.changing.Unlock, err
}

// changeProvider tries and stores the provider that find returns, with changes. Nothing is stored
// of one that fails. It returns the codes of TryProvider and of the keyring.
func (c *Catalog) changeProvider(ctx context.Context, name string,
	find func(*config.Setup) (config.Provider, error), in dispatch.ProviderFields,
) (dispatch.ProviderView, error) {
	stored, unlock, err := c.openProviders(ctx, name)
	if err != nil {
		return dispatch.ProviderView{}, err
	}
	defer unlock()
	p, err := find(&stored)
	if err == nil && in.Key != "" {
		p.APIKey, p.APIKeyEnv, err = in.Key, "", config.CheckKey(in.Key)
	}
	if err != nil {
		return dispatch.ProviderView{}, err
	}
	p.BaseURL = cmp.Or(config.CompleteAddress(in.BaseURL), p.BaseURL)
	whole, err := config.CompleteProvider(os.Getenv, p, c.Settings.SetupFile)
	if err != nil {
		return dispatch.ProviderView{}, err
	}
	tried, model, untested, err := c.TryProvider(ctx, whole, cmp.Or(in.Model, p.Models[config.DefaultSize]))
	if err != nil {
		return dispatch.ProviderView{}, err
	}
	p.Type, p.BaseURL = tried.Type, tried.BaseURL
	if tried.Models[config.DefaultSize] != model {
		p.Models = maps.Clone(p.Models)
		if p.Models == nil {
			p.Models = map[string]string{}
		}
		p.Models[config.DefaultSize] = model
	}
	if in.Key != "" && in.Keyring {
		if p, err = config.KeepInKeyring(p); err != nil {
			return dispatch.ProviderView{}, err
		}
	}
	if stored.Put(p); in.Chosen || stored.Provider == name {
		stored.Provider, stored.Model = name, model
	}
	if err = stored.Write(c.Settings.SetupFile); err != nil {
		return dispatch.ProviderView{}, err
	}
	view := c.viewProvider(&stored, name)
	if untested != nil {
		view.Untested = untested.Error()
	}
	return view, nil
}
