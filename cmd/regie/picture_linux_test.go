package main

import (
	"fmt"
	"html"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// cell sizes of the picture, in pixels.
const (
	cellWidth  = 8.4
	cellHeight = 18
)

// colours are the terminal's sixteen, as the picture shows them on its dark ground.
var colours = []string{
	"#3b4252", "#bf616a", "#a3be8c", "#ebcb8b", "#81a1c1", "#b48ead", "#88c0d0", "#e5e9f0",
	"#7b88a1", "#d06f79", "#b1d196", "#f0d399", "#8cafd2", "#c895bf", "#93ccdc", "#eceff4",
}

var anEscape = regexp.MustCompile("\x1b\\[([0-9;]*)m")

// drawSVG turns lines with ANSI colours into a picture.
func drawSVG(lines []string, columns int) string {
	var svg strings.Builder
	width, height := int(float64(columns)*cellWidth)+32, len(lines)*cellHeight+32
	fmt.Fprintf(&svg, "<svg xmlns=%q viewBox=\"0 0 %d %d\" font-family=\"ui-monospace,Menlo,Consolas,monospace\" font-size=\"14\">\n",
		"http://www.w3.org/2000/svg", width, height)
	fmt.Fprintf(&svg, "<rect width=\"100%%\" height=\"100%%\" rx=\"8\" fill=\"#1e222a\"/>\n")
	style := ""
	for row, line := range lines {
		fmt.Fprintf(&svg, "<text x=\"16\" y=\"%d\" xml:space=\"preserve\" fill=\"#d8dee9\">", 16+(row+1)*cellHeight-5)
		for at, rest := 0, line; rest != ""; rest = line[at:] {
			end := len(rest)
			escape := anEscape.FindStringSubmatchIndex(rest)
			if escape != nil {
				end = escape[0]
			}
			if end > 0 {
				fmt.Fprintf(&svg, "<tspan%s>%s</tspan>", style, html.EscapeString(rest[:end]))
			}
			if escape != nil {
				style, end = styleOf(style, rest[escape[2]:escape[3]]), escape[1]
			}
			at += end
		}
		svg.WriteString("</text>\n")
	}
	return svg.String() + "</svg>\n"
}

// styleOf applies the codes of one escape sequence to a style.
func styleOf(style, codes string) string {
	for code := range strings.SplitSeq(codes, ";") {
		var n int
		_, _ = fmt.Sscan(code, &n) // an empty code is 0
		switch {
		case n == 0:
			style = ""
		case n == 1:
			style += ` font-weight="bold"`
		case n == 2:
			style += ` opacity="0.6"`
		case n == 22:
			style = strings.NewReplacer(` font-weight="bold"`, "", ` opacity="0.6"`, "").Replace(style)
		case n == 39:
			style += ` fill="#d8dee9"`
		case n >= 30 && n <= 37:
			style += fmt.Sprintf(" fill=%q", colours[n-30])
		case n >= 90 && n <= 97:
			style += fmt.Sprintf(" fill=%q", colours[n-90+8])
		}
		style = lastOf(style, ` fill="`)
	}
	return style
}

// lastOf keeps the last of several equal attributes, because SVG takes none twice.
func lastOf(style, attribute string) string {
	first, last := strings.Index(style, attribute), strings.LastIndex(style, attribute)
	if first == last {
		return style
	}
	end := first + len(attribute) + strings.Index(style[first+len(attribute):], `"`) + 1
	return style[:first] + style[end:]
}

// TestDocs_Picture compares the words of docs/terminal.svg with those of a chat; -update draws it.
func TestDocs_Picture(t *testing.T) {
	t.Parallel()
	s := newStage(t,
		calls("I look at the letter and at your list.",
			called{"a", "files__read_file", `{"path":"letter.md"}`}, called{"b", "files__read_file", `{"path":"todo.md"}`}),
		calls("The service is due **next March**. I add it to your list.", called{
			"c", "files__write_file",
			`{"path":"todo.md","mode":"overwrite","content":"# To do\n\n- garden: order tomatoes\n- boiler: next service in March\n"}`,
		}))
	for name, text := range map[string]string{"letter.md": "Dear customer, …\n", "todo.md": "# To do\n\n- garden: order tomatoes\n"} {
		if err := os.WriteFile(s.work(name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	p := chatAt(s, 88, 26)
	p.enter("When is the boiler due? Put it on my todo list.")
	p.sees("[l]")
	lines := strings.Split(strings.TrimRight(strings.ReplaceAll(p.coloured(), filepath.Join(s.dir, "work"), "~/house"), "\n"), "\n")
	path := filepath.Join("..", "..", "docs", "terminal.svg")
	if *update {
		if err := os.WriteFile(path, []byte(drawSVG(lines, 88)), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	picture, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"todo.md", "+- boiler: next service in March", "[y]"} {
		if !strings.Contains(p.all(), want) || !strings.Contains(html.UnescapeString(string(picture)), want) {
			t.Errorf("%q is not in docs/terminal.svg and on the screen (-update):\n%s", want, p.all())
		}
	}
}
