package main

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"

	"github.com/spf13/cobra"

	"github.com/regie-run/regie"
	"github.com/regie-run/regie/internal/app"
	"github.com/regie-run/regie/internal/chat"
	"github.com/regie-run/regie/internal/store"
)

func (c *command) exportCommand() *cobra.Command {
	var format, out string
	cmd := &cobra.Command{
		Use: "export ID|last", Args: usage(cobra.ExactArgs(1)),
		Short: c.text.T("Write a session out: all of it as JSON, or to be read as Markdown"),
		Long:  c.text.T("Write a session out. JSON holds all that can be checked of it: messages, calls, runs, what was asked and answered, and its log with every hash (docs/export.md describes it). Markdown is for reading.\nWithout -o it goes to standard output. What is secret in a session is secret in its export."),
		RunE: func(cmd *cobra.Command, args []string) error {
			if format != "json" && format != "markdown" {
				return regie.Errorf(codeUsage, "--format is json or markdown")
			}
			export, err := withSession(cmd.Context(), c, app.Options{ReadOnly: true}, args[0],
				func(conn *app.Conn, id regie.ID) (store.SessionExport, error) {
					return conn.Export(cmd.Context(), id)
				})
			if err != nil {
				return err
			}
			var data bytes.Buffer
			if format == "json" {
				err = writeJSON(&data, export)
			} else {
				chat.Markdown(&data, c.text, &export)
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

// writePrivate writes a file as a whole or not at all, readable by its owner only. It puts the new
// file in the place of the old one, so what is no plain file is refused: a link would be lost, and
// what it points to may be somebody else's.
func writePrivate(path string, data []byte) error {
	if there, err := os.Lstat(path); err == nil && !there.Mode().IsRegular() {
		return regie.Errorf(regie.CodeSpecialFile,
			"%s is a link, a directory or a device: name the file itself, or leave -o out for standard output", path)
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
