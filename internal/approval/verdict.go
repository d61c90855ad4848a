package approval

import (
	"cmp"
	"maps"
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

	// Parts are the simple commands that a call of a tool which Runs commands consists of; without
	// them a shell runs it, and what it does cannot be compared with rules. The call gets the
	// strictest verdict of its parts. Network says that it asks for the network.
	Parts         []regie.Command
	Runs, Network bool
	// Mode is the session's. Undoable says that the call only changes files, in a way that undo
	// restores; Confined that it runs a command in a sandbox without a network.
	// Sandboxed says that a sandbox works here, which the mode auto needs.
	Mode                          regie.Mode
	Undoable, Confined, Sandboxed bool
	// Unprotected is a path in the command that the sandbox does not protect: the mode auto asks
	// about it.
	Unprotected string

	Levels []Level // in any order, any number
	Policy Policy
	// Rules are the standing rules, which people made. Those that are expired, or of another
	// workspace or session, do not count. Files are the rules of files.
	Rules []regie.Rule
	Files []FileRule
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
	// ByMode says that the call, or a part of its command, is allowed by the session's mode alone.
	ByMode bool
}

// Decide gives the verdict on a call of any kind (spec 4.4, decision 19). A round that goes on, and
// a call that waited, are judged again: the policy is always the current one (decision 36).
func Decide(in Input) Judgement {
	if len(in.Parts) == 0 {
		return decideOne(in)
	}
	var strictest Judgement
	for i, part := range in.Parts {
		one := in
		if one.Arguments = maps.Clone(in.Arguments); one.Arguments != nil {
			one.Arguments[regie.FieldCommand] = part.String()
		}
		judged := decideOne(one)
		judged.ByMode = judged.ByMode || strictest.ByMode
		if i == 0 || judged.Verdict.Stricter(strictest.Verdict) {
			strictest = judged
		}
		strictest.ByMode = judged.ByMode
	}
	return strictest
}

// decideOne gives the verdict on a call of one command, or of none.
func decideOne(in Input) Judgement {
	in.Rules = slices.Concat(in.Rules, FileRules(in.Files, in.WorkspaceID, FileCall{
		Tool: in.Tool, Arguments: in.Arguments, Runs: in.Runs,
	}))
	grounds := slices.Concat(levels(&in), risk(&in), explicit(&in), objections(&in), allowing(&in))
	before := combine(grounds)
	grounds = append(grounds, byMode(&in, grounds)...)
	verdict := combine(grounds)
	if verdict == regie.VerdictAllow {
		sortGrounds(grounds, 1)
		return Judgement{Verdict: verdict, Grounds: grounds, ByMode: before != regie.VerdictAllow}
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

// allowing are the grounds of standing rules and of what the run was started with. Of a call that
// asks for the network only rules count that say so: what allows its tool, or the command without
// a network, does not allow it. Without such a rule a person decides.
func allowing(in *Input) []regie.Ground {
	if !in.Network {
		return slices.Concat(in.Policy.grounds(in.Tool), standing(in))
	}
	said := *in
	said.Rules = slices.DeleteFunc(slices.Clone(in.Rules), func(r regie.Rule) bool {
		return r.Verdict == regie.VerdictAllow && r.Scope.Kind != regie.ScopeArgv && r.Scope.Kind != regie.ScopeExact
	})
	grounds := standing(&said)
	if slices.ContainsFunc(grounds, func(g regie.Ground) bool { return g.Verdict == regie.VerdictAllow }) {
		return grounds
	}
	return append(grounds, regie.Ground{
		Source: regie.SourceTool, Verdict: regie.VerdictMustAsk,
		Sentence: regie.Say("it asks for the network, and no rule allows it with the network"),
	})
}

// byMode are the grounds of the session's mode. It lifts defaults as a rule does, never what must
// be asked or is forbidden; plan mode runs no action.
func byMode(in *Input, others []regie.Ground) []regie.Ground {
	ground := func(verdict regie.Verdict, said regie.Sentence) []regie.Ground {
		return []regie.Ground{{Source: regie.SourceMode, Verdict: verdict, Sentence: said}}
	}
	auto := in.Mode == regie.ModeAuto && in.Sandboxed
	switch {
	case in.Mode == regie.ModePlan && in.Kind != regie.KindQuery:
		return ground(regie.VerdictForbid, regie.Say("the session is in plan mode, which runs no actions"))
	case in.Undoable && (auto || in.Mode == regie.ModeAcceptEdits):
		return ground(regie.VerdictAllow, regie.Say("the mode %s allows changes of files that undo restores", string(in.Mode)))
	case auto && in.Confined && in.Unprotected == "":
		return ground(regie.VerdictAllow, regie.Say("the mode auto allows commands in the sandbox, without a network"))
	case in.Mode != regie.ModeAuto || combine(others) != regie.VerdictAsk:
		return nil
	case !in.Sandboxed:
		return ground(regie.VerdictAsk,
			regie.Say("the mode auto asks here, because no sandbox works: regie doctor says why"))
	case in.Unprotected != "":
		return ground(regie.VerdictAsk, regie.Say("the mode auto asks here: the command names %s", in.Unprotected))
	case in.Runs:
		return ground(regie.VerdictAsk,
			regie.Say("the mode auto asks here: the command is not confined, or can reach the network"))
	default:
		return nil
	}
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
	add(matchesAny(in.Policy.Ask, in.Tool), regie.SourceRun, regie.Say("the settings of this run require approval of %s", in.Tool))
	add(in.ModelAsks, regie.SourceModel, regie.Say("the model asks for a check"))
	add(in.Tainted && in.ReadPrivate && in.Egress, regie.SourceTaint,
		regie.Say("this session has read private data and content that others wrote, and the call can send data out"))
	add(in.UnresolvedUnknown, regie.SourceUnknown,
		regie.Say("the outcome of an earlier identical call is unknown: it may already have happened"))
	return out
}
