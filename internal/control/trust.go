package control

import (
	"context"
	"time"

	"github.com/regie-run/regie"
	"github.com/regie-run/regie/internal/access"
	"github.com/regie-run/regie/internal/config"
	"github.com/regie-run/regie/internal/dispatch"
	"github.com/regie-run/regie/internal/skill"
	"github.com/regie-run/regie/internal/trust"
)

// WorkspaceTrust is the content of a workspace for agents, and a person's decision about exactly
// that.
type WorkspaceTrust struct {
	Root string `json:"root"`
	// State is untrusted, trusted, changed (since it was trusted) or other_directory (than the one
	// that was trusted at this path).
	State     trust.State           `json:"state"`
	TrustedAt time.Time             `json:"trusted_at,omitzero"`
	TrustedBy string                `json:"trusted_by,omitempty"`
	Changes   []trust.ContentChange `json:"changes,omitempty"`
	// SHA256 is the hash over all paths and their contents.
	SHA256 regie.Hash          `json:"sha256"`
	Files  []trust.ContentFile `json:"files"`
	// Odd are the paths that are not read, with the code of why.
	Odd map[string]regie.Code `json:"not_read,omitempty"`
	// Keys are the settings of its file, with the use of each.
	Keys []config.ProjectKey `json:"settings,omitempty"`
	// Allowing is the number of its rules that would allow something, which none can.
	Allowing int           `json:"allowing_rules,omitempty"`
	Skills   []skill.Skill `json:"skills,omitempty"`
	// Commands are its slash commands.
	Commands []skill.Command `json:"commands,omitempty"`
	// Servers are the MCP servers of its .mcp.json.
	Servers []ProjectServer `json:"mcp_servers,omitempty"`
	// Problems are why parts of it do not count, in English.
	Problems []string `json:"problems,omitempty"`
	// Notices are oddities of its skills.
	Notices []skill.Notice `json:"-"`
	// Broken is why the file of settings does not fit, which keeps runs from starting; Unread is
	// why nothing of all this can be trusted; Damaged is why a stored decision does not count.
	Broken, Unread, Damaged error `json:"-"`
	// ServersBroken is why .mcp.json names no servers.
	ServersBroken error `json:"-"`
	// Instructions says that the workspace has an AGENTS.md, which each run sends, trusted or not.
	Instructions bool `json:"agents_md,omitempty"`
	// Apart says that a file of settings was named, so that the workspace's does not count.
	Apart bool `json:"settings_not_read,omitempty"`
	// Content is what was looked at.
	Content trust.Content `json:"-"`
}

// ProjectServer is an MCP server that a workspace names.
type ProjectServer struct {
	config.MCPFileServer
	// Starts is the command line with its arguments, or the URL.
	Starts string `json:"starts"`
	// Yours says that the user's settings have a server of this name, which replaces it.
	Yours bool `json:"yours,omitempty"`
	// Problem is why it cannot be used now, in English.
	Problem string `json:"problem,omitempty"`
	Why     error  `json:"-"`
}

// Trusted reports whether the current content of the workspace is trusted.
func (p *WorkspaceTrust) Trusted() bool { return p.State == trust.Trusted }

// Standing says whether the workspace is trusted.
func (p *WorkspaceTrust) Standing() regie.Sentence {
	since := p.TrustedAt.Local().Format("2006-01-02 15:04")
	switch p.State {
	case trust.Trusted:
		return regie.Say("trusted since %s", since)
	case trust.Outdated:
		return regie.Say("not trusted: it has changed since %s", since)
	case trust.Elsewhere:
		return regie.Say("not trusted: the directory here is not the one that was trusted")
	default:
		return regie.Say("not trusted")
	}
}

// Trustable reports whether there is content that a person can trust now.
func (p *WorkspaceTrust) Trustable() bool {
	return !p.Trusted() && len(p.Files) > 0 && p.Unread == nil && p.Broken == nil
}

// Errors are why parts of the content do not count.
func (p *WorkspaceTrust) Errors() (out []error) {
	for _, err := range []error{p.Damaged, p.Unread, p.Broken, p.ServersBroken} {
		if err != nil {
			out = append(out, err)
		}
	}
	return out
}

// Dormant returns how many skills, settings and servers count only once a person trusts them.
func (p *WorkspaceTrust) Dormant() (skills, settings, servers int) {
	if p.Trusted() {
		return 0, 0, 0
	}
	for i := range p.Servers {
		if s := &p.Servers[i]; !s.Yours && !s.Disabled {
			servers++
		}
	}
	for _, k := range p.Keys {
		if k.Use == config.UseTrusted && !p.Apart {
			settings++
		}
	}
	return len(p.Skills), settings, servers
}

// Refused returns the settings that no project's file may have.
func (p *WorkspaceTrust) Refused() (out []config.ProjectKey) {
	for _, k := range p.Keys {
		if k.Use == config.UseNever {
			out = append(out, k)
		}
	}
	return out
}

// GetTrust returns the content of a workspace for agents, and whether it is trusted. The texts of
// settings that never count are left out: they may hold keys.
func (w *Workspaces) GetTrust(ctx context.Context, id regie.ID) (WorkspaceTrust, error) {
	_, place, err := w.authorizeTrust(ctx, "show_trust", id)
	if err != nil {
		return WorkspaceTrust{}, err
	}
	return w.lookTrust(place.Root)
}

// Trust stores that a person trusts exactly the content that was shown. It returns CodeStalePreview
// where the content is another one by now, the content's own error where it cannot be trusted, and
// the codes of trust.Store.Trust. A restricted caller cannot trust, only withdraw trust.
func (w *Workspaces) Trust(ctx context.Context, in dispatch.TrustRequest) (WorkspaceTrust, error) {
	caller, place, err := w.authorizeTrust(ctx, "trust_workspace", in.WorkspaceID)
	if err == nil && caller.Restricted() { // servers of a trusted workspace run as this server's user
		err = access.ErrRestricted
	}
	if err == nil {
		err = w.Projects.Trust(place.Root, in.SHA256, w.author(caller, ""))
	}
	if err != nil {
		return WorkspaceTrust{}, err
	}
	return w.lookTrust(place.Root)
}

// Distrust withdraws the trust in a workspace. It returns CodeNotFound without a decision.
func (w *Workspaces) Distrust(ctx context.Context, id regie.ID) error {
	_, place, err := w.authorizeTrust(ctx, "distrust_workspace", id)
	if err == nil {
		err = w.Projects.Distrust(place.Root)
	}
	return err
}

func (w *Workspaces) authorizeTrust(ctx context.Context, operation string, id regie.ID) (
	*access.Caller, regie.Workspace, error,
) {
	caller, err := w.authorize(ctx, operation)
	if err == nil && !caller.Sees(id) {
		err = notFound(id)
	}
	if err != nil {
		return nil, regie.Workspace{}, err
	}
	place, err := w.findWorkspace(ctx, id)
	return caller, place, err
}

func (w *Workspaces) lookTrust(root string) (WorkspaceTrust, error) {
	seen, err := w.Projects.Look(root)
	for i := range seen.Keys {
		if k := &seen.Keys[i]; k.Use == config.UseNever {
			k.Text = ""
		}
	}
	return seen, err
}
