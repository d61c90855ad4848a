package files

import (
	"context"
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/regie-run/regie"
	"github.com/regie-run/regie/internal/tool"
)

func TestRead(t *testing.T) {
	d := newDesk(t, func(b *bounds) { b.line = 20; b.shown = 200 })
	for name, content := range map[string]string{
		"plain.md": "one\ntwo\nthree\n", "open.md": "one\ntwo", "empty": "", "blank": "\n\n", "crlf.txt": "one\r\ntwo\r\n", "mixed.txt": "one\r\ntwo\n",
		"mark.txt": "\ufeffone\n", "latin.txt": "caf\xe9\ncaf\xe9 au lait and more\n", "wide.txt": strings.Repeat("é", 15) + "\nnext\n",
		"acts.txt":  "a\x1b[2Jb\tc\x07\rd\x7f\u0085\n",
		"exact.txt": strings.Repeat("x", 20) + "\n" + strings.Repeat("y", 20), "image.png": "\x89PNG\r\n\x1a\n\x00\x00\x00\rIHDR",
		"noise":        strings.Repeat("\xfe\xff\x80\x81", 50),
		"late-nul.txt": strings.Repeat("x\n", 5000) + "\x00\n",
	} {
		d.file(name, content)
	}
	long := strings.Repeat("line\n", 100)
	d.file("long.txt", long)
	for _, row := range []struct {
		args object
		want string
	}{
		{object{"path": "plain.md"}, "     1\tone\n     2\ttwo\n     3\tthree\n"},
		{object{"path": "plain.md", "start_line": 2}, "     2\ttwo\n     3\tthree\n"},
		{object{"path": "plain.md", "start_line": 2, "end_line": 2}, "     2\ttwo\n"},
		{object{"path": "plain.md", "end_line": 1}, "     1\tone\n"},
		{object{"path": "plain.md", "end_line": 99}, "     1\tone\n     2\ttwo\n     3\tthree\n"},
		{object{"path": "open.md"}, "     1\tone\n     2\ttwo\n"},
		{object{"path": "empty"}, "empty is empty"},
		{object{"path": "blank"}, "     1\t\n     2\t\n"},
		{object{"path": "crlf.txt"}, "     1\tone\n     2\ttwo\n"},
		{object{"path": "mixed.txt"}, "     1\tone\n     2\ttwo\n"},
		{object{"path": "mark.txt"}, "     1\tone\n"},
		{object{"path": "latin.txt"}, "     1\tcaf\uFFFD\n     2\tcaf\uFFFD au lait and mor… [the line has 21 bytes]\n[1 line with bytes that are not UTF-8, shown as \uFFFD]\n"},
		{object{"path": "wide.txt"}, "     1\t" + strings.Repeat("é", 10) + "… [the line has 30 bytes]\n     2\tnext\n"},
		{object{"path": "acts.txt"}, "     1\ta␛[2Jb\tc␇␍d␡\uFFFD\n"},
		{object{"path": "exact.txt"}, "     1\t" + strings.Repeat("x", 20) + "\n     2\t" + strings.Repeat("y", 20) + "\n"},
		{object{"path": "image.png"}, "image.png is not text that can be shown: 16 bytes, image/png"},
		{object{"path": "noise"}, "noise is not text that can be shown: 200 bytes, bytes of no known kind"},
		{object{"path": "late-nul.txt", "start_line": 5001}, "  5001\t␀\n"},
		{object{"path": "long.txt", "start_line": 99}, "    99\tline\n   100\tline\n"},
		{object{"path": "long.txt"}, strings.Join(numberedLines(1, 16), "") + "[lines 1 to 16 of 100; go on with start_line 17]\n"},
	} {
		if out := d.do("read_file", row.args); out.State != regie.CallSucceeded || out.Result != row.want {
			t.Errorf("%v: %q, %+v", row.args, out.Result, out.Error)
		}
	}
}

func numberedLines(first, last int) []string {
	var out []string
	for i := first; i <= last; i++ {
		out = append(out, fmt.Sprintf("%6d\tline\n", i))
	}
	return out
}

