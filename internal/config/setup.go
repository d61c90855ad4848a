package config

import (
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

// loadSetup reads what regie setup stored, if it did.
func (c *Config) loadSetup(env func(string) string) error {
	path := setupFile(env)
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

// SaveSetup stores a provider and makes it and the model the choice of this user; other stored ones
// stay. A provider with no type, such as the demo, is chosen only. The file is replaced as a whole
// and readable by its owner alone. It returns the file's path, and CodeNoPermission or
// CodeBadRequest where it cannot be written.
func SaveSetup(env func(string) string, p Provider, model string) (string, error) {
	path := setupFile(env)
	if path == "" {
		return "", regie.Errorf(regie.CodeBadRequest, "no home directory is known: set HOME or XDG_CONFIG_HOME")
	}
	c := Config{Origin: map[string]string{}}
	if err := c.loadSetup(env); err != nil {
		return "", err
	}
	out := stored{Providers: c.setup.Providers, Agents: map[string]Agent{mainAgent: {Provider: p.Name, Model: model}}}
	if out.Providers == nil {
		out.Providers = map[string]Provider{}
	}
	if p.Type != "" {
		out.Providers[p.Name] = Provider{
			Type: p.Type, Vendor: p.Vendor, API: p.API, BaseURL: p.BaseURL,
			APIKey: p.APIKey, APIKeyEnv: p.APIKeyEnv,
		}
	}
	data, _ := yaml.Marshal(out) // of texts and numbers
	data = append([]byte("# Written by regie setup, which replaces it. What you write yourself belongs in regie.yaml beside it.\n"), data...)
	if err := replaceFile(path, data); err != nil {
		return "", regie.Errorf(regie.CodeNoPermission, "%s cannot be written: %v", path, err)
	}
	return path, nil
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
