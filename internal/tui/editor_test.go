package tui

import (
	"strings"
	"testing"
	"time"
)

// TestEditor types and presses keys; | stands where the cursor is.
func TestEditor(t *testing.T) {
	for _, row := range []struct{ keys, want string }{
		{"hello", "hello|"},
		{"hello <home>x", "x|hello "},
		{"one two<ctrl+w>three", "one three|"},
		{"one two-three<alt+backspace>", "one |"},
		{"one two three<alt+b><alt+b>X", "one X|two three"},
		{"one two<home><alt+f>X", "oneX| two"},
		{"été 日本<left><backspace>", "été |本"},
		{"a👩\u200d🔬b<left><backspace>", "a|b"},
		{"e\u0301<backspace>", "|"},
		{"a<alt+enter>b<ctrl+j>c<shift+enter>", "a\nb\nc\n|"},
		{"one<ctrl+j>two<ctrl+u>", "one\n|"},
		{"one<ctrl+j>two<ctrl+a><ctrl+u>", "one\n|two"},
		{"one<ctrl+j>two<alt+b><left><ctrl+a><ctrl+k><ctrl+k>", "|two"},
		{"abc<left><left><delete>", "a|c"},
		{"abc<ctrl+left><right><end>d", "abcd|"},
		{"<backspace><delete><ctrl+w><left><right><alt+b><alt+f>", "|"},
	} {
		var e editor
		for rest := row.keys; rest != ""; {
			if rest[0] == '<' {
				name, after, _ := strings.Cut(rest[1:], ">")
				if !e.handleKey(name) {
					t.Errorf("%s is no key", name)
				}
				rest = after
				continue
			}
			text, after, found := strings.Cut(rest, "<")
			e.insertText(text)
			if rest = after; found {
				rest = "<" + after
			}
		}
		if got := string(e.text[:e.at]) + "|" + string(e.text[e.at:]); got != row.want {
			t.Errorf("%q becomes %q, want %q", row.keys, got, row.want)
		}
	}
}

// A long paste is one mark in the editor, is sent as it was, and goes as one.
func TestEditorPaste(t *testing.T) {
	long, short := strings.Repeat("a line\r\n", 20), "one\ntwo"
	var e editor
	e.insertText("see ")
	e.insertText(long)
	e.insertText(" and ")
	e.insertText(short)
	name := func(string) string { return "[20 lines]" }
	rows, y, x := e.wrapRows(80, name)
	if len(rows) != 2 || rows[0].text != "see [20 lines] and one" || rows[1].text != "two" || y != 1 || x != 3 {
		t.Errorf("%+v, the cursor at %d, %d", rows, y, x)
	}
	if got, want := e.fullText(), "see "+strings.ReplaceAll(long, "\r", "")+" and one\ntwo"; got != want {
		t.Errorf("it is sent as %q", got)
	}
	e.at = 5
	e.handleKey("backspace")
	if got := e.fullText(); got != "see  and one\ntwo" {
		t.Errorf("without the paste it is %q", got)
	}
	e.insertText(strings.Repeat("x", pasteChars+1))
	e.insertText(long)
	e.removeRunes(4, 5)
	if !strings.HasPrefix(e.fullText(), "see a line\n") {
		t.Errorf("the other paste is left: %q", e.fullText()[:20])
	}
}

// The lines of the editor are no wider than the terminal, and the cursor stands where the next
// letter comes.
func TestEditorRows(t *testing.T) {
	name := func(string) string { return "" }
	for _, row := range []struct {
		text  string
		at    int
		rows  string
		y, x  int
		width int
	}{
		{"", 0, "", 0, 0, 10},
		{"0123456789", 10, "0123456789/", 1, 0, 10},
		{"0123456789ab", 3, "0123456789/ab", 0, 3, 10},
		{"日本語日本", 5, "日本語/日本", 1, 4, 7},
		{"a\n\nb", 2, "a//b", 1, 0, 10},
		{"a\n", 2, "a/", 1, 0, 10},
		{"\x1b[2J", 4, "␛[2J", 0, 4, 10},
	} {
		e := editor{text: []rune(row.text), at: row.at}
		rows, y, x := e.wrapRows(row.width, name)
		var texts []string
		for _, r := range rows {
			texts = append(texts, r.text)
		}
		if got := strings.Join(texts, "/"); got != row.rows || y != row.y || x != row.x {
			t.Errorf("%q is %q with the cursor at %d, %d", row.text, got, y, x)
		}
	}
	e := editor{text: []rune("one\nlonger line\nx"), at: 10}
	for _, step := range []struct{ by, at int }{{-1, 3}, {1, 7}, {1, 17}} {
		if !e.moveVertically(step.by, 80, name) || e.at != step.at {
			t.Errorf("%+d leads to %d, want %d", step.by, e.at, step.at)
		}
	}
	if e.moveVertically(1, 80, name) {
		t.Error("there is a line below the last one")
	}
}

