package sandbox

import (
	"os"
	"path/filepath"
	"strings"

	"github.com/regie-run/regie"
)

func errForced(tier Tier) error {
	return regie.Errorf(regie.CodeNoSandbox,
		"the settings ask for the sandbox %s, which does not work here: regie doctor says why", string(tier))
}

func errLate() error {
	return regie.Errorf(regie.CodeStale,
		"the command was not run: this engine was suspended, and another one may have taken the session over")
}

// explainUnfit says why commands cannot be confined in a workspace.
func (s *Sandbox) explainUnfit(root string, tier Tier) error {
	if root == filepath.Dir(root) || s.config.Home != "" && isWithin(s.config.Home, root) {
		return regie.Errorf(regie.CodeNoSandbox,
			"the workspace %s holds your home directory: nothing there can be kept from commands", root)
	}
	for _, hidden := range s.config.Hidden {
		if isWithin(root, hidden) {
			return regie.Errorf(regie.CodeNoSandbox, "the workspace %s lies in a directory that commands must not see",
				root)
		}
	}
	for _, name := range []string{".git", ".regie"} {
		if info, err := os.Lstat(filepath.Join(root, name)); err == nil && info.Mode()&os.ModeSymlink != 0 {
			return regie.Errorf(regie.CodeNoSandbox,
				"%s of the workspace is a link: it cannot be protected from commands", name)
		}
	}
	return s.unfitOwner(root, tier)
}

// isWithin reports whether path is dir or below it.
func isWithin(path, dir string) bool {
	return path == dir || dir == "/" || strings.HasPrefix(path, strings.TrimSuffix(dir, "/")+"/")
}
