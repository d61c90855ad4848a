package files

import (
	"context"

	"github.com/regie-run/regie/internal/tool"
)

// flowOf says what a call about one file carries (decision 34): also a refused edit shows text that
// is like what it looked for.
func flowOf(inv *tool.Invocation, name string) (tool.Flow, error) {
	root, err := openWorkspace(inv)
	if err != nil { // the call fails too
		return tool.Flow{}, nil // and shows nothing
	}
	defer root.Close()
	place, err := root.Place(name)
	if err != nil { // here as well
		place.Path = name
	}
	return tool.Flow{Files: true, Path: place.Path, Private: place.Secret}, nil
}

// searchFlow is that of a search, which may show any file but secrets.
func searchFlow[A any](context.Context, *tool.Invocation, A) (tool.Flow, error) {
	return tool.Flow{Files: true}, nil
}

// listFlow is that of a list, which shows names.
func listFlow(context.Context, *tool.Invocation, listArgs) (tool.Flow, error) {
	return tool.Flow{Files: true, Path: "."}, nil
}
