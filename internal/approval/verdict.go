package approval

import (
	"cmp"
	"slices"
	"time"

	"github.com/regie-run/regie"
)

// What a level asks about by default (spec 13.1, decision 49).
const (
	RequireNone   = "none"   // nothing, the same as the empty word
	RequireWrites = "writes" // actions
	RequireAll    = "all"    // queries too
)

// Level is what one level of the hierarchy of spec 4.4 wants: app, workspace, zone, agent,
// automation, session. Levels can only add questions.
type Level struct {
	Source regie.Source
	// RequireValidation is an explicit wish, which no standing rule lifts (decision 49).
	RequireValidation bool
	// Require is the level's default, which an allow rule lifts: "", RequireNone, RequireWrites or
	// RequireAll. Any other word counts as RequireAll, because its author wanted approvals.
	Require string
}

// Input is all that a verdict depends on.
type Input struct {
	// Tool is the canonical name. Kind, Risk and Role are those of its definition; an unknown kind
	// counts as an action, an unknown risk as external, an unknown role as none.
	Tool string
	Kind regie.CallKind
	Risk regie.Risk
	Role regie.ToolRole
	// Signature and Arguments are those that would run: an edited call is judged anew (decision
	// 20).
	Signature regie.Hash
	Arguments map[string]any

	Levels []Level // in any order, any number
	Policy Policy
	// Rules are the standing rules, which people made. Those that are expired, or of another
	// workspace or session, do not count.
	Rules []regie.Rule
	// WorkspaceID and SessionID say which rules are this call's.
	WorkspaceID, SessionID regie.ID
	// Now is compared with the rules' expiry. Without it, an allow rule that expires has expired.
	Now time.Time

	ToolAsks          []regie.Sentence // why the tool wants this very call approved, whatever the rules allow
	ModelAsks         bool             // the model's validation_request (decision 40)
	Tainted           bool             // the session has read what nobody vouches for (decision 34)
	ReadPrivate       bool             // and private data
	Egress            bool             // the call can send data out
	UnresolvedUnknown bool             // an earlier call of this signature has no known outcome (decision 5)
	// Objections are what the person's hooks have against the call: of them only those that ask or
	// forbid count.
	Objections []regie.Ground
}

// Judgement is the verdict on a call with what led to it.
type Judgement struct {
	Verdict regie.Verdict
	// Grounds are every source that forbids or asks, the strictest first. Where the verdict is
	// ALLOW they are the rules and patterns that allow the call and, behind them, the defaults that
	// they lift; none where nothing asked.
	Grounds []regie.Ground
}

// Decide gives the verdict on a call of any kind (spec 4.4, decision 19). A round that goes on, and
// a call that waited, are judged again: the policy is always the current one (decision 36).
func Decide(in Input) Judgement {
	grounds := slices.Concat(levels(&in), risk(&in), explicit(&in), objections(&in),
		in.Policy.grounds(in.Tool), standing(&in))
	verdict := combine(grounds)
	if verdict == regie.VerdictAllow {
		sortGrounds(grounds, 1)
		return Judgement{Verdict: verdict, Grounds: grounds}
	}
	grounds = slices.DeleteFunc(grounds, func(g regie.Ground) bool { return g.Verdict == regie.VerdictAllow })
	sortGrounds(grounds, -1)
	return Judgement{Verdict: verdict, Grounds: grounds}
}

// combine is decision 19. It is not the strictest of the grounds: an allow rule lifts a default.
func combine(grounds []regie.Ground) regie.Verdict {
	for _, verdict := range []regie.Verdict{
		regie.VerdictForbid, regie.VerdictMustAsk,
		regie.VerdictAllow, regie.VerdictAsk,
	} {
		if slices.ContainsFunc(grounds, func(g regie.Ground) bool { return g.Verdict == verdict }) {
			return verdict
		}
	}
	return regie.VerdictAllow
}

