package session

import (
	"context"
	"fmt"
	"unicode/utf8"

	"github.com/google/jsonschema-go/jsonschema"

	"github.com/regie-run/regie"
	"github.com/regie-run/regie/internal/sanitize"
	"github.com/regie-run/regie/internal/tool"
)

// The bounds of one part of a result, in bytes.
const (
	defaultPart = 16 << 10
	minPart     = 100
	maxPart     = 30 << 10 // with its last line it is never shortened itself
)

type readArgs struct {
	CallID string `json:"call_id" jsonschema:"the id that stands at the end of the shortened result"`
	Offset int    `json:"offset,omitempty" jsonschema:"the byte to begin with, from 0"`
	Limit  int    `json:"limit,omitempty" jsonschema:"how many bytes to show, 16384 if left out"`
}

// reader is read_result: read returns the whole of a call's result.
type reader struct {
	read func(ctx context.Context, session, call regie.ID) (string, error)
}

func readTool(read func(ctx context.Context, session, call regie.ID) (string, error)) (tool.Tool, error) {
	d := definition(ReadResult,
		"Read on in a result of this conversation that was shortened. The end of a part says where to go on.", "")
	d.ParallelSafe, d.Local, d.Cacheable = true, true, true // what is stored never changes
	d.MaxResult = maxPart + 1<<10
	return tool.New(d, tool.Handler[readArgs]{Run: reader{read}.run, Schema: func(s *jsonschema.Schema) {
		var first, least, most float64 = 0, minPart, maxPart
		s.Properties["offset"].Minimum = &first
		s.Properties["limit"].Minimum, s.Properties["limit"].Maximum = &least, &most
	}})
}

func (r reader) run(ctx context.Context, inv *tool.Invocation, args readArgs) (tool.Result, error) {
	call, err := regie.ParseID(args.CallID)
	if err != nil {
		return tool.Result{}, bad("call_id", "take the id from the end of the shortened result",
			regie.Errorf(regie.CodeBadArguments, "%q is not the id of a call", sanitize.Clip(args.CallID, 60)))
	}
	whole, err := r.read(ctx, inv.SessionID, call)
	if err != nil {
		return tool.Result{}, bad("call_id", "", err)
	}
	if args.Limit == 0 {
		args.Limit = defaultPart
	}
	return part(whole, max(args.Offset, 0), min(max(args.Limit, minPart), maxPart))
}

// part returns a piece of a result between two characters, with a line that names its place.
func part(whole string, offset, limit int) (tool.Result, error) {
	total := len(whole)
	switch {
	case total == 0:
		return tool.Result{Content: "[the result is empty]"}, nil
	case offset >= total:
		return tool.Result{}, bad("offset", "", regie.Errorf(regie.CodeBadArguments,
			"the result has %d bytes: there is nothing at offset %d", total, offset))
	}
	start := boundary(whole, offset)
	end := boundary(whole, min(start+limit, total))
	next := "; this is its end"
	if end < total {
		next = fmt.Sprintf("; go on with offset %d", end)
	}
	return tool.Result{Content: fmt.Sprintf("%s\n[bytes %d to %d of %d%s]", whole[start:end], start, end, total, next)},
		nil
}

// boundary returns the nearest place at or before at where a character begins. In bytes that are
// not UTF-8 every place will do.
func boundary(s string, at int) int {
	for back := 0; back < utf8.UTFMax && at-back > 0; back++ {
		if at-back >= len(s) || utf8.RuneStart(s[at-back]) {
			return at - back
		}
	}
	return at
}
