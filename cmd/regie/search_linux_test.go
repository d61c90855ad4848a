package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// A person at a terminal sees the words that were asked for in colour, unless they want none.
func TestSearchAtTerminal(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "work")
	for name, text := range map[string]string{"home/x": "", "work/.git/HEAD": "", "work/pay.go": "package pay\n\nfunc parseInvoice() {}\n", "work/long.txt": strings.Repeat("filler ", 200) + "an invoice " + strings.Repeat("é", 500) + "\n"} {
		path := filepath.Join(filepath.Dir(dir), name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	data := "REGIE_DATA_DIR=" + filepath.Join(filepath.Dir(dir), "data")
	for _, row := range []struct {
		env  []string
		args []string
		want []string
	}{
		{[]string{"TERM=xterm"}, []string{"invoices"}, []string{pathColour + "pay.go:3" + plainColour, "func parse" + wordColour + "Invoice" + plainColour + "() {}", "…", "an " + wordColour + "invoice" + plainColour + " éé"}},
		{[]string{"TERM=xterm", "NO_COLOR=1"}, []string{"invoices"}, []string{"pay.go:3  package pay, parseInvoice\n     3  func parseInvoice() {}\n"}},
		{[]string{"TERM=dumb"}, []string{"invoices"}, []string{"\n     3  func parseInvoice() {}\n"}},
		{[]string{"TERM=xterm"}, []string{"-ei", "INVOICE("}, []string{pathColour + "pay.go:3" + plainColour + ": func parse" + wordColour + "Invoice(" + plainColour + ") {}"}},
		{[]string{"TERM=xterm"}, []string{"-E", "[A-Z]n[^(]*"}, []string{": func parse" + wordColour + "Invoice" + plainColour + "() {}"}},
		{[]string{"TERM=xterm", "NO_COLOR=1"}, []string{"-e", "Invoice"}, []string{"pay.go:3: func parseInvoice() {}"}},
	} {
		s := terminal(t, dir, append(row.env, data), append([]string{"search"}, row.args...)...)
		<-s.done
		if err := s.cmd.Wait(); err != nil {
			t.Errorf("%v: %v", row.args, err)
		}
		got := s.text.String()
		for _, want := range row.want {
			if !strings.Contains(got, want) {
				t.Errorf("%v %v: no %q in\n%q", row.env, row.args, want, got)
			}
		}
		if row.env[len(row.env)-1] != "TERM=xterm" && strings.Contains(strings.ReplaceAll(got, "\x1b[K", ""), "\x1b") {
			t.Errorf("%v %v: colours in\n%q", row.env, row.args, got)
		}
	}
}
