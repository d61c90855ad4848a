package approval

import (
	"path"
	"slices"
	"strings"
	"time"

	"github.com/regie-run/regie"
)

// standing are the grounds of the standing rules.
func standing(in *Input) []regie.Ground {
	var out []regie.Ground
	for i := range in.Rules {
		rule := &in.Rules[i]
		verdict, compared := judge(in, rule)
		if verdict == "" {
			continue
		}
		out = append(out, regie.Ground{
			Source: regie.SourceRule, Verdict: verdict,
			Sentence: sayRule(rule, verdict, compared),
		})
	}
	return out
}

func sayRule(rule *regie.Rule, verdict regie.Verdict, compared bool) regie.Sentence {
	id, author := rule.ID.String(), rule.Author
	if rule.ID.IsZero() { // it stands in a file
		return sayFileRule(author, verdict, compared)
	}
	switch {
	case !compared:
		return regie.Say("the rule %s of %q cannot be compared with these arguments, so a person decides", id, author)
	case verdict == regie.VerdictAllow:
		return regie.Say("the rule %s of %q allows this", id, author)
	case verdict == regie.VerdictForbid:
		return regie.Say("the rule %s of %q forbids this", id, author)
	default:
		return regie.Say("the rule %s of %q requires an approval each time", id, author)
	}
}

func sayFileRule(where string, verdict regie.Verdict, compared bool) regie.Sentence {
	switch {
	case !compared:
		return regie.Say("%s cannot be compared with these arguments, so a person decides", where)
	case verdict == regie.VerdictAllow:
		return regie.Say("%s allows this", where)
	case verdict == regie.VerdictForbid:
		return regie.Say("%s forbids this", where)
	default:
		return regie.Say("%s requires an approval each time", where)
	}
}

// judge returns a rule's verdict on the call, "" without one. A verdict other than ALLOW and FORBID
// counts as MUST_ASK: its author wanted something, and a question does no harm. So does a rule with
// a scope that cannot be compared with the call, unless it allows: else a path written with ".."
// would escape every rule that forbids.
func judge(in *Input, rule *regie.Rule) (verdict regie.Verdict, compared bool) {
	if !concerns(in, rule) {
		return "", true
	}
	switch {
	case rule.Scope.Matches(in.Tool, in.Signature, in.Arguments):
		if rule.Verdict == regie.VerdictAllow || rule.Verdict == regie.VerdictForbid {
			return rule.Verdict, true
		}
		return regie.VerdictMustAsk, true
	case rule.Verdict != regie.VerdictAllow && rule.Scope.Tool == in.Tool && !decidable(rule.Scope, in):
		return regie.VerdictMustAsk, false
	default:
		return "", true
	}
}

// concerns reports whether a rule is one of this workspace and session, and of this time, and was
// not revoked. A rule without a workspace, which no person's answer makes, can narrow everywhere
// and allow nowhere.
func concerns(in *Input, rule *regie.Rule) bool {
	allows := rule.Verdict == regie.VerdictAllow
	switch {
	case !rule.RevokedAt.IsZero():
		return false
	case rule.WorkspaceID.IsZero() && allows:
		return false
	case !rule.WorkspaceID.IsZero() && rule.WorkspaceID != in.WorkspaceID:
		return false
	case !rule.SessionID.IsZero() && rule.SessionID != in.SessionID:
		return false
	default:
		return !expired(rule.ExpiresAt, in.Now, allows)
	}
}

// expired reports whether a rule has ended, its last instant included. Without a time only rules
// that allow count as ended.
func expired(at, now time.Time, allows bool) bool {
	switch {
	case at.IsZero():
		return false
	case now.IsZero():
		return allows
	default:
		return !now.Before(at)
	}
}

// decidable reports whether Scope.Matches could tell that the call lies outside the scope, and did
// not merely find nothing to compare.
func decidable(scope regie.Scope, in *Input) bool {
	value, isText := in.Arguments[scope.Field].(string)
	switch scope.Kind {
	case regie.ScopeAny:
		return false // it matches every call of its tool, or is malformed
	case regie.ScopeExact:
		if scope.Field != "" { // "./a" is no other file than "a"
			return isText && path.Clean(value) != path.Clean(scope.Value)
		}
		var wanted regie.Hash
		err := wanted.UnmarshalText([]byte(scope.Value))
		return err == nil && !wanted.IsZero() && wanted.String() == scope.Value && !in.Signature.IsZero()
	case regie.ScopeArgv: // a command that is not literal may be, or hold, any other
		return isText && scope.Field == regie.FieldCommand
	case regie.ScopeURL: // an address that can be read in several ways may be any
		_, ok := regie.PlainURL(value)
		return ok
	case regie.ScopeUnder:
		return plainPath(value) && plainPath(scope.Value) && path.Clean(scope.Value) == scope.Value &&
			scope.Value != "."
	default:
		return false
	}
}

// plainPath reports whether a path means what its letters say: it is relative and holds no way up.
// It is as strict as Scope.Matches.
func plainPath(name string) bool {
	return name != "" && name[0] != '/' && name[0] != '~' && !strings.ContainsAny(name, "\\\x00") &&
		!slices.Contains(strings.Split(name, "/"), "..")
}
