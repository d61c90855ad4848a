package chat

import (
	"context"
	"slices"
	"strings"
	"time"

	"github.com/regie-run/regie"
	"github.com/regie-run/regie/internal/store"
)

const (
	shortDigits = 8 // what Short shows
	minDigits   = 4 // what Find takes
)

// Short is the form of an id that people type: its last eight characters. Those at the beginning
// are its time, alike for hours.
func Short(id regie.ID) string {
	s := id.String()
	return s[max(0, len(s)-shortDigits):]
}

// Find returns the one approval or question that a person names: by its id, by the last four or
// more characters of it, by its first eight or more, or as "last", the newest that is open in the
// workspace at root. What is open is preferred to what is not. It returns CodeBadID for what cannot
// be an id, CodeNotFound, and CodeConflict with all of them where there are several.
func Find(ctx context.Context, control Control, root, name string) (store.Inbox, error) {
	filter, last := store.InboxFilter{Root: root, Brief: true}, name == "last"
	none := regie.Errorf(regie.CodeNotFound,
		"nothing waits for an answer in this workspace: see regie approvals --all")
	if !last {
		filter = store.InboxFilter{}
		none = regie.Errorf(regie.CodeNotFound, "nothing that was asked has the id %s: see regie approvals --all", name)
		var err error
		if filter.ID, filter.Short, err = idOrPart(name); err != nil {
			return store.Inbox{}, err
		}
	}
	inbox, err := control.Inbox(ctx, filter)
	if err != nil {
		return inbox, err
	}
	one, err := pickOne(entries(inbox), func(e *entry) regie.ID { return e.id }, func(e *entry) bool { return e.open },
		name, none)
	switch {
	case err != nil:
		return store.Inbox{}, err
	case last: // with its diffs
		return control.Inbox(ctx, store.InboxFilter{ID: one.id})
	}
	return one.inbox, nil
}

// entry is an approval or a question alone.
type entry struct {
	id    regie.ID
	at    time.Time
	open  bool
	inbox store.Inbox
}

// entries are what an inbox holds, the newest last.
func entries(inbox store.Inbox) []entry {
	var out []entry
	for i := range inbox.Approvals {
		a := &inbox.Approvals[i]
		out = append(out, entry{
			a.ID, a.CreatedAt, a.State == regie.ApprovalOpen,
			store.Inbox{Approvals: inbox.Approvals[i : i+1]},
		})
	}
	for i := range inbox.Questions {
		q := &inbox.Questions[i]
		out = append(out, entry{
			q.ID, q.CreatedAt, q.State == regie.WaitOpen,
			store.Inbox{Questions: inbox.Questions[i : i+1]},
		})
	}
	slices.SortStableFunc(out, func(a, b entry) int { return a.at.Compare(b.at) })
	return out
}

// PartOfID returns the digits of a part of an id as people write it, or CodeBadID.
func PartOfID(name string) (string, error) {
	part := strings.ToLower(strings.ReplaceAll(name, "-", ""))
	switch {
	case strings.Trim(part, "0123456789abcdef") != "":
		return "", regie.Errorf(regie.CodeBadID,
			"%q is not an id: write its last %d characters as they are shown, or last", name, shortDigits)
	case len(part) < minDigits || len(part) > 32:
		return "", regie.Errorf(regie.CodeBadID,
			"%q is too short or too long for an id: write its last %d characters as they are shown, or last", name,
			shortDigits)
	}
	return part, nil
}

func count(inbox store.Inbox) int { return len(inbox.Approvals) + len(inbox.Questions) }

// PickID returns the one id that a person names among some: by all of it, by its last four or more
// characters, or by its first eight or more. It returns CodeBadID for what cannot be an id,
// CodeNotFound, and CodeConflict with all of them where there are several.
func PickID(known []regie.ID, name string) (regie.ID, error) {
	part, err := PartOfID(name)
	if err != nil {
		return regie.ID{}, err
	}
	var found []regie.ID
	for _, id := range known {
		if hasPart(id, part) {
			found = append(found, id)
		}
	}
	id, err := pickOne(found, func(id *regie.ID) regie.ID { return *id }, nil, name,
		regie.Errorf(regie.CodeNotFound, "nothing here has the id %s", name))
	if err != nil {
		return regie.ID{}, err
	}
	return *id, nil
}

// hasPart reports whether a part names an id: its end, or its first eight digits or more.
func hasPart(id regie.ID, part string) bool {
	whole := strings.ReplaceAll(id.String(), "-", "")
	return strings.HasSuffix(whole, part) || len(part) >= shortDigits && strings.HasPrefix(whole, part)
}

// pickOne returns the one of some things that a name found. Those that hold are preferred. It
// returns none where there is nothing, and CodeConflict with all ids where there are several.
func pickOne[T any](found []T, id func(*T) regie.ID, holds func(*T) bool, name string, none error) (*T, error) {
	var ids []string
	var one *T
	for _, wanted := range []bool{true, false} {
		for i := range found {
			if holds == nil || holds(&found[i]) == wanted {
				one, ids = &found[i], append(ids, id(&found[i]).String())
			}
		}
		if len(ids) > 0 {
			break
		}
	}
	switch {
	case len(ids) == 0:
		return nil, none
	case len(ids) == 1, name == "last": // the newest
		return one, nil
	}
	return nil, regie.Errorf(regie.CodeConflict,
		"%s is the end or the beginning of several ids, write more of it: %s", name, strings.Join(ids, " "))
}

// idOrPart reads an id, or a part of one; errors are those of PartOfID.
func idOrPart(name string) (id regie.ID, part string, err error) {
	if id, err = regie.ParseID(name); err == nil {
		return id, "", nil
	}
	part, err = PartOfID(name)
	return regie.ID{}, part, err
}
