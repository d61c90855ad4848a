package files

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/google/jsonschema-go/jsonschema"

	"github.com/regie-run/regie"
	"github.com/regie-run/regie/internal/tool"
	"github.com/regie-run/regie/internal/workspace"
)

type readArgs struct {
	Path      string `json:"path" jsonschema:"the file, relative to the workspace"`
	StartLine int    `json:"start_line,omitempty" jsonschema:"first line to show, from 1"`
	EndLine   int    `json:"end_line,omitempty" jsonschema:"last line to show"`
}

func (k *toolkit) readTool() (tool.Tool, error) {
	return tool.New(
		queryDefinition("files.read_file",
			"Read a text file of the workspace. Lines are numbered. A long file is shown in parts, and the end of a part says where to go on. What is not text is described. "+
				"A file that may hold a secret, such as .env, is only read when a person allows it."),
		tool.Handler[readArgs]{
			Run: k.readFile, MustAsk: k.mustAskRead, Preview: k.previewRead,
			Flow: func(_ context.Context, inv *tool.Invocation, args readArgs) (tool.Flow, error) {
				return flowOf(inv, args.Path)
			},
			Schema: func(s *jsonschema.Schema) {
				atLeast(s, "start_line", 1)
				atLeast(s, "end_line", 1)
			},
		})
}

func (k *toolkit) readFile(ctx context.Context, inv *tool.Invocation, args readArgs) (tool.Result, error) {
	if ctx.Err() != nil {
		return tool.Result{}, context.Cause(ctx)
	}
	if err := args.checkRange(); err != nil {
		return tool.Result{}, err
	}
	root, err := openWorkspace(inv)
	if err != nil {
		return tool.Result{}, err
	}
	defer root.Close()
	allowed := grantedPath(inv)
	if place, err := root.Place(args.Path); err == nil && allowed != "" && place.Path != allowed {
		return tool.Result{}, parameterError("path", regie.Errorf(regie.CodeStalePreview,
			"%s no longer leads to %s, which was approved", args.Path, allowed))
	}
	f, info, err := root.OpenGranted(args.Path, allowed)
	if err != nil {
		return tool.Result{}, parameterError("path", err)
	}
	defer f.Close()
	return k.showFile(args, f, info.Size())
}

func (a readArgs) checkRange() error {
	if a.EndLine > 0 && a.EndLine < a.StartLine {
		return parameterError("end_line", regie.Errorf(regie.CodeBadArguments,
			"end_line %d lies before start_line %d", a.EndLine, a.StartLine))
	}
	return nil
}

// previewRead names the file to read, without showing its content.
func (k *toolkit) previewRead(_ context.Context, inv *tool.Invocation, args readArgs) (regie.Preview, error) {
	if err := args.checkRange(); err != nil {
		return regie.Preview{}, err
	}
	root, err := openWorkspace(inv)
	if err != nil {
		return regie.Preview{}, err
	}
	defer root.Close()
	place, err := root.Place(args.Path)
	if err != nil {
		return regie.Preview{}, parameterError("path", err)
	}
	f, info, err := root.OpenGranted(args.Path, place.Path)
	if err != nil {
		return regie.Preview{}, parameterError("path", err)
	}
	_ = f.Close() // nothing was read
	p := regie.Preview{
		Sentence: regie.Say("read %s (%s bytes)", place.Path, strconv.FormatInt(info.Size(), 10)), Once: place.Secret,
		Preconditions: []regie.Precondition{{Kind: regie.PreconditionPlace, Name: place.Path}},
	}
	written, err := root.Clean(args.Path)
	if err == nil && written != place.Path {
		p.Warnings = append(p.Warnings, regie.Say("%s leads through a link to %s", written, place.Path))
	}
	if place.Secret {
		p.Sentence = regie.Say("read %s (%s bytes), which may hold a secret", place.Path,
			strconv.FormatInt(info.Size(), 10))
		p.Warnings = append(p.Warnings, regie.Say(
			"its content is sent to the model and kept in this conversation"))
	}
	return p, nil
}

// showFile returns what the model reads of a file of a size.
func (k *toolkit) showFile(args readArgs, file io.Reader, size int64) (tool.Result, error) {
	in := bufio.NewReaderSize(io.LimitReader(file, k.bounds.scanned), 64<<10)
	head, err := in.Peek(workspace.Sniffed)
	switch {
	case err != nil && !errors.Is(err, io.EOF):
		return tool.Result{}, readError(args.Path, err)
	case len(head) == 0:
		return tool.Result{Content: args.Path + " is empty"}, nil
	case workspace.NotText(head):
		return tool.Result{Content: fmt.Sprintf("%s is not text that can be shown: %d bytes, %s",
			args.Path, size, kindOf(head))}, nil
	case size > k.bounds.whole && args.StartLine == 0 && args.EndLine == 0:
		return tool.Result{Content: fmt.Sprintf(
			"%s is text of %d bytes, too much to be shown from its top: name start_line and end_line, or look for something in it with search_text", args.Path, size)}, nil
	}
	p := page{
		in: in, bounds: k.bounds, first: max(args.StartLine, 1), last: args.EndLine,
		count: size <= k.bounds.counted, cutOff: size > k.bounds.scanned,
	}
	if err := p.readLines(); err != nil {
		return tool.Result{}, readError(args.Path, err)
	}
	return p.renderResult(args.Path)
}

