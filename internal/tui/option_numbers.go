package tui

import (
	"maps"
	"strconv"
	"strings"
	"time"

	"github.com/regie-run/regie"
)

// numbers are the numbers of options as they are typed. Each digit acts at once, so that what is
// seen is what Enter answers; where a second one makes a longer number, what the first did is taken
// back.
type numbers struct {
	digits string // of a number that may go on
	behind bool   // a digit was typed last: a space or a comma only ends the number
	before marks  // what was chosen before the number
	run    string // what was typed without a pause: with a letter behind it, it was the beginning of words
	at     time.Time
	first  marks // what was chosen before the run
}

// marks are what is chosen of a question's options.
type marks struct {
	picked int
	chosen map[int]bool
}

func (q *questioning) marks() marks { return marks{q.picked, maps.Clone(q.chosen)} }

func (q *questioning) mark(now marks) { q.picked, q.chosen = now.picked, maps.Clone(now.chosen) }

// letter implements lettered.
func (q *questioning) letter(typed string) meaning {
	module := &q.asked.Module
	switch {
	case q.writes, typed == " ":
		return acts
	case typed == "l":
		return waits
	case module.Kind == regie.ModuleValidation:
		return among("yYoOnN", typed)
	case typed == "t" && module.AllowFreeText:
		return waits
	case q.option(typed) > 0, q.option(q.numbers.digits+typed) > 0, typed == "," && q.numbers.behind:
		return acts
	}
	return begins
}

// option is the option that a number names, or 0.
func (q *questioning) option(number string) int {
	n, err := strconv.Atoi(number)
	if err != nil || n < 1 || n > len(q.asked.Module.Options) || len(number) > 2 {
		return 0
	}
	return n
}

// number obeys a digit, and what stands between numbers. It reports false for anything else, which
// ends a number.
func (q *questioning) number(typed string) bool {
	n := &q.numbers
	digit := typed != "" && typed != " " && typed != "," && q.letter(typed) == acts
	between := typed == " " && (n.behind || q.asked.Module.AllowMultiple) || typed == "," && n.behind
	if !digit && !between {
		*n = numbers{}
		return false
	}
	if n.run == "" || time.Since(n.at) >= aloneFor {
		n.run, n.first = "", q.marks()
	}
	n.run, n.at = n.run+typed, time.Now()
	switch {
	case digit:
		q.digit(typed)
	case !n.behind:
		q.chosen[q.picked] = !q.chosen[q.picked]
	default:
		n.digits, n.behind = "", false
	}
	return true
}

func (q *questioning) digit(typed string) {
	n := &q.numbers
	if q.option(n.digits+typed) > 0 && n.digits != "" {
		q.mark(n.before)
	} else {
		n.digits, n.before = "", q.marks()
	}
	n.digits += typed
	n.behind = true
	q.picked = q.option(n.digits) - 1
	if q.asked.Module.AllowMultiple {
		q.chosen[q.picked] = !q.chosen[q.picked]
	}
}

// words implements worded: they are the answer where the question takes one in the person's own
// words. What the prompt has commands for goes there.
func (q *questioning) words(m *model, typed string) (rest string) {
	n := &q.numbers
	if n.run != "" && time.Since(n.at) < aloneFor {
		q.mark(n.first)
		typed = n.run + typed
	}
	*n = numbers{}
	if q.busy || !q.asked.Module.AllowFreeText || strings.HasPrefix(typed, "/") ||
		strings.HasPrefix(typed, regie.CommandMark) {
		return typed
	}
	q.writes = true
	m.fits(q.text.insert(typed))
	return ""
}