func TestWrap(t *testing.T) {
	for _, row := range []struct {
		text  string
		width int
		want  string
	}{
		{"", 10, ""},
		{"one two three", 7, "one two/three"},
		{"one  two", 10, "one  two"},
		{"abcdefghij", 4, "abcd/efgh/ij"},
		{"a abcdefgh", 4, "a/abcd/efgh"},
		{"日本語 日本", 6, "日本語/日本"},
		{"a\nb", 10, "a/b"},
		{"  indented", 12, "  indented"},
		{"été été été", 7, "été été/été"},
	} {
		var got []string
		for _, line := range wrapSpans([]span{{text: row.text}}, row.width) {
			got = append(got, paintLine(line, true))
		}
		if joined := strings.Join(got, "/"); joined != row.want {
			t.Errorf("%q at %d is %q, want %q", row.text, row.width, joined, row.want)
		}
	}
	if got := paintLine([]span{{"a", style{bold: true, fg: red}}, {"b", style{fg: red}}}, false); got != "\x1b[1ma\x1b[mb" {
		t.Errorf("without colours it is %q", got)
	}
}

// A narrower terminal breaks what is on it anew; of what may be on it the least counts.
func TestGrown(t *testing.T) {
	var s screen
	now := time.Now()
	s.rememberDrawn(drawn{lines: []string{strings.Repeat("x", 50), "›", "status"}, cursor: 1, at: now})
	for width, want := range map[int]int{60: 0, 50: 0, 49: 1, 25: 1, 24: 2, 10: 4} {
		if got := s.linesGrown(width); got != want {
			t.Errorf("at %d columns it is %d lines more, want %d", width, got, want)
		}
	}
	s.rememberDrawn(drawn{lines: []string{"›", "status"}, cursor: 0, at: now.Add(settles / 2)})
	if got := s.linesGrown(25); got != 0 {
		t.Errorf("%d lines more, of which nobody knows whether they are there", got)
	}
	s.rememberDrawn(drawn{lines: []string{strings.Repeat("x", 70), "›"}, cursor: 1, column: 2, at: now.Add(3 * settles)})
	s.rememberDrawn(drawn{lines: []string{strings.Repeat("x", 70), "›"}, cursor: 1, column: 2, at: now.Add(6 * settles)})
	if got := s.linesGrown(30); got != 2 {
		t.Errorf("%d lines more, want 2", got)
	}
}

func TestBell(t *testing.T) {
	for _, row := range []struct {
		bell   Bell
		worked time.Duration
		want   bool
	}{
		{BellOff, time.Hour, false},
		{BellAlways, 0, true},
		{BellAuto, time.Second, false},
		{BellAuto, time.Minute, true},
	} {
		if got := row.bell.isWanted(row.worked); got != row.want {
			t.Errorf("%+v after %s: %v", row.bell, row.worked, got)
		}
	}
	if _, err := ParseBell("loud"); err == nil {
		t.Error("loud is a word")
	}
}

func TestHistory(t *testing.T) {
	m := looking(t)
	h := &m.history
	for _, said := range []string{"one", "two", "one", " ", "three"} {
		h.addEntry(said)
	}
	m.draft.replaceText("draft")
	var got []string
	for range 4 {
		h.showOlder(m)
		got = append(got, m.draft.fullText())
	}
	for range 4 {
		h.showNewer(m)
		got = append(got, m.draft.fullText())
	}
	if want := "three one two two one three draft draft"; strings.Join(got, " ") != want {
		t.Errorf("it goes through %q, want %q", got, want)
	}
	h.startSearch(m)
	h.handleKey(m, "o", "o")
	first := h.list[h.found]
	h.handleKey(m, "ctrl+r", "")
	second := h.list[h.found]
	h.handleKey(m, "enter", "")
	if first != "one" || second != "two" || m.draft.fullText() != "two" || h.searching {
		t.Errorf("it finds %q, then %q, and takes %q", first, second, m.draft.fullText())
	}
}
