package tui

import (
	"slices"
	"strings"

	east "github.com/yuin/goldmark/extension/ast"
)

// minColumn is how narrow a column of a table may be made, in columns of the terminal.
const minColumn = 6

// renderTable writes a table with its columns as wide as they need to be; where they do not fit
// their cells are wrapped, and where that leaves too little each cell has lines of its own.
func (p *page) renderTable(table *east.Table, width int) (out [][]span) {
	var rows [][][]span
	for node := table.FirstChild(); node != nil; node = node.NextSibling() {
		var row [][]span
		for cell := node.FirstChild(); cell != nil; cell = cell.NextSibling() {
			row = append(row, p.renderInline(cell, style{bold: len(rows) == 0}))
		}
		rows = append(rows, row)
	}
	widths := columnWidths(rows, width)
	for i, row := range rows {
		if widths == nil {
			for _, cell := range row {
				out = append(out, wrapSpans(cell, width)...)
			}
			out = append(out, nil)
			continue
		}
		out = append(out, tableRow(row, widths)...)
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

// columnWidths shares a width among columns and narrows the widest; it returns nil if a column
// would be narrower than minColumn.
func columnWidths(rows [][][]span, width int) []int {
	widths := make([]int, len(rows[0]))
	room := width - 3*(len(widths)-1)
	for i := range widths {
		for _, row := range rows {
			if i < len(row) {
				widths[i] = max(widths[i], min(widthOf(row[i]), width), 1)
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

func tableRow(row [][]span, widths []int) (out [][]span) {
	cells := make([][][]span, len(widths))
	height := 1
	for i := range min(len(widths), len(row)) {
		cells[i] = wrapSpans(row[i], widths[i])
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
			line = append(append(line, cell...), span{text: strings.Repeat(" ", max(0, w-widthOf(cell)))})
		}
		out = append(out, trimRight(line))
	}
	return out
}