// readError describes a failure in the middle of a file.
func readError(name string, err error) error {
	if _, coded := errors.AsType[*regie.Error](err); coded || errors.Is(err, context.Canceled) ||
		errors.Is(err, context.DeadlineExceeded) {
		return err
	}
	return regie.Errorf(regie.CodeToolError, "%s cannot be read completely: %v", name, err)
}

// page is the part of a file that one result shows.
type page struct {
	in          *bufio.Reader
	bounds      bounds
	first, last int // last is 0 for the end
	count       bool

	out    strings.Builder
	total  int  // lines looked at
	next   int  // the line that did not fit, if any
	ended  bool // the whole file was looked at
	cutOff bool // the file is larger than what is looked through

	shown, repaired int // lines
}

// readLines goes through the lines up to the last one that is wanted, and to the end of the file
// where it is small enough to say how many there are.
func (p *page) readLines() error {
	for {
		line, size, err := nextLine(p.in, p.bounds.line)
		end := errors.Is(err, io.EOF)
		if err != nil && !end {
			return err
		}
		if size > 0 || !end {
			p.addLine(line, size)
		}
		if end {
			p.ended = true
			return nil
		}
		if (p.next > 0 || p.last > 0 && p.total >= p.last) && !p.count {
			return nil
		}
	}
}

// addLine adds a line if it is wanted and fits.
func (p *page) addLine(line []byte, size int) {
	p.total++
	if p.total < p.first || p.last > 0 && p.total > p.last || p.next > 0 {
		return
	}
	if p.total == 1 {
		line = bytes.TrimPrefix(line, []byte("\uFEFF")) // a byte order mark
	}
	whole := size <= p.bounds.line
	if whole {
		line = bytes.TrimSuffix(line, []byte("\r"))
	}
	text := visibleText(line, whole)
	if !whole {
		text += fmt.Sprintf("… [the line has %d bytes]", size)
	}
	const margin = len("123456\t\n")
	if p.shown > 0 && p.out.Len()+len(text)+margin > p.bounds.shown {
		p.next = p.total
		return
	}
	number := strconv.Itoa(p.total)
	p.out.WriteString("      "[:max(0, 6-len(number))])
	p.out.WriteString(number)
	p.out.WriteByte('\t')
	p.out.WriteString(text)
	p.out.WriteByte('\n')
	p.shown++
	if whole && !utf8.Valid(line) {
		p.repaired++
	}
}

// renderResult returns what the model reads: the lines, and what cannot be seen in them.
func (p *page) renderResult(name string) (tool.Result, error) {
	switch {
	case p.shown == 0 && p.ended && p.cutOff:
		return tool.Result{}, parameterError("start_line", regie.Errorf(regie.CodeFileTooLarge,
			"line %d of %s lies beyond the first %d bytes, which are looked through", p.first, name, p.bounds.scanned))
	case p.shown == 0:
		return tool.Result{}, parameterError("start_line", regie.Errorf(regie.CodeBadArguments,
			"%s has no line %d: it has %d lines", name, p.first, p.total))
	}
	if p.next > 0 {
		of := ""
		if p.ended {
			of = fmt.Sprintf(" of %d", p.total)
		}
		fmt.Fprintf(&p.out, "[lines %d to %d%s; go on with start_line %d]\n", p.first, p.next-1, of, p.next)
	} else if p.ended && p.cutOff {
		fmt.Fprintf(&p.out, "[only the first %d bytes of the file were looked through]\n", p.bounds.scanned)
	}
	if p.repaired > 0 {
		fmt.Fprintf(&p.out, "[%s with bytes that are not UTF-8, shown as \uFFFD]\n", formatLines(p.repaired))
	}
	return tool.Result{Content: p.out.String(), Rest: "ask for fewer lines with start_line and end_line"}, nil
}

// visibleText makes harmless text of a line's bytes: it replaces invalid bytes and shows control
// characters by their pictures. A cut line may end in the middle of a character.
func visibleText(line []byte, whole bool) string {
	if !whole {
		for cut := 1; cut < utf8.UTFMax && cut <= len(line); cut++ {
			if tail := line[len(line)-cut:]; utf8.RuneStart(tail[0]) {
				if !utf8.FullRune(tail) {
					line = line[:len(line)-cut]
				}
				break
			}
		}
	}
	if !slices.ContainsFunc(line, func(b byte) bool { return b < 0x20 && b != '\t' || b >= 0x7f }) {
		return string(line) // as most lines are
	}
	return strings.Map(func(r rune) rune {
		switch {
		case r == '\t':
			return r
		case r < 0x20:
			return 0x2400 + r
		case r == 0x7f:
			return 0x2421
		case r > 0x7f && r < 0xa0:
			return utf8.RuneError
		default:
			return r
		}
	}, strings.ToValidUTF8(string(line), "\uFFFD"))
}

// nextLine reads a line without its line feed. It keeps the first bytes of it and tells its real
// size; io.EOF comes with the last one.
func nextLine(in *bufio.Reader, most int) (line []byte, size int, err error) {
	for {
		chunk, err := in.ReadSlice('\n')
		size += len(chunk)
		line = append(line, chunk[:min(len(chunk), most+1-len(line))]...)
		switch {
		case err == nil:
			size--
			return bytes.TrimSuffix(line, []byte("\n"))[:min(size, most)], size, nil
		case errors.Is(err, bufio.ErrBufferFull):
		default:
			return line[:min(len(line), most)], size, err
		}
	}
}
