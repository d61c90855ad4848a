package main

import (
	"bytes"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/spf13/cobra"

	"github.com/regie-run/regie/internal/i18n"
)

// readPages returns the text of each Markdown page of the repository's root and of docs/, by its
// path from the root.
func readPages(t *testing.T) map[string]string {
	t.Helper()
	pages := map[string]string{}
	for _, pattern := range []string{"*.md", "docs/*.md"} {
		paths, err := fs.Glob(os.DirFS("../.."), pattern)
		if err != nil {
			t.Fatal(err)
		}
		for _, path := range paths {
			text, err := os.ReadFile(filepath.Join("..", "..", path))
			if err != nil {
				t.Fatal(err)
			}
			pages[path] = string(text)
		}
	}
	return pages
}

var (
	aLink    = regexp.MustCompile(`\]\(([^)\s]+)\)`)
	aFence   = regexp.MustCompile("(?s)```.*?```")
	aHeading = regexp.MustCompile(`(?m)^#+ (.+)$`)
	noAnchor = regexp.MustCompile(`[^\p{L}\p{N} _-]`)
)

// anchors lists the anchors of a page's headings as GitHub makes them.
func anchors(page string) (names []string) {
	for _, heading := range aHeading.FindAllStringSubmatch(aFence.ReplaceAllString(page, ""), -1) {
		name := noAnchor.ReplaceAllString(strings.ToLower(heading[1]), "")
		names = append(names, strings.ReplaceAll(name, " ", "-"))
	}
	return names
}

// TestDocs_Links follows every link between pages, anchors included.
func TestDocs_Links(t *testing.T) {
	t.Parallel()
	pages := readPages(t)
	found := 0
	for path, page := range pages {
		for _, link := range aLink.FindAllStringSubmatch(aFence.ReplaceAllString(page, ""), -1) {
			file, anchor, _ := strings.Cut(link[1], "#")
			if strings.Contains(file, "://") {
				continue
			}
			found++
			target := path
			if file != "" {
				target = filepath.Join(filepath.Dir(path), file)
			}
			if _, err := os.Stat(filepath.Join("..", "..", target)); err != nil {
				t.Errorf("%s links to %s, which is not there", path, link[1])
			} else if anchor != "" && !slices.Contains(anchors(pages[target]), anchor) {
				t.Errorf("%s links to %s: %s has the anchors %v", path, link[1], target, anchors(pages[target]))
			}
		}
	}
	if found < 40 {
		t.Errorf("only %d links were found", found)
	}
}

// TestDocs_Blocks runs every shell block that is marked as runnable (```sh run), those of a page in
// one directory and in their order.
func TestDocs_Blocks(t *testing.T) {
	t.Parallel()
	binary := buildRegie(t)
	found := 0
	for path, page := range readPages(t) {
		home := t.TempDir()
		if err := os.Mkdir(filepath.Join(home, "project"), 0o700); err != nil {
			t.Fatal(err)
		}
		for _, block := range regexp.MustCompile("(?s)```sh run\n(.*?)```").FindAllStringSubmatch(page, -1) {
			found++
			shell := exec.CommandContext(t.Context(), "sh", "-e", "-c", block[1])
			shell.Dir = filepath.Join(home, "project")
			shell.Env = append(os.Environ(), "PATH="+filepath.Dir(binary)+":"+os.Getenv("PATH"), "HOME="+home,
				"REGIE_DATA_DIR="+home+"/data", "REGIE_LANG=en", "OLLAMA_HOST=127.0.0.1:1")
			if out, err := shell.CombinedOutput(); err != nil {
				t.Errorf("%s: %v\n%s\n%s", path, err, block[1], out)
			}
		}
	}
	if found < 3 {
		t.Errorf("only %d blocks were found", found)
	}
}

// TestDocs_Commands compares docs/commands.md with the commands; -update writes it.
func TestDocs_Commands(t *testing.T) {
	t.Parallel()
	root := newRootCommand(&environment{text: i18n.New("en"), level: new(slog.LevelVar)})
	var page bytes.Buffer
	page.WriteString("# Commands\n\nGenerated from the program; `regie COMMAND --help` says the same.\n")
	writeCommand(&page, root)
	path := filepath.Join("..", "..", "docs", "commands.md")
	if *update {
		if err := os.WriteFile(path, page.Bytes(), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	have, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(have), page.String()); diff != "" {
		t.Errorf("docs/commands.md is old (go test ./cmd/regie -run TestDocs_Commands -update):\n%s", diff)
	}
}

// writeCommand writes a command with its own flags, then the commands below it.
func writeCommand(page *bytes.Buffer, cmd *cobra.Command) {
	long := cmd.Long
	if long == "" {
		long = cmd.Short
	}
	fmt.Fprintf(page, "\n## %s\n\n%s\n", cmd.CommandPath(), long)
	if cmd.Runnable() {
		fmt.Fprintf(page, "\n```\n%s\n```\n", cmd.UseLine())
	}
	if flags := cmd.LocalNonPersistentFlags().FlagUsages(); flags != "" {
		fmt.Fprintf(page, "\n```\n%s```\n", flags)
	}
	for _, sub := range cmd.Commands() {
		if !sub.Hidden && sub.Name() != "help" {
			writeCommand(page, sub)
		}
	}
}