// sortGrounds orders by strictness: the mildest first with direction 1, the strictest first with
// -1.
func sortGrounds(grounds []regie.Ground, direction int) {
	slices.SortStableFunc(grounds, func(a, b regie.Ground) int {
		switch {
		case a.Verdict.Stricter(b.Verdict):
			return direction
		case b.Verdict.Stricter(a.Verdict):
			return -direction
		default:
			return 0
		}
	})
}

// levels are the hierarchy: a logical OR, each level with the strictest that it wants.
func levels(in *Input) []regie.Ground {
	var out []regie.Ground
	for _, level := range in.Levels {
		if level.RequireValidation {
			out = append(out, regie.Ground{
				Source: level.Source, Verdict: regie.VerdictMustAsk,
				Sentence: wish(level.Source),
			})
			continue
		}
		if sentence, asks := byDefault(in, level.Require); asks {
			out = append(out, regie.Ground{Source: level.Source, Verdict: regie.VerdictAsk, Sentence: sentence})
		}
	}
	return out
}

// byDefault reports whether a level's default asks about the call. The loop's own tools affect only
// the round: asking about a question would help no person.
func byDefault(in *Input, require string) (regie.Sentence, bool) {
	if steers(in.Role) {
		return regie.Sentence{}, false
	}
	switch require {
	case "", RequireNone:
		return regie.Sentence{}, false
	case RequireWrites:
		return regie.Say("actions are asked about unless a rule allows them"), in.Kind != regie.KindQuery
	case RequireAll:
		return regie.Say("every call is asked about unless a rule allows it"), true
	default:
		return regie.Say("the approval setting %q is unknown, so every call is asked about", require), true
	}
}

func steers(role regie.ToolRole) bool {
	return role == regie.RoleQuestion || role == regie.RoleComplete || role == regie.RolePlan
}

// wish says which level wants every call approved.
func wish(source regie.Source) regie.Sentence {
	switch source {
	case regie.SourceApp:
		return regie.Say("the settings of the app require approval of every call")
	case regie.SourceWorkspace:
		return regie.Say("the settings of this workspace require approval of every call")
	case regie.SourceAgent:
		return regie.Say("the settings of this agent require approval of every call")
	case regie.SourceSession:
		return regie.Say("the settings of this session require approval of every call")
	case regie.SourceTool:
		return regie.Say("the settings of this tool require approval of every call")
	default:
		return regie.Say("the settings of %q require approval of every call", string(source))
	}
}

// risk is the tool's own default (spec 4.2): internal means what the levels want, external means
// always.
func risk(in *Input) []regie.Ground {
	if cmp.Or(in.Risk, regie.RiskInternal) == regie.RiskInternal {
		return nil
	}
	return []regie.Ground{{
		Source: regie.SourceTool, Verdict: regie.VerdictAsk,
		Sentence: regie.Say("calls of %q reach outside and are asked about unless a rule allows them", in.Tool),
	}}
}

// objections are those that make the verdict stricter: nothing that a hook says lifts anything.
func objections(in *Input) (out []regie.Ground) {
	for _, g := range in.Objections {
		if g.Verdict == regie.VerdictMustAsk || g.Verdict == regie.VerdictForbid {
			out = append(out, g)
		}
	}
	return out
}

// explicit are the reasons that lie in the call and its session.
func explicit(in *Input) []regie.Ground {
	var out []regie.Ground
	add := func(applies bool, source regie.Source, sentence regie.Sentence) {
		if applies {
			out = append(out, regie.Ground{Source: source, Verdict: regie.VerdictMustAsk, Sentence: sentence})
		}
	}
	for _, why := range in.ToolAsks {
		add(true, regie.SourceTool, why)
	}
	add(in.ModelAsks, regie.SourceModel, regie.Say("the model asks for a check"))
	add(in.Tainted && in.ReadPrivate && in.Egress, regie.SourceTaint,
		regie.Say("this session has read private data and content that others wrote, and the call can send data out"))
	add(in.UnresolvedUnknown, regie.SourceUnknown,
		regie.Say("the outcome of an earlier identical call is unknown: it may already have happened"))
	return out
}