func TestReadRefuses(t *testing.T) {
	d := newDesk(t)
	d.file("a.md", "one\n")
	d.file(".env", "CANARY")
	d.file("dir/x", "")
	d.fifo("fifo")
	for _, row := range []struct {
		args  object
		code  regie.Code
		state regie.CallState
		param string
	}{
		{object{"path": "none"}, regie.CodeFileNotFound, regie.CallFailed, "path"},
		{object{"path": "dir"}, regie.CodeNotAFile, regie.CallFailed, "path"},
		{object{"path": "a.md/"}, regie.CodeNotAFile, regie.CallFailed, "path"},
		{object{"path": "fifo"}, regie.CodeSpecialFile, regie.CallFailed, "path"},
		{object{"path": ".env"}, regie.CodePathProtected, regie.CallFailed, "path"},
		{object{"path": "a.md", "start_line": 2}, regie.CodeBadArguments, regie.CallFailed, "start_line"},
		{object{"path": "a.md", "start_line": 3, "end_line": 2}, regie.CodeBadArguments, regie.CallFailed, "end_line"},
		{object{"path": "a.md", "start_line": 0}, regie.CodeBadArguments, regie.CallNotRun, "start_line"},
		{object{"path": "a.md", "start_line": -1}, regie.CodeBadArguments, regie.CallNotRun, "start_line"},
		{object{}, regie.CodeBadArguments, regie.CallNotRun, "path"},
	} {
		if out := d.do("read_file", row.args); out.State != row.state || codeOf(out) != row.code || out.Error.Param != row.param || strings.Contains(out.Error.Message, "CANARY") {
			t.Errorf("%v: %s %+v", row.args, out.State, out.Error)
		}
	}
}

// A huge file is described; lines of it are shown within the bounds, and never is it read whole.
func TestReadHuge(t *testing.T) {
	d := newDesk(t)
	const size = 10 << 30
	sparse := func(name, head string) {
		d.file(name, head)
		d.must(os.Truncate(d.abs(name), size))
	}
	sparse("nul.bin", "")
	sparse("text.log", strings.Repeat("a line of the log\n", 1000))
	for _, row := range []struct {
		args object
		code regie.Code
		want string
	}{
		{object{"path": "nul.bin"}, "", "nul.bin is not text that can be shown: 10737418240 bytes, application/octet-stream"},
		{object{"path": "text.log"}, "", "text.log is text of 10737418240 bytes, too much to be shown from its top: name start_line and end_line, or look for something in it with search_text"},
		{object{"path": "text.log", "start_line": 999, "end_line": 1000}, "", "   999\ta line of the log\n  1000\ta line of the log\n"},
		{object{"path": "text.log", "start_line": 5000}, regie.CodeFileTooLarge, ""},
	} {
		out := d.do("read_file", row.args)
		if codeOf(out) != row.code || out.Result != row.want {
			t.Errorf("%v: %.200q %+v", row.args, out.Result, out.Error)
		}
	}
	out := d.do("read_file", object{"path": "text.log", "start_line": 1000})
	if !strings.Contains(out.Result, "only the first 268435456 bytes") || len(out.Result) > 32<<10 {
		t.Errorf("a line without end: %d bytes, %.200q %+v", len(out.Result), out.Result, out.Error)
	}
	if out := d.do("write_file", object{"path": "text.log", "content": "x", "mode": "append"}); codeOf(out) != regie.CodeFileTooLarge {
		t.Errorf("appending: %+v", out)
	}
}

func TestReadFitsTheResult(t *testing.T) {
	d := newDesk(t)
	d.file("wide", strings.Repeat(strings.Repeat("\x01", 5000)+"\n", 100))
	d.file("narrow", strings.Repeat("\n", 100_000))
	for _, name := range []string{"wide", "narrow"} {
		out := d.do("read_file", object{"path": name})
		if out.State != regie.CallSucceeded || out.Whole != "" || !strings.Contains(out.Result, "go on with start_line") {
			t.Errorf("%s: %d bytes, %d in all, ends %q", name, len(out.Result), len(out.Whole), out.Result[max(0, len(out.Result)-80):])
		}
	}
}

func TestReadStops(t *testing.T) {
	d := newDesk(t)
	d.file("a", "one\n")
	c, _ := d.check("read_file", object{"path": "a"})
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	for _, operation := range []string{"read_file", "list_files"} {
		args := object{"path": "a"}
		if operation == "list_files" {
			args = object{}
		}
		c, _ = d.check(operation, args)
		if _, err := c.tool.Run(ctx, c.inv); err == nil || regie.CodeOf(err) == "" {
			t.Errorf("%s went on: %v", operation, err)
		}
	}
	if out := tool.Run(ctx, c.tool, c.inv); codeOf(out) != regie.CodeStopRequested {
		t.Errorf("got %+v", out.Error)
	}
}
