package sim

import (
	"maps"
	"reflect"
	"regexp"
	"slices"

	"github.com/regie-run/regie"
)

// mostTries bounds how many smaller plans are tried.
const mostTries = 400

// shrink makes a failing plan smaller as long as it fails in the same way: it takes away steps,
// replies, deaths and what tools do, and makes what is left plainer. It returns the smallest that
// it found, and how many it tried.
func shrink(f finding, run func(plan) finding) (finding, int) {
	tries := 0
	for again := true; again; {
		again = false
		for _, smaller := range smaller(f.plan) {
			if tries++; tries > mostTries {
				return f, tries
			}
			if found := run(smaller); fails(found, f) {
				f, again = found, true
				break
			}
		}
	}
	return f, tries
}

var digits = regexp.MustCompile(`[0-9a-f]{8}-[0-9a-f-]{27}|[0-9]+`)

// fails reports whether two findings begin with the same kind of violation.
func fails(a, b finding) bool {
	if len(a.violations) == 0 || len(b.violations) == 0 {
		return false
	}
	kind := func(v string) string {
		v = digits.ReplaceAllString(v, "#")
		return v[:min(40, len(v))]
	}
	return slices.ContainsFunc(a.violations, func(v string) bool { return kind(v) == kind(b.violations[0]) })
}

// smaller are plans that do a little less, the boldest first.
func smaller(p plan) (out []plan) {
	add := func(change func(*plan)) {
		q := p
		q.Steps, q.Replies, q.Deaths, q.Tools = slices.Clone(p.Steps), slices.Clone(p.Replies), slices.Clone(p.Deaths), maps.Clone(p.Tools)
		change(&q)
		out = append(out, q)
	}
	for n := len(p.Replies) / 2; n >= 1; n /= 2 {
		for i := 0; i+n <= len(p.Replies); i += n {
			add(func(q *plan) { q.Replies = slices.Delete(q.Replies, i, i+n) })
		}
	}
	for n := (len(p.Steps) - 1) / 2; n >= 1; n /= 2 {
		for i := 1; i+n <= len(p.Steps); i += n {
			add(func(q *plan) { q.Steps = slices.Delete(q.Steps, i, i+n) })
		}
	}
	for i := range p.Deaths {
		add(func(q *plan) { q.Deaths = slices.Delete(q.Deaths, i, i+1) })
	}
	if len(p.Tools) > 0 {
		add(func(q *plan) { q.Tools = nil })
	}
	for _, name := range slices.Sorted(maps.Keys(p.Tools)) {
		add(func(q *plan) { delete(q.Tools, name) })
	}
	for i := range p.Replies {
		for k := range p.Replies[i].Parts {
			add(func(q *plan) { q.Replies[i].Parts = slices.Delete(slices.Clone(q.Replies[i].Parts), k, k+1) })
			if p.Replies[i].Parts[k].Times > 1 {
				add(func(q *plan) {
					q.Replies[i].Parts = slices.Clone(q.Replies[i].Parts)
					q.Replies[i].Parts[k].Times /= 2
				})
			}
		}
		plain := reply{Do: p.Replies[i].Do, Parts: p.Replies[i].Parts, Status: p.Replies[i].Status, Body: p.Replies[i].Body}
		for _, change := range []func(*reply){
			func(r *reply) { *r = plain }, func(r *reply) { r.Wire = wire{} }, func(r *reply) { r.Pause = 0 }, func(r *reply) { r.Usage = "" },
			func(r *reply) { r.Finish = "" }, func(r *reply) { r.Object = object{} }, func(r *reply) { r.Cut = 0 }, func(r *reply) { r.Silent = 0 },
		} {
			r := p.Replies[i]
			if change(&r); !same(r, p.Replies[i]) {
				add(func(q *plan) { q.Replies[i] = r })
			}
		}
	}
	for _, change := range []func(*plan){
		func(q *plan) { q.Validate = false }, func(q *plan) { q.Left = false }, func(q *plan) {
			q.Limits = regie.Limits{ContextTokens: q.Limits.ContextTokens, ContextMessages: q.Limits.ContextMessages}
		},
		func(q *plan) { q.Policy.WaitNetwork = false }, func(q *plan) { q.Policy.OnApproval = "" }, func(q *plan) { q.Policy.Questions = false },
		func(q *plan) { q.Policy.Relaunch = "" }, func(q *plan) { q.Type = "" }, func(q *plan) { q.Dialect = "" }, func(q *plan) { q.Summaries = nil },
		func(q *plan) { q.Limits.ContextTokens = 0 }, func(q *plan) { q.Limits.ContextMessages = 0 },
	} {
		q := p
		if change(&q); !reflect.DeepEqual(q, p) {
			add(change)
		}
	}
	return out
}

// same compares replies without their parts.
func same(a, b reply) bool {
	return a.Do == b.Do && a.Status == b.Status && a.Body == b.Body && a.Header == b.Header && a.Wire == b.Wire && a.Object == b.Object && a.Pause == b.Pause && a.Cut == b.Cut &&
		a.Silent == b.Silent && a.Usage == b.Usage && a.Finish == b.Finish
}
