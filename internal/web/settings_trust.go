package web

import (
	"github.com/regie-run/regie"
	"github.com/regie-run/regie/internal/dispatch"
)

// placeRow is a workspace with the trust in its content for agents.
type placeRow struct {
	regie.Workspace
	Standing, Icon string
	Seen           bool // the content can be looked at
}

// loadWorkspaces reads the content for agents of the workspace that the address names. Without one
// it lists all workspaces.
func (p *settingsPage) loadWorkspaces(v *visit) error {
	ctx, workspaces := v.r.Context(), v.site.Service.Workspaces
	if v.r.PathValue("id") != "" {
		id, err := v.id()
		if err != nil {
			return err
		}
		seen, err := workspaces.GetTrust(ctx, id)
		p.Trust = &seen
		return err
	}
	places, err := workspaces.List(ctx)
	for i := range places {
		row := placeRow{Workspace: places[i]}
		seen, err := workspaces.GetTrust(ctx, row.ID)
		row.Seen = err == nil
		switch {
		case regie.CodeOf(err) == regie.CodeMissingScope: // the list needs the scope read alone
		case err != nil:
			row.Standing, row.Icon = v.text.Error(err), "cross"
		case seen.TrustedAt.IsZero() && len(seen.Files)+len(seen.Errors()) == 0:
			row.Standing = v.text.T("nothing for agents")
		default:
			row.Standing, row.Icon = v.text.Sentence(seen.Standing()), "warn"
			if seen.Trusted() {
				row.Icon = "tick"
			}
		}
		p.Places = append(p.Places, row)
	}
	return err
}

// changeTrust trusts the content that the form has shown, or withdraws the trust.
func changeTrust(v *visit) error {
	id, err := v.id()
	if err != nil {
		return err
	}
	if v.field("do") == "distrust" {
		return v.site.Service.Workspaces.Distrust(v.r.Context(), id)
	}
	in := dispatch.TrustRequest{WorkspaceID: id}
	if err := in.SHA256.UnmarshalText([]byte(v.field("sha256"))); err != nil {
		return regie.Errorf(regie.CodeBadRequest, "the form does not say what was shown: open its page again")
	}
	_, err = v.site.Service.Workspaces.Trust(v.r.Context(), in)
	return err
}
