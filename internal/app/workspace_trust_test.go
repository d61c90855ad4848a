package app_test

import (
	"path/filepath"
	"strings"
	"testing"

	"github.com/regie-run/regie"
	"github.com/regie-run/regie/client"
	"github.com/regie-run/regie/internal/control"
)

// distrusted writes content for agents into the workspace, some of it hostile.
func (b *harness) distrusted() {
	b.t.Helper()
	b.file(".regie/regie.yaml", "agents: {main: {instructions: \"Be <b>kind</b>.\\e[31m\"}}\nproviders: {lab: {type: openai, api_key: canary-0123456}}\nlimits: {chat: {max_tool_calls: 2}}\n")
	b.file(".mcp.json", `{"mcpServers":{"bank\u202e":{"command":"sh","args":["-c","id; echo ${HOME}"],"env":{"K":"canary-0123456"}}}}`)
	b.file(".regie/commands/review.md", "Review <script>alert(1)</script> $1")
	b.file(".regie/skills/sealing/SKILL.md", sealing)
	b.file("AGENTS.md", "Be brief.")
}

// remote is a client with a token.
func (h *house) remote(token string) *client.Client {
	h.t.Helper()
	remote, err := client.New(h.served.URL, token, "en")
	fatal(h.t, err)
	h.t.Cleanup(remote.Close)
	return remote
}

func stateOf(t *testing.T, remote *client.Client, id regie.ID) string {
	t.Helper()
	seen, err := remote.Workspaces.GetTrust(t.Context(), id)
	fatal(t, err)
	return string(seen.State)
}

// TestWorkspaceTrust trusts over the API what was shown and nothing else, and withdraws it.
func TestWorkspaceTrust(t *testing.T) {
	t.Parallel()
	b := newHarness(t, newModel(t))
	b.distrusted()
	h := b.serve("127.0.0.1:0")
	place, other := h.placeAt(b.root).ID, h.placeAt(t.TempDir()).ID
	remote := h.remote(h.token)
	seen, err := remote.Workspaces.GetTrust(t.Context(), place)
	fatal(t, err)
	uses := map[string]string{}
	for _, k := range seen.Keys {
		uses[k.Key] = string(k.Use) + " " + k.Text
	}
	if seen.State != "untrusted" || len(seen.Files) != 4 || !seen.Instructions || len(seen.Skills) != 1 || len(seen.Commands) != 1 || len(seen.Servers) != 1 ||
		!strings.Contains(uses["agents.main.instructions"], "trusted \"Be <b>kind") || !strings.HasPrefix(uses["limits"], "narrows ") || uses["providers"] != "never " {
		t.Errorf("%+v %v", seen, uses)
	}
	if s := seen.Servers[0]; s.Starts != `sh -c 'id; echo ${HOME}'` || len(s.Variables) != 1 {
		t.Errorf("the server: %+v", s)
	}
	b.file(".regie/commands/review.md", "Review $1.")
	if _, err := remote.Workspaces.Trust(t.Context(), client.TrustRequest{WorkspaceID: place, SHA256: seen.SHA256}); regie.CodeOf(err) != regie.CodeStalePreview {
		t.Errorf("what has changed since: %v", err)
	}
	if got := stateOf(t, remote, place); got != "untrusted" {
		t.Errorf("after a refusal: %s", got)
	}
	seen, err = remote.Workspaces.GetTrust(t.Context(), place)
	fatal(t, err)
	now, err := remote.Workspaces.Trust(t.Context(), client.TrustRequest{WorkspaceID: place, SHA256: seen.SHA256})
	if err != nil || now.State != "trusted" || now.TrustedBy == "" || stateOf(t, remote, place) != "trusted" {
		t.Errorf("%+v (%v)", now, err)
	}
	b.file(".regie/commands/review.md", "Review $1 again.")
	if seen, err = remote.Workspaces.GetTrust(t.Context(), place); err != nil || seen.State != "changed" || len(seen.Changes) != 1 {
		t.Errorf("a changed file: %+v (%v)", seen, err)
	}
	b.file(".regie/regie.yaml", "approvals: {rulez: []}\n")
	seen, err = remote.Workspaces.GetTrust(t.Context(), place)
	fatal(t, err)
	if _, err := remote.Workspaces.Trust(t.Context(), client.TrustRequest{WorkspaceID: place, SHA256: seen.SHA256}); regie.CodeOf(err) != regie.CodeBadRequest || len(seen.Problems) != 1 {
		t.Errorf("settings that do not fit: %v %v", err, seen.Problems)
	}
	read := []regie.TokenScope{regie.ScopeRead, regie.ScopeChat, regie.ScopeApprove}
	for name, as := range map[regie.Code]control.TokenRequest{
		regie.CodeNotFound:     {Name: "elsewhere", Scopes: regie.TokenScopes(), Workspaces: []regie.ID{other}},
		regie.CodeMissingScope: {Name: "reads", Scopes: read},
	} {
		refused := h.remote(h.add(as).Secret).Workspaces
		_, shown := refused.GetTrust(t.Context(), place)
		_, trusted := refused.Trust(t.Context(), client.TrustRequest{WorkspaceID: place, SHA256: seen.SHA256})
		for _, err := range []error{shown, trusted, refused.Distrust(t.Context(), place)} {
			if regie.CodeOf(err) != name {
				t.Errorf("%s: %v, want %s", as.Name, err, name)
			}
		}
	}
	restricted := h.remote(h.add(control.TokenRequest{Name: "here", Scopes: regie.TokenScopes(), Workspaces: []regie.ID{place}}).Secret).Workspaces
	if _, err := restricted.Trust(t.Context(), client.TrustRequest{WorkspaceID: place, SHA256: seen.SHA256}); regie.CodeOf(err) != regie.CodeForbidden {
		t.Errorf("a restricted token trusts: %v", err)
	}
	fatal(t, restricted.Distrust(t.Context(), place))
	if err := restricted.Distrust(t.Context(), place); regie.CodeOf(err) != regie.CodeNotFound || stateOf(t, remote, place) != "untrusted" {
		t.Errorf("withdrawn twice: %v", err)
	}
}

// TestWorkspaceTrust_Inside refuses a decision that the files of the workspace could forge.
func TestWorkspaceTrust_Inside(t *testing.T) {
	t.Parallel()
	b := newHarness(t, newModel(t))
	b.distrusted()
	b.settings.DataDir = filepath.Join(b.root, "data")
	h := b.serve("127.0.0.1:0")
	place, remote := h.placeAt(b.root).ID, h.remote(h.token)
	seen, err := remote.Workspaces.GetTrust(t.Context(), place)
	fatal(t, err)
	_, err = remote.Workspaces.Trust(t.Context(), client.TrustRequest{WorkspaceID: place, SHA256: seen.SHA256})
	if regie.CodeOf(err) != regie.CodeConflict || stateOf(t, remote, place) != "untrusted" {
		t.Errorf("%v", err)
	}
}
