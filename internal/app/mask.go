package app

import (
	"os"

	"github.com/regie-run/regie/internal/config"
	"github.com/regie-run/regie/internal/tool"
)

// mask is what takes this Regie's keys and tokens out of what tools say (spec 11.3).
func mask(c config.Config) *tool.Mask {
	keys := c.Keys(os.Getenv)
	secrets := make([]tool.Secret, len(keys))
	for i, key := range keys {
		secrets[i] = tool.Secret(key)
	}
	return tool.NewMask(secrets)
}
