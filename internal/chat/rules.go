package chat

import (
	"context"
	"strconv"
	"strings"
	"time"

	"github.com/regie-run/regie"
	"github.com/regie-run/regie/internal/i18n"
	"github.com/regie-run/regie/internal/sanitize"
	"github.com/regie-run/regie/internal/store"
)

// Rules lists standing rules, each with its scope, its owner and its end (spec 4.4).
func (p *Page) Rules(list store.RuleList) {
	holds := ""
	for i := range list.Rules {
		if p.writeRule(&list.Rules[i]); list.Rules[i].State == regie.RuleActive {
			holds = Short(list.Rules[i].ID)
		}
	}
	switch {
	case holds != "":
		p.writeLine("")
		p.writeLine(p.Text.T("to revoke one: regie rules revoke %s", holds))
	case len(list.Rules) == 0:
		p.writeLine(p.Text.T("no standing rules in this workspace (--all: everywhere, --ended: ended ones too)"))
	}
	if list.AuditError != "" {
		p.writeLine("! " + sanitize.Line(list.AuditError))
	}
}

func (p *Page) writeRule(r *store.StandingRule) {
	tool, scope := sanitize.Line(r.Scope.Tool), sanitize.Line(p.Text.Sentence(r.Scope.Sentence))
	said := p.Text.T("asks about %s each time: %s", tool, scope)
	switch r.Verdict {
	case regie.VerdictAllow:
		said = p.Text.T("allows %s without asking: %s", tool, scope)
	case regie.VerdictForbid:
		said = p.Text.T("forbids %s: %s", tool, scope)
	}
	state := p.describeExpiry(r.ExpiresAt)
	if r.State == regie.RuleRevoked {
		state = p.Text.T("revoked %s ago by %s", p.timeSince(r.RevokedAt), sanitize.Line(r.RevokedBy))
	}
	where := p.Text.T("in every session of this workspace")
	switch {
	case !r.SessionID.IsZero():
		where = p.Text.T("only in the session %s \"%s\"", Short(r.SessionID), sanitize.Line(r.SessionName))
	case p.Everywhere:
		where = p.Text.T("in every session of the workspace %s", sanitize.Line(r.Workspace))
	}
	p.writeLine(p.Text.T("rule %s", Short(r.ID)) + "  " + said)
	p.writeNote(p.Text.T("%s, made %s ago by %s", state, p.timeSince(r.CreatedAt), sanitize.Line(r.Author)))
	p.writeNote(where)
	if !r.FromCall.IsZero() {
		p.writeNote(p.Text.T("the answer to \"%s\", call %s of run %s", sanitize.Line(p.Text.Sentence(r.Call)),
			Short(r.FromCall), r.RoundID))
	}
}

// FindRule returns the one rule that a person names, in any state: by its id, its last four or more
// characters or its first eight or more. "last" is the newest active rule in the workspace at root.
// Errors are those of Find.
func FindRule(ctx context.Context, control Control, root, name string) (store.StandingRule, error) {
	none := regie.Errorf(regie.CodeNotFound, "no rule has the id %s: see regie rules list --all --ended", name)
	if name == "last" {
		none = regie.Errorf(regie.CodeNotFound,
			"no standing rules in this workspace: see regie rules list --all --ended")
	} else {
		root = ""
	}
	return findOne(name, none, func(r *store.StandingRule) regie.ID { return r.ID },
		func(id regie.ID, part string) ([]store.StandingRule, error) {
			list, err := control.Rules.List(ctx, store.RuleFilter{Root: root, ID: id, Short: part})
			return list.Rules, err
		})
}

// Revoked says that a rule was taken back, as it was found before.
func Revoked(t *i18n.Printer, r *store.StandingRule) string {
	scope := sanitize.Line(t.Sentence(r.Scope.Sentence))
	if r.State == regie.RuleRevoked {
		return t.T("rule %s was revoked already by %s: %s", Short(r.ID), sanitize.Line(r.RevokedBy), scope)
	}
	return t.T("rule %s is revoked: %s", Short(r.ID), scope)
}

// Span parses a duration: 90m, 24h, 7d, 2w. It returns CodeBadRequest for other text, and for zero
// or less.
func Span(span string) (time.Duration, error) {
	for unit, of := range map[string]time.Duration{"d": 24 * time.Hour, "w": 7 * 24 * time.Hour} {
		if digits, ok := strings.CutSuffix(span, unit); ok {
			if n, err := strconv.Atoi(digits); err == nil && n > 0 && n < 10_000 {
				return time.Duration(n) * of, nil
			}
		}
	}
	if length, err := time.ParseDuration(span); err == nil && length > 0 {
		return length, nil
	}
	return 0, regie.Errorf(regie.CodeBadRequest, "%q is not a duration: write it like 90m, 24h, 7d or 2w", span)
}
