package chat

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"

	"github.com/regie-run/regie"
	"github.com/regie-run/regie/internal/sanitize"
)

// Editor opens a file for a person and returns when they have closed it.
type Editor func(ctx context.Context, path string) error

// Command is the Editor of a command line as $VISUAL and $EDITOR hold one, options and quotes
// included. It has this process's terminal.
func Command(line string) Editor {
	return func(ctx context.Context, path string) error {
		cmd := exec.CommandContext(ctx, "sh", "-c", line+` "$1"`, "sh", path)
		cmd.Stdin, cmd.Stdout, cmd.Stderr = os.Stdin, os.Stderr, os.Stderr // standard output is the answer's
		return cmd.Run()
	}
}

// EditorLine is the command line of the person's editor: $VISUAL, else $EDITOR, else vi.
func EditorLine(env func(string) string) string {
	for _, name := range []string{"VISUAL", "EDITOR"} {
		if line := env(name); line != "" {
			return line
		}
	}
	return "vi"
}

// Edit lets a person change the arguments of a call in an editor, and returns the result as JSON
// (spec 4.4). The editor starts with draft. The file is in a private directory, which Edit removes
// afterwards. For unusable text Edit returns it as the next draft, with CodeBadArguments. It
// returns CodeConflict for no change and CodeToolError when the editor fails.
func Edit(ctx context.Context, editor Editor, arguments json.RawMessage, draft []byte) (edited []byte, err error) {
	if len(draft) == 0 {
		draft = Pretty(arguments)
	}
	dir, err := os.MkdirTemp("", "regie-edit-")
	path := filepath.Join(dir, "arguments.json")
	if err == nil {
		defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
		err = os.WriteFile(path, draft, 0o600)
	}
	if err == nil {
		err = editor(ctx, path)
	}
	if err == nil {
		edited, err = os.ReadFile(path)
	}
	if err != nil {
		return nil, regie.Errorf(regie.CodeToolError, "the editor failed, so nothing is decided: %v", err)
	}
	return edited, checkEdited(arguments, edited)
}

// checkEdited says why edited arguments change nothing.
func checkEdited(arguments, edited []byte) error {
	if len(bytes.TrimSpace(edited)) == 0 {
		return regie.Errorf(regie.CodeBadArguments, "the edited file is empty, so nothing is decided")
	}
	var before, after any
	if err := json.Unmarshal(edited, &after); err != nil {
		return regie.Errorf(regie.CodeBadArguments, "the edited arguments are not JSON: %v", err)
	}
	if json.Unmarshal(arguments, &before) == nil && reflect.DeepEqual(before, after) {
		return regie.Errorf(regie.CodeConflict, "the arguments were not changed, so nothing is decided")
	}
	return nil
}

// Pretty indents JSON for an editor and escapes characters that hide or act. It returns other text
// unchanged.
func Pretty(arguments json.RawMessage) []byte {
	var out bytes.Buffer
	if json.Indent(&out, arguments, "", "  ") != nil {
		return arguments
	}
	return append([]byte(sanitize.JSON(out.String())), '\n')
}
