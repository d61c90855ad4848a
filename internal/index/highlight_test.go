package index

import (
	"strings"
	"testing"
	"unicode/utf8"
)

func TestHighlightMarks(t *testing.T) {
	for _, row := range []struct{ query, text, want string }{
		{"invoices", "the invoice of invoicing Invoice2", "the [invoice] of [invoicing] [Invoice2]"},
		{"parse the invoice", "func parseInvoice(x) // a party", "func [parseInvoice](x) // a party"},
		{"parse", "func parse_invoice, HTTPParse", "func [parse_invoice], [HTTPParse]"},
		{"parseInvoice", "parse invoice parseInvoice", "[parse] [invoice] [parseInvoice]"},
		{"where is the", "where is the", "where is the"},
		{"réunions d'été", "La REUNION de l'été, reunion", "La [REUNION] de l'[été], [reunion]"},
		{"e\u0301te\u0301", "l'e\u0301te\u0301 \u00e9t\u00e9", "l'[e\u0301te\u0301] [\u00e9t\u00e9]"},
		{"東京", "東京都", "[東京都]"},
		{"?!", "nothing", "nothing"},
		{"x", "", ""},
	} {
		places, _ := NewMarker(row.query).Marks(row.text)
		var out strings.Builder
		at := 0
		for _, p := range places {
			out.WriteString(row.text[at:p[0]] + "[" + row.text[p[0]:p[1]] + "]")
			at = p[1]
		}
		out.WriteString(row.text[at:])
		if out.String() != row.want {
			t.Errorf("%q: %s, want %s", row.query, out.String(), row.want)
		}
	}
	if _, words := NewMarker("boilers and pipes and valves").Marks("a boiler, Boilers, a pipe"); len(words) != 2 {
		t.Errorf("the words are %v", words)
	}
}

func FuzzMarks(f *testing.F) {
	f.Add("parseInvoice", "東京 parse_Invoice2 é")
	f.Fuzz(func(t *testing.T, query, text string) {
		places, _ := NewMarker(query).Marks(text)
		at := -1
		for _, p := range places {
			if p[0] <= at || p[1] <= p[0] || p[1] > len(text) {
				t.Fatalf("%q in %q: %v", query, text, places)
			}
			if utf8.ValidString(text) && !utf8.ValidString(text[p[0]:p[1]]) {
				t.Fatalf("%q in %q: %v cuts a character", query, text, places)
			}
			at = p[1]
		}
	})
}
