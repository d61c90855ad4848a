package files

import (
	"encoding/json"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/regie-run/regie"
	"github.com/regie-run/regie/internal/tool"
)

// desk is a workspace with the toolkit's tools, which are called as the engine calls them: checked,
// prepared, run.
type desk struct {
	t     testing.TB
	dir   string
	tools *tool.Registry
	kit   *toolkit
}

func newDesk(tb testing.TB, change ...func(*bounds)) *desk {
	tb.Helper()
	b := defaultBounds()
	for _, c := range change {
		c(&b)
	}
	d := &desk{t: tb, dir: filepath.Join(tb.TempDir(), "workspace"), kit: newToolkit(b)}
	made, err := d.kit.allTools()
	d.must(err)
	d.must(os.Mkdir(d.dir, 0o755))
	d.tools, err = tool.NewRegistry(made...)
	d.must(err)
	return d
}

func (d *desk) must(err error) {
	d.t.Helper()
	if err != nil {
		d.t.Fatal(err)
	}
}

func (d *desk) abs(name string) string { return filepath.Join(d.dir, name) }

func (d *desk) file(name, content string) {
	d.t.Helper()
	d.must(os.MkdirAll(filepath.Dir(d.abs(name)), 0o755))
	d.must(os.WriteFile(d.abs(name), []byte(content), 0o644))
}

func (d *desk) content(name string) string {
	d.t.Helper()
	data, err := os.ReadFile(d.abs(name))
	d.must(err)
	return string(data)
}

// all lists the names of all files.
func (d *desk) all() []string {
	d.t.Helper()
	var out []string
	d.must(fs.WalkDir(os.DirFS(d.dir), ".", func(name string, entry fs.DirEntry, err error) error {
		if err == nil && !entry.IsDir() {
			out = append(out, name)
		}
		return err
	}))
	return out
}

func (d *desk) fifo(name string) {
	d.t.Helper()
	d.must(syscall.Mkfifo(d.abs(name), 0o644))
}

// call is a call that has been checked.
type call struct {
	tool tool.Tool
	inv  *tool.Invocation
}

type object = map[string]any

// check makes a call; a refusal comes back as an outcome.
func (d *desk) check(operation string, args object) (call, *regie.CallError) {
	d.t.Helper()
	data, err := json.Marshal(args)
	d.must(err)
	c := d.tools.Check("files__"+operation, string(data))
	return call{c.Tool, &tool.Invocation{CallID: regie.NewID(), Workspace: regie.Workspace{Root: d.dir}, Arguments: json.RawMessage(data)}}, c.Error
}

// do makes a call and runs it.
func (d *desk) do(operation string, args object) tool.Outcome {
	d.t.Helper()
	c, problem := d.check(operation, args)
	if problem != nil {
		return tool.Outcome{State: regie.CallNotRun, Error: problem}
	}
	if problem := c.prepare(d.t); problem != nil {
		return tool.Outcome{State: regie.CallFailed, Error: problem}
	}
	return c.run(d.t)
}

func (c call) prepare(tb testing.TB) *regie.CallError {
	tb.Helper()
	intent, problem := tool.Prepare(tb.Context(), c.tool, c.inv)
	c.inv.Intent = intent
	return problem
}

func (c call) run(tb testing.TB) tool.Outcome {
	tb.Helper()
	return tool.Run(tb.Context(), c.tool, c.inv)
}

func (c call) probe(tb testing.TB) (tool.Evidence, tool.Outcome) {
	tb.Helper()
	return tool.Probe(tb.Context(), c.tool, c.inv)
}

func codeOf(out tool.Outcome) regie.Code {
	if out.Error == nil {
		return ""
	}
	return out.Error.Code
}

func TestDefinitions(t *testing.T) {
	made, err := Tools(nil)
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, tl := range made {
		d := tl.Definition()
		names = append(names, d.Name)
		query := d.Name != "files.write_file" && d.Name != "files.edit_file" && d.Name != "files.delete_file"
		if (d.Kind == regie.KindQuery) != query || (d.Class == regie.ClassRead) != query || d.ParallelSafe != query {
			t.Errorf("%+v", d)
		}
		if d.Risk != regie.RiskInternal || len(d.Description) < 40 {
			t.Errorf("%+v", d)
		}
		if prepares := tool.SidesOf(tl).Prepare != nil; prepares == query {
			t.Errorf("%s prepares: %v", d.Name, prepares)
		}
		if !strings.Contains(string(d.Parameters), `"additionalProperties":false`) || !strings.Contains(string(d.Parameters), `"description"`) {
			t.Errorf("%s has the parameters %s", d.Name, d.Parameters)
		}
	}
	if !slices.Equal(names, []string{"files.list_files", "files.read_file", "files.search_text", "files.write_file", "files.edit_file", "files.delete_file"}) {
		t.Errorf("the tools are %v", names)
	}
}

// Every tool refuses a workspace that is none, and paths that lead out, in the same words.
func TestPlaces(t *testing.T) {
	d := newDesk(t)
	d.file("a", "x")
	calls := map[string]object{
		"list_files": {}, "read_file": {"path": "a"}, "write_file": {"path": "b", "content": "x"}, "search_text": {"query": "x"},
		"edit_file": {"path": "a", "edits": []object{{"old": "x", "new": "y"}}}, "delete_file": {"path": "a"},
	}
	for operation, args := range calls {
		for dir, want := range map[string]regie.Code{
			"": regie.CodeNotFound, d.dir + "x": regie.CodeFileNotFound, d.abs("a"): regie.CodeNotADirectory, "relative": regie.CodePathInvalid,
		} {
			c, _ := d.check(operation, args)
			c.inv.Workspace.Root = dir
			problem := c.prepare(t)
			if problem == nil {
				problem = c.run(t).Error
			}
			if problem == nil || problem.Code != want {
				t.Errorf("%s in %q: %+v", operation, dir, problem)
			}
		}
		for path, want := range map[string]regie.Code{
			"../a": regie.CodePathOutside, "/etc": regie.CodePathOutside, "~/x": regie.CodePathOutside, "a\x00": regie.CodePathInvalid,
			strings.Repeat("a/", 3000): regie.CodePathInvalid, "a\\b": regie.CodePathInvalid, ".ssh/x": regie.CodePathProtected,
			"a/b": regie.CodeNotADirectory,
		} {
			if path == ".ssh/x" && operation == "delete_file" { // there is nothing to ask about
				want = regie.CodeFileNotFound
			}
			with := object{"path": path}
			for param, value := range args {
				if param != "path" {
					with[param] = value
				}
			}
			if out := d.do(operation, with); out.State != regie.CallFailed || codeOf(out) != want || out.Error.Param != "path" {
				t.Errorf("%s of %.30q: %s %+v", operation, path, out.State, out.Error)
			}
		}
	}
}
