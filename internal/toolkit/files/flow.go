package files

import (
	"context"

	"github.com/regie-run/regie/internal/tool"
)

// flowOf says what a call about one file carries (decision 34): also a refused edit shows text that
// is like what it looked for.
func flowOf(inv *tool.Invocation, name string) tool.Flow {
	flow := tool.Flow{Files: true, Path: name}
	root, err := openWorkspace(inv)
	if err != nil {
		return flow
	}
	defer root.Close()
	if place, err := root.Place(name); err == nil {
		flow.Path, flow.Private = place.Path, place.Secret
	}
	return flow
}

// searchFlow is that of a search, which may show any file but secrets.
func searchFlow[A any](context.Context, *tool.Invocation, A) tool.Flow { return tool.Flow{Files: true} }

// listFlow is that of a list, which shows names.
func listFlow(context.Context, *tool.Invocation, listArgs) tool.Flow {
	return tool.Flow{Files: true, Path: "."}
}
