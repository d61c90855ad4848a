package files

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"unicode/utf8"

	"github.com/regie-run/regie"
	"github.com/regie-run/regie/internal/tool"
)

type readArgs struct {
	Path      string `json:"path" jsonschema:"the file, relative to the workspace"`
	StartLine int    `json:"start_line,omitempty" jsonschema:"first line to show, from 1"`
	EndLine   int    `json:"end_line,omitempty" jsonschema:"last line to show"`
}

func readFile() (tool.Tool, error) {
	return tool.New(query("files.read_file", "Read a text file of the workspace. Lines are numbered. Long files are shown in parts: ask for further lines with start_line."),
		tool.Handler[readArgs]{Run: read})
}

func read(ctx context.Context, inv *tool.Invocation, args readArgs) (tool.Result, error) {
	if args.StartLine < 0 || args.EndLine < 0 || args.EndLine > 0 && args.EndLine < args.StartLine {
		return tool.Result{}, regie.Errorf(regie.CodeBadArguments, "start_line and end_line must be line numbers from 1, in this order")
	}
	root, err := open(inv)
	if err != nil {
		return tool.Result{}, err
	}
	defer root.Close()
	f, info, err := root.OpenFile(args.Path)
	if err != nil {
		return tool.Result{}, err
	}
	defer f.Close()
	in := bufio.NewReaderSize(&bounded{ctx: ctx, in: f, left: maxScan}, 64<<10)
	head, err := in.Peek(8000)
	if err != nil && !errors.Is(err, io.EOF) {
		return tool.Result{}, regie.Errorf(regie.CodeToolError, "%s cannot be read: %v", args.Path, err)
	}
	if binary(head) {
		return tool.Result{Content: fmt.Sprintf("%s is not text: %d bytes, %s", args.Path, info.Size(), http.DetectContentType(head))}, nil
	}
	out, err := numbered(in, max(args.StartLine, 1), args.EndLine)
	if err != nil {
		return tool.Result{}, err
	}
	if out == "" {
		if info.Size() == 0 {
			return tool.Result{Content: args.Path + " is empty"}, nil
		}
		return tool.Result{Content: fmt.Sprintf("%s has no line %d", args.Path, args.StartLine)}, nil
	}
	return tool.Result{Content: out}, nil
}

// bounded stops reading at a bound and when the call is cancelled.
type bounded struct {
	ctx  context.Context
	in   io.Reader
	left int64
}

// Read implements io.Reader.
func (b *bounded) Read(p []byte) (int, error) {
	if err := b.ctx.Err(); err != nil {
		return 0, context.Cause(b.ctx)
	}
	if b.left <= 0 {
		return 0, regie.Errorf(regie.CodeFileTooLarge, "the lines lie beyond the first %d MiB of the file: search it instead", maxScan>>20)
	}
	n, err := b.in.Read(p[:min(int64(len(p)), b.left)])
	b.left -= int64(n)
	return n, err
}

// binary reports whether a file's first bytes are not text: a NUL, or much that is not UTF-8.
func binary(head []byte) bool {
	if bytes.IndexByte(head, 0) >= 0 {
		return true
	}
	bad, total := 0, 0
	for rest := head; len(rest) > utf8.UTFMax || len(rest) > 0 && total == 0; total++ {
		r, size := utf8.DecodeRune(rest)
		if r == utf8.RuneError && size == 1 {
			bad++
		}
		rest = rest[size:]
	}
	return bad*10 > total*3
}

// numbered shows lines with their numbers, up to the bound, and says which come next.
func numbered(in *bufio.Reader, first, last int) (string, error) {
	var out strings.Builder
	for number := 1; ; number++ {
		line, size, end, err := nextLine(in)
		if err != nil {
			return "", err
		}
		if size == 0 && end {
			return out.String(), nil
		}
		if last > 0 && number > last {
			return out.String(), nil
		}
		if number >= first {
			if out.Len() > maxShown {
				fmt.Fprintf(&out, "[more: go on with start_line %d]\n", number)
				return out.String(), nil
			}
			text := strings.ToValidUTF8(strings.TrimSuffix(string(line), "\r"), "\uFFFD")
			if size > len(line) {
				text += fmt.Sprintf("… [line has %d bytes]", size)
			}
			fmt.Fprintf(&out, "%6d\t%s\n", number, text)
		}
		if end {
			return out.String(), nil
		}
	}
}

// nextLine reads a line without its end, keeps at most maxLine bytes of it, and tells its real size.
func nextLine(in *bufio.Reader) (line []byte, size int, end bool, err error) {
	for {
		chunk, err := in.ReadSlice('\n')
		size += len(chunk)
		line = append(line, chunk[:min(len(chunk), maxLine+1-min(len(line), maxLine+1))]...)
		switch {
		case err == nil:
			size--
			line = bytes.TrimSuffix(line, []byte{'\n'})
			return line[:min(len(line), maxLine)], size, false, nil
		case errors.Is(err, bufio.ErrBufferFull):
		case errors.Is(err, io.EOF):
			return line[:min(len(line), maxLine)], size, true, nil
		default:
			var coded *regie.Error
			if errors.As(err, &coded) {
				return nil, 0, false, coded
			}
			return nil, 0, false, err
		}
	}
}
