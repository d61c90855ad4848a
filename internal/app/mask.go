package app

import (
	"maps"
	"os"
	"slices"
	"strings"

	"github.com/regie-run/regie/internal/config"
	"github.com/regie-run/regie/internal/sandbox"
	"github.com/regie-run/regie/internal/tool"
)

// newMask returns what takes this Regie's keys and tokens out of what tools say (spec 11.3). token
// is that of its server, brought are the keys that clients brought.
func newMask(c *config.Config, token string, brought []config.Key) *tool.Mask {
	secrets := []tool.Secret{{Name: tokenName, Value: token}}
	for _, key := range append(c.Keys(os.Getenv), brought...) {
		// What people give to a server on their own machine that wants no key is any word
		// (lm-studio).
		if !isLocal(key.Server) {
			secrets = append(secrets, tool.Secret{Name: key.Name, Value: key.Value})
		}
	}
	for _, name := range c.File.MCPNames() {
		server := c.File.MCPServers[name]
		for _, set := range []map[string]string{server.Env, server.Headers} {
			for _, variable := range slices.Sorted(maps.Keys(set)) {
				value, at := set[variable], "mcp_servers."+name+"."+variable
				if !sandbox.IsSecret(variable, value) { // a mode or a level is none
					continue
				}
				secrets = append(secrets, tool.Secret{Name: at, Value: value})
				// Bearer and the like
				if _, bare, ok := strings.Cut(value, " "); ok && strings.EqualFold(variable, "Authorization") {
					secrets = append(secrets, tool.Secret{Name: at, Value: bare})
				}
			}
		}
	}
	return tool.NewMask(secrets)
}
