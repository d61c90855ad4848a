package demo

import (
	"fmt"
	"strings"
)

// next makes the next step of the request.
func (t *thread) next() reaction {
	switch t.request.verb {
	case wantsDigest:
		return t.digest()
	case wantsWrite:
		return t.write()
	case wantsList:
		return t.list()
	case wantsRead:
		return t.read()
	default:
		return reaction{text: t.words.help}
	}
}

func (t *thread) list() reaction {
	if done := t.did(toolList); len(done) > 0 {
		return reaction{text: t.shown(done, t.words.listed)}
	}
	paths := t.request.paths
	if len(paths) == 0 {
		paths = []string{"."}
	}
	var wanted []arguments
	for _, p := range paths {
		wanted = append(wanted, arguments{Path: strings.TrimSuffix(p, "/"), Recursive: t.request.recursive, Pattern: t.request.pattern})
	}
	return t.ask(fmt.Sprintf(t.words.willList, strings.Join(paths, ", ")), toolList, wanted)
}

func (t *thread) read() reaction {
	done := t.did(toolRead)
	if len(done) >= len(t.request.paths) {
		return reaction{text: t.shown(done, t.words.content)}
	}
	var wanted []arguments
	for _, p := range t.request.paths[len(done):] {
		wanted = append(wanted, arguments{Path: p, StartLine: t.request.from, EndLine: t.request.upto})
	}
	return t.ask(fmt.Sprintf(t.words.willRead, min(batch, len(wanted))), toolRead, wanted)
}

// shown is an answer that shows results as they came, each under its heading.
func (t *thread) shown(done []outcome, heading string) string {
	var out []string
	for i := range done {
		if done[i].failed {
			out = append(out, t.problem(&done[i]))
			continue
		}
		out = append(out, fmt.Sprintf(heading, done[i].args.Path)+"\n\n"+strings.TrimRight(done[i].content, "\n"))
	}
	return strings.Join(out, "\n\n")
}

func (t *thread) write() reaction {
	done := t.did(toolWrite)
	switch {
	case len(done) == 0:
		return t.ask(fmt.Sprintf(t.words.willWrite, t.request.to), toolWrite,
			[]arguments{{Path: t.request.to, Content: t.request.content, Mode: t.request.mode}})
	case done[0].failed:
		return reaction{text: t.words.notWritten + " " + t.problem(&done[0])}
	default:
		return reaction{text: fmt.Sprintf(t.words.written, done[0].content)}
	}
}
