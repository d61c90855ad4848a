package main

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"github.com/regie-run/regie"
	"github.com/regie-run/regie/internal/app"
	"github.com/regie-run/regie/internal/chat"
	"github.com/regie-run/regie/internal/plain"
	"github.com/regie-run/regie/internal/store"
	"github.com/regie-run/regie/internal/text"
)

func (c *command) exportCommand() *cobra.Command {
	var format, out string
	cmd := &cobra.Command{
		Use: "export ID|last", Args: usage(cobra.ExactArgs(1)), Short: c.text.T("Write a session out: all of it as JSON, or to be read as Markdown"),
		Long: c.text.T("Write a session out. JSON holds all that can be checked of it: messages, calls, runs, what was asked and answered, and its log with every hash (docs/export.md describes it). Markdown is for reading.\nWithout -o it goes to standard output. What is secret in a session is secret in its export."),
		RunE: func(cmd *cobra.Command, args []string) error {
			if format != "json" && format != "markdown" {
				return regie.Errorf(codeUsage, "--format is json or markdown")
			}
			export, err := withSession(cmd.Context(), c, app.Options{ReadOnly: true}, args[0], func(conn *app.Conn, id regie.ID) (store.SessionExport, error) {
				return conn.Export(cmd.Context(), id)
			})
			if err != nil {
				return err
			}
			var data bytes.Buffer
			if format == "json" {
				err = writeJSON(&data, export)
			} else {
				markdown(&data, c.text, &export)
			}
			if err != nil {
				return err
			}
			if out == "" {
				_, err = data.WriteTo(c.stdout)
				return err
			}
			return writePrivate(out, data.Bytes())
		},
	}
	cmd.Flags().StringVar(&format, "format", "json", c.text.T("json or markdown"))
	cmd.Flags().StringVarP(&out, "output", "o", "", c.text.T("write into this file, which only you can read"))
	return cmd
}

// writePrivate writes a file as a whole or not at all, readable by its owner only. It puts the new file in the place of the old one, so
// what is no plain file is refused: a link would be lost, and what it points to may be somebody else's.
func writePrivate(path string, data []byte) error {
	if there, err := os.Lstat(path); err == nil && !there.Mode().IsRegular() {
		return regie.Errorf(regie.CodeSpecialFile, "%s is a link, a directory or a device: name the file itself, or leave -o out for standard output", path)
	}
	f, err := os.CreateTemp(filepath.Dir(path), ".regie-export-*")
	if err == nil {
		_, err = f.Write(data)
		if err = errors.Join(err, f.Sync(), f.Close()); err == nil {
			err = os.Rename(f.Name(), path)
		}
		if err != nil {
			_ = os.Remove(f.Name())
		}
	}
	if err != nil {
		return regie.Errorf(regie.CodeNoPermission, "the export cannot be written: %v", err)
	}
	return nil
}

// markdown writes a session to be read.
func markdown(w io.Writer, t *text.Printer, e *store.SessionExport) {
	page := &chat.Page{Text: t}
	line := func(format string, args ...any) { fmt.Fprintln(w, plain.Strip(fmt.Sprintf(format, args...))) }
	line("# %s\n", oneLine(e.Session.Name, 200))
	line("- %s", t.T("session %s", e.Session.ID.String()))
	line("- %s %s", t.T("workspace"), plain.Line(e.Workspace.Root))
	line("- %s %s, %s %s / %s", t.T("agent"), plain.Line(e.Session.Agent), t.T("model"), plain.Line(e.Session.Provider), plain.Line(e.Session.Model))
	if f := e.Session.ForkedFrom; f != nil {
		line("- %s", t.T("forked from %s at %s", f.SessionID.String(), fmt.Sprint(f.Seq)))
	}
	for i := range e.Messages {
		m := &e.Messages[i]
		at := m.Time
		if m.Message.Copied != nil {
			at = m.Message.Copied.At
		}
		line("\n## %s — %s\n", page.Speaker(&m.Message), at.Local().Format("2006-01-02 15:04:05"))
		if said := chat.Said(t, &m.Message); said != "" {
			line("%s", fenced(said))
		}
		for j := range m.Calls {
			call := &m.Calls[j]
			state := string(call.State)
			if call.NotRun != "" {
				state += " " + string(call.NotRun)
			}
			line("\n- `%s` %s\n", strings.ReplaceAll(call.Tool, "`", ""), state)
			line("%s", fenced(call.Arguments))
			if len(call.Executed) > 0 {
				line("%s\n\n%s", t.T("with edited arguments"), fenced(string(call.Executed)))
			}
			if call.Error != nil {
				line("%s: %s", call.Error.Code, oneLine(call.Error.Message, 1000))
			} else if call.Result != "" {
				line("%s", fenced(call.Result))
			}
		}
	}
}

// fenced shows text as it is, whatever marks are in it: no line of it can pass for a heading, another speaker or the end of it, nor can
// HTML. What Strip takes out is taken out first, or it would put a fence together.
func fenced(s string) string {
	s = lineEnds.Replace(plain.Strip(s))
	fence := "```"
	for strings.Contains(s, fence) {
		fence += "`"
	}
	return fence + "\n" + strings.TrimRight(s, "\n") + "\n" + fence
}

// lineEnds are what a reader may take for the end of a line, besides a line feed.
var lineEnds = strings.NewReplacer("\u2028", "\n", "\u2029", "\n")
