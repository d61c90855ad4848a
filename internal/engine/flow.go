package engine

import (
	"path"
	"strings"

	"github.com/regie-run/regie"
	"github.com/regie-run/regie/internal/approval"
	"github.com/regie-run/regie/internal/tool"
)

// What a session has read stays with it (decision 34): the transition that stores a result also
// marks the session, and a fork begins with the marks of its source. Summaries and later rounds
// change nothing about them.

// markFlow notes on a call that has run what its result brings into the session.
func (x *toolRunner) markFlow(call *regie.Call) {
	target, inv := x.newInvocation(call)
	if target == nil {
		return
	}
	flow := tool.FlowOf(x.commit, target, inv)
	call.Tainted = flow.Outside || flow.Files && x.files.Untrusted
	call.ReadPrivate = x.readsPrivate(flow)
}

func (x *toolRunner) readsPrivate(flow tool.Flow) bool {
	return flow.Private || flow.Files && x.files.holdPrivate(flow.Path) ||
		flow.Secrets && x.cfg.HoldsSecret != nil && x.cfg.HoldsSecret(x.commit, x.workspace.Root)
}

// holdPrivate reports whether a file is private by the settings; an empty name may be any file. A
// pattern is a directory with /** behind it, a path, or a name that files anywhere have.
func (f *FileSettings) holdPrivate(name string) bool {
	for _, pattern := range f.Private {
		compared := name
		if !strings.Contains(pattern, "/") {
			compared = path.Base(name)
		}
		dir, below := strings.CutSuffix(pattern, "/**")
		ok, err := path.Match(pattern, compared)
		if ok || err != nil || name == "" || below && strings.HasPrefix(name+"/", dir+"/") {
			return true
		}
	}
	return false
}

// noteFlow brings the marks of settled calls into the session as this process knows it: the next
// calls are judged by them. Calls of the same reply were written before their author knew the
// results.
func (s *roundState) noteFlow(calls []regie.Call) {
	for i := range calls {
		s.session.Tainted = s.session.Tainted || calls[i].Tainted
		s.session.ReadPrivate = s.session.ReadPrivate || calls[i].ReadPrivate
	}
}

// addFlow tells a verdict what the session has read, and whether the call can send that out. The
// model may have read instructions of an untrusted workspace in the prompt itself. A command that
// reads a secret and has the network needs no second call to send it.
func (j *judge) addFlow(in *approval.Input, target tool.Tool, inv *tool.Invocation) {
	in.Tainted = j.session.Tainted || j.files.Untrusted && !j.round.Level2.IsZero()
	if in.Tainted {
		flow := tool.FlowOf(j.commit, target, inv)
		in.Egress = flow.Egress
		in.ReadPrivate = j.session.ReadPrivate || flow.Egress && j.runner.readsPrivate(flow)
	}
}
