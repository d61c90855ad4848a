package config

import (
	"cmp"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"

	"go.yaml.in/yaml/v3"

	"github.com/regie-run/regie"
)

var providerName = regexp.MustCompile(`^[a-z][a-z0-9_-]{0,39}$`)

// setupFile returns the private file of regie setup, next to the user's regie.yaml. It may hold
// keys, so only its owner may read it.
func setupFile(env func(string) string) string {
	if path := userFile(env); path != "" {
		return filepath.Join(filepath.Dir(path), "setup.yaml")
	}
	return ""
}

// loadSetup reads the private file of regie setup, if it is there.
func (c *Config) loadSetup(path string) error {
	info, err := os.Stat(path)
	if path == "" || errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err == nil && info.Mode().Perm()&0o077 != 0 {
		return regie.Errorf(regie.CodeBadRequest, "%s may contain keys and can be read by others: run chmod 600 %s", path,
			path)
	}
	layer, f, err := readLayer(LayerSetup, path)
	if err != nil {
		return regie.Errorf(regie.CodeBadRequest, "%v: move it away and run regie setup again", err)
	}
	c.setup, c.Origin["setup"] = f, path
	c.Layers = append(c.Layers, layer)
	return nil
}

// stored is the form of the private file.
type stored struct {
	Providers map[string]Provider `yaml:"providers,omitempty"`
	Agents    map[string]Agent    `yaml:"agents"`
}

// Setup is the content of the private file of regie setup: providers, and the one that answers by
// default with its model.
type Setup struct {
	Providers       map[string]Provider
	Provider, Model string
}

// ReadSetup reads the private file at a path; a missing one is empty. It returns CodeBadRequest for
// an empty path and for a file that others can read or that does not parse.
func ReadSetup(path string) (Setup, error) {
	if path == "" {
		return Setup{}, regie.Errorf(regie.CodeBadRequest, "no home directory is known: set HOME or XDG_CONFIG_HOME")
	}
	c := Config{Origin: map[string]string{}}
	if err := c.loadSetup(path); err != nil {
		return Setup{}, err
	}
	chosen := c.setup.Agents[mainAgent]
	out := Setup{Providers: c.setup.Providers, Provider: chosen.Provider, Model: chosen.Model}
	if out.Providers == nil {
		out.Providers = map[string]Provider{}
	}
	return out, nil
}

// Put adds or replaces a provider.
func (s *Setup) Put(p Provider) {
	s.Providers[p.Name] = Provider{
		Type: p.Type, Vendor: p.Vendor, API: p.API, BaseURL: p.BaseURL,
		APIKey: p.APIKey, APIKeyEnv: p.APIKeyEnv, Models: p.Models,
	}
}

// Write replaces the private file as a whole, readable by its owner alone. It returns
// CodeNoPermission where the file cannot be written.
func (s *Setup) Write(path string) error {
	out := stored{s.Providers, map[string]Agent{mainAgent: {Provider: s.Provider, Model: s.Model}}}
	data, _ := yaml.Marshal(out) // of texts and numbers
	data = append([]byte("# Written by regie setup, which replaces it. What you write yourself belongs in regie.yaml beside it.\n"), data...)
	if err := replaceFile(path, data); err != nil {
		return regie.Errorf(regie.CodeNoPermission, "%s cannot be written: %v", path, err)
	}
	return nil
}

// SaveSetup stores a provider and makes it and the model the choice of this user; other stored ones
// stay. A provider with no type, such as the demo, is chosen only. A key that lies in a variable
// stays there. It returns the file's path, and the codes of ReadSetup and Setup.Write.
func SaveSetup(env func(string) string, p Provider, model string) (string, error) {
	path := setupFile(env)
	s, err := ReadSetup(path)
	if err != nil {
		return "", err
	}
	if from := p.Origin["api_key"]; from != "" && env(from) == p.APIKey {
		p.APIKey = ""
	} else {
		p.APIKeyEnv = ""
	}
	if p.Models = nil; p.Type != "" {
		s.Put(p)
	}
	s.Provider, s.Model = p.Name, model
	return path, s.Write(path)
}

// CompleteProvider returns a stored provider as Load completes it, with its key. It returns
// CodeBadRequest for a bad name and for settings that cannot be used.
func CompleteProvider(env func(string) string, p Provider, path string) (Provider, error) {
	if !providerName.MatchString(p.Name) || p.Name == ProviderDemo || p.Name == ProviderReplay {
		return p, regie.Errorf(regie.CodeBadRequest,
			"%q is not a name for a provider: use small letters, digits, - and _, and not demo or replay", p.Name)
	}
	p.Origin = map[string]string{}
	err := p.completeProvider(env, path)
	return p, err
}

// ProviderPlace returns where a provider of these settings is fixed: a file or a variable. It is
// empty for one that regie setup stored.
func (c *Config) ProviderPlace(name string) string {
	if _, inFile := c.File.Providers[name]; inFile {
		return "providers." + name + " in " + c.sourceOf("providers."+name)
	}
	if _, own := c.setup.Providers[name]; own {
		return ""
	}
	p, _ := c.Named(name)
	return cmp.Or(p.Origin["api_key"], p.Origin["base_url"], c.Origin["provider"])
}

// AtStart returns a provider as the private file had it when these settings were loaded.
func (c *Config) AtStart(name string) (Provider, bool) {
	p, found := c.setup.Providers[name]
	return p, found
}

// replaceFile writes a private file as a whole: a crash leaves the old or the new one.
func replaceFile(path string, data []byte) error {
	dir := filepath.Dir(path)
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return err
	}
	temp, err := os.CreateTemp(dir, ".setup-*") // made for its owner alone
	if err != nil {
		return err
	}
	defer os.Remove(temp.Name())
	_, err = temp.Write(data)
	err = errors.Join(err, temp.Sync(), temp.Close())
	if err != nil {
		return err
	}
	return os.Rename(temp.Name(), path)
}
