package tui

import (
	"slices"
	"strings"

	east "github.com/yuin/goldmark/extension/ast"
)

// minColumn is how narrow a column of a table may be made, in columns of the terminal.
const minColumn = 6

// table writes a table with its columns as wide as they need to be; where they do not fit their
// cells are wrapped, and where that leaves too little each row becomes a list of its cells.
func (p *page) table(table *east.Table, width int) (out [][]span) {
	var rows [][][]span
	for node := table.FirstChild(); node != nil; node = node.NextSibling() {
		var row [][]span
		for cell := node.FirstChild(); cell != nil; cell = cell.NextSibling() {
			row = append(row, p.inline(cell, style{bold: len(rows) == 0}))
		}
		rows = append(rows, row)
	}
	widths := columnWidths(rows, width)
	if widths == nil {
		return records(rows, width)
	}
	for i, row := range rows {
		out = append(out, tableRow(row, widths, table.Alignments)...)
		if i == 0 {
			var rule []string
			for _, w := range widths {
				rule = append(rule, strings.Repeat("─", w))
			}
			out = append(out, []span{{strings.Join(rule, "─┼─"), style{faint: true}}})
		}
	}
	return out
}

// columnWidths shares a width among columns, the widest of which are made narrower; nil where some
// would be narrower than minColumn.
func columnWidths(rows [][][]span, width int) []int {
	widths := make([]int, len(rows[0]))
	room := width - 3*(len(widths)-1)
	for i := range widths {
		for _, row := range rows {
			if i < len(row) {
				widths[i] = max(widths[i], min(wide(row[i]), width), 1)
			}
		}
		room -= widths[i]
	}
	for ; room < 0; room++ {
		widest := slices.Index(widths, slices.Max(widths))
		if widths[widest] <= minColumn {
			return nil
		}
		widths[widest]--
	}
	return widths
}

func tableRow(row [][]span, widths []int, alignments []east.Alignment) (out [][]span) {
	cells := make([][][]span, len(widths))
	height := 1
	for i := range min(len(widths), len(row)) {
		cells[i] = wrap(row[i], widths[i])
		height = max(height, len(cells[i]))
	}
	for y := range height {
		var line []span
		for i, w := range widths {
			if i > 0 {
				line = append(line, span{" │ ", style{faint: true}})
			}
			var cell []span
			if y < len(cells[i]) {
				cell = cells[i][y]
			}
			left, right := 0, max(0, w-wide(cell))
			switch alignments[i] {
			case east.AlignRight:
				left, right = right, 0
			case east.AlignCenter:
				left, right = right/2, right-right/2
			}
			line = append(line, span{text: strings.Repeat(" ", left)})
			line = append(append(line, cell...), span{text: strings.Repeat(" ", right)})
		}
		out = append(out, trimmed(line))
	}
	return out
}

// records writes a table that is too wide as one list of cells for each row.
func records(rows [][][]span, width int) (out [][]span) {
	for i, row := range rows[1:] {
		if i > 0 {
			out = append(out, nil)
		}
		for n, cell := range row {
			line := append(slices.Clone(rows[0][n]), span{text: ": "})
			out = append(out, wrap(append(line, cell...), width)...)
		}
	}
	return out
}
