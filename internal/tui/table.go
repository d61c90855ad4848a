package tui

import (
	"strings"

	east "github.com/yuin/goldmark/extension/ast"
)

// minColumn is how narrow a column of a table may be made, in columns of the terminal.
const minColumn = 6

// table writes a table with its columns as wide as they need to be; where they do not fit their
// cells are wrapped, and where that leaves too little each row becomes a list of its cells.
func (p *page) table(table *east.Table, width int) [][]span {
	p.cells = true
	defer func() { p.cells = false }()
	var rows [][][]span
	columns := 0
	for node := table.FirstChild(); node != nil; node = node.NextSibling() {
		var row [][]span
		s := style{}
		if _, head := node.(*east.TableHeader); head {
			s.bold = true
		}
		for cell := node.FirstChild(); cell != nil; cell = cell.NextSibling() {
			row = append(row, p.inline(cell, s))
		}
		rows, columns = append(rows, row), max(columns, len(row))
	}
	widths, fits := columnWidths(rows, columns, width)
	if !fits {
		return p.records(rows, width)
	}
	var out [][]span
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

// columnWidths shares a width among columns; fits is false where some would be narrower than
// minColumn without need.
func columnWidths(rows [][][]span, columns, width int) (widths []int, fits bool) {
	widths = make([]int, columns)
	unsure := 0 // how much longer a terminal may find a row that is as wide as it can be
	for _, row := range rows {
		more := 0
		for i, cell := range row {
			most := mostWide(cell)
			widths[i] = max(widths[i], most, 1)
			more += most - wide(cell)
		}
		unsure = max(unsure, more)
	}
	room := width - 3*(columns-1) - min(unsure, width/4)
	for {
		total, widest := 0, 0
		for i, w := range widths {
			total += w
			if w > widths[widest] {
				widest = i
			}
		}
		if total <= room {
			return widths, true
		}
		second := minColumn
		for i, w := range widths {
			if i != widest && w > second {
				second = w
			}
		}
		if widths[widest] <= minColumn {
			return widths, false
		}
		widths[widest] = max(minColumn, min(widths[widest]-1, max(second, widths[widest]-(total-room))))
	}
}

func tableRow(row [][]span, widths []int, alignments []east.Alignment) [][]span {
	cells := make([][][]span, len(widths))
	height := 1
	for i := range widths {
		if i < len(row) {
			cells[i] = wrap(row[i], widths[i])
			height = max(height, len(cells[i]))
		}
	}
	var out [][]span
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
			if i < len(alignments) {
				switch alignments[i] {
				case east.AlignRight:
					left, right = right, 0
				case east.AlignCenter:
					left, right = right/2, right-right/2
				}
			}
			if i == len(widths)-1 {
				right = 0 // no spaces at the end of a line
			}
			line = append(line, span{text: strings.Repeat(" ", left)})
			line = append(append(line, cell...), span{text: strings.Repeat(" ", right)})
		}
		out = append(out, line)
	}
	return out
}

// records writes a table that is too wide as one list of cells for each row.
func (p *page) records(rows [][][]span, width int) [][]span {
	var out [][]span
	for i := 1; i < len(rows); i++ {
		if i > 1 {
			out = append(out, nil)
		}
		for n, cell := range rows[i] {
			var line []span
			if n < len(rows[0]) && len(rows[0][n]) > 0 {
				line = append(append(line, rows[0][n]...), span{text: ": "})
			}
			out = append(out, wrap(append(line, cell...), width)...)
		}
	}
	return out
}
