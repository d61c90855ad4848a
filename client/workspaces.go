package client

import (
	"context"
	"net/http"

	"github.com/regie-run/regie"
	"github.com/regie-run/regie/internal/control"
	"github.com/regie-run/regie/internal/dispatch"
)

// Workspaces are the directories that agents work in, as control.Workspaces.
type Workspaces struct{ client *Client }

// List lists the workspaces that the store knows, by name.
func (w *Workspaces) List(ctx context.Context) ([]regie.Workspace, error) {
	return all[regie.Workspace](ctx, w.client, "/api/v1/workspaces")
}

// Open returns the workspace that a directory of the engine's machine belongs to, and
// makes it the first time (spec 8.1). It returns CodePathProtected for the home directory and /
// unless Here is set.
func (w *Workspaces) Open(ctx context.Context, in dispatch.WorkspaceRequest) (regie.Workspace, error) {
	return ask[regie.Workspace](ctx, w.client, http.MethodPost, "/api/v1/workspaces", in)
}

// GetTrust returns the content of a workspace for agents, and whether it is trusted.
func (w *Workspaces) GetTrust(ctx context.Context, id regie.ID) (control.WorkspaceTrust, error) {
	return ask[control.WorkspaceTrust](ctx, w.client, http.MethodGet, trustPath(id), nil)
}

// Trust trusts exactly the content that was shown. It returns CodeStalePreview where the content
// has changed since.
func (w *Workspaces) Trust(ctx context.Context, in dispatch.TrustRequest) (control.WorkspaceTrust, error) {
	return ask[control.WorkspaceTrust](ctx, w.client, http.MethodPut, trustPath(in.WorkspaceID), in)
}

// Distrust withdraws the trust in a workspace. It returns CodeNotFound without a decision.
func (w *Workspaces) Distrust(ctx context.Context, id regie.ID) error {
	return w.client.call(ctx, http.MethodDelete, trustPath(id), nil, nil)
}

func trustPath(id regie.ID) string { return "/api/v1/workspaces/" + id.String() + "/trust" }

// Query calls a query of a workspace, without a model and without a session (spec 4.1).
func (w *Workspaces) Query(ctx context.Context, in dispatch.QueryRequest) (dispatch.QueryResult, error) {
	return ask[dispatch.QueryResult](ctx, w.client, http.MethodPost, "/api/v1/queries", in)
}

// Search looks through one workspace: what was said in its sessions, and its files (spec 8.3).
func (w *Workspaces) Search(ctx context.Context, in dispatch.SearchRequest) (dispatch.Found, error) {
	return ask[dispatch.Found](ctx, w.client, http.MethodGet, "/api/v1/search?"+queryOf(in), nil)
}

// Undos take changes of files back, as control.Undos.
type Undos struct{ client *Client }

// Plan says what an undo would do now, with its conflicts; it changes nothing.
func (u *Undos) Plan(ctx context.Context, in dispatch.UndoRequest) (regie.UndoPlan, error) {
	return ask[regie.UndoPlan](ctx, u.client, http.MethodPost, "/api/v1/undos/plan", in)
}

// Undo undoes. With a conflict nothing happens.
func (u *Undos) Undo(ctx context.Context, in dispatch.UndoRequest) (regie.Undo, error) {
	if in.UndoID.IsZero() { // a repetition is the same undo
		in.UndoID = regie.NewID()
	}
	return ask[regie.Undo](ctx, u.client, http.MethodPost, "/api/v1/undos", in)
}
