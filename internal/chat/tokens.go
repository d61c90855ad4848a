package chat

import (
	"context"
	"slices"
	"strings"

	"github.com/regie-run/regie"
	"github.com/regie-run/regie/internal/sanitize"
	"github.com/regie-run/regie/internal/store"
)

// Tokens lists tokens and browser logins, each with its scopes and its end (spec 11.2). Places are
// the workspaces that they may name.
func (p *Page) Tokens(tokens []regie.Token, places []regie.Workspace) {
	for i := range tokens {
		p.writeToken(&tokens[i], places)
	}
	if n := len(tokens); n > 0 {
		p.writeLine("")
		p.writeLine(p.Text.T("to revoke one: regie token revoke %s", Short(tokens[n-1].ID)))
		return
	}
	p.writeLine(p.Text.T("no tokens besides that of the data directory: regie token add creates one (--ended: ended ones too)"))
}

func (p *Page) writeToken(t *regie.Token, places []regie.Workspace) {
	what := p.Text.T("token %s", Short(t.ID))
	if t.Kind == regie.TokenBrowser {
		what = p.Text.T("browser %s", Short(t.ID))
	}
	p.writeLine(what + "  " + sanitize.Line(t.Name))
	state := p.describeExpiry(t.ExpiresAt)
	if t.StateAt(p.Now()) == regie.TokenRevoked {
		state = p.Text.T("revoked %s ago by %s", p.timeSince(t.RevokedAt), sanitize.Line(t.RevokedBy))
	}
	used := p.Text.T("never used")
	if !t.LastUsedAt.IsZero() {
		used = p.Text.T("used about %s ago", p.timeSince(t.LastUsedAt))
	}
	p.writeNote(p.Text.T("%s, made %s ago, %s", state, p.timeSince(t.CreatedAt), used))
	opens := p.Text.T("opens: %s", regie.ScopeWords(t.Scopes))
	if t.OnApproval != "" {
		opens += "; " + p.Text.T("approvals: %s", t.OnApproval)
	}
	p.writeNote(opens)
	var where []string
	for _, id := range t.Workspaces {
		at := slices.IndexFunc(places, func(w regie.Workspace) bool { return w.ID == id })
		if at < 0 {
			where = append(where, id.String())
		} else {
			where = append(where, sanitize.Line(places[at].Root))
		}
	}
	if len(where) > 0 {
		p.writeNote(p.Text.T("only in: %s", strings.Join(where, ", ")))
	}
}

// FindToken returns the one token that a person names, of those that open something: by its id, by
// the last four or more characters of it, by its first eight or more, or by its name. Errors are
// those of Find.
func FindToken(ctx context.Context, control Control, name string) (regie.Token, error) {
	all, err := control.Tokens.List(ctx, store.TokenFilter{})
	if err != nil {
		return regie.Token{}, err
	}
	part, _ := PartOfID(name)
	found := slices.DeleteFunc(all, func(t regie.Token) bool {
		return t.Name != name && (part == "" || !hasPart(t.ID, part))
	})
	return pickOne(found, func(t *regie.Token) regie.ID { return t.ID }, sanitize.Line(name),
		regie.Errorf(regie.CodeNotFound, "no token has the id or the name %s: see regie token list", sanitize.Line(name)))
}
