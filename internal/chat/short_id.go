package chat

import (
	"bytes"
	"context"
	"slices"
	"strings"

	"github.com/regie-run/regie"
	"github.com/regie-run/regie/internal/store"
)

const (
	shortDigits = 8 // what Short shows
	minDigits   = 4 // what is taken as a part of an id
)

// Short is the form of an id that people type: its last eight characters. Those at the beginning
// are its time, alike for hours.
func Short(id regie.ID) string {
	s := id.String()
	return s[max(0, len(s)-shortDigits):]
}

// PartOfID returns the digits of a part of an id as people write it, or CodeBadID.
func PartOfID(name string) (string, error) {
	part := strings.ToLower(strings.ReplaceAll(name, "-", ""))
	if strings.Trim(part, "0123456789abcdef") != "" || len(part) < minDigits || len(part) > 32 {
		return "", regie.Errorf(regie.CodeBadID,
			"%q is not an id: write its last %d characters as they are shown, or last", name, shortDigits)
	}
	return part, nil
}

// hasPart reports whether a part names an id: its end, or its first eight digits or more.
func hasPart(id regie.ID, part string) bool {
	whole := strings.ReplaceAll(id.String(), "-", "")
	return strings.HasSuffix(whole, part) || len(part) >= shortDigits && strings.HasPrefix(whole, part)
}

// PickID returns the one id that a person names among some: by all of it, by its last four or more
// characters, or by its first eight or more. It returns CodeBadID for what cannot be an id,
// CodeNotFound, and CodeConflict with all of them where there are several.
func PickID(known []regie.ID, name string) (regie.ID, error) {
	part, err := PartOfID(name)
	if err != nil {
		return regie.ID{}, err
	}
	found := slices.DeleteFunc(slices.Clone(known), func(id regie.ID) bool { return !hasPart(id, part) })
	none := regie.Errorf(regie.CodeNotFound, "nothing here has the id %s", name)
	return pickOne(found, func(id *regie.ID) regie.ID { return *id }, name, none)
}

// pickOne returns the one of some things that a name found, of several the last one where that is
// wanted. It returns none where there is nothing, and CodeConflict with all ids where there are
// several.
func pickOne[T any](found []T, idOf func(*T) regie.ID, name string, none error) (one T, err error) {
	switch {
	case len(found) == 0:
		return one, none
	case len(found) == 1, name == "last":
		return found[len(found)-1], nil
	}
	var ids []string
	for i := range found {
		ids = append(ids, idOf(&found[i]).String())
	}
	return one, regie.Errorf(regie.CodeConflict,
		"%s matches several ids, write more of it: %s", name, strings.Join(ids, " "))
}

// findOne calls list with the id, or the part of one, that a person names, and returns the only
// match. "last" passes neither.
func findOne[T any](name string, none error, idOf func(*T) regie.ID,
	list func(id regie.ID, part string) ([]T, error),
) (one T, err error) {
	id, part, err := idOrPart(name)
	if err != nil && name != "last" {
		return one, err
	}
	found, err := list(id, part)
	if err != nil {
		return one, err
	}
	return pickOne(found, idOf, name, none)
}

// idOrPart reads an id, or a part of one; errors are those of PartOfID.
func idOrPart(name string) (id regie.ID, part string, err error) {
	if id, err = regie.ParseID(name); err == nil {
		return id, "", nil
	}
	part, err = PartOfID(name)
	return regie.ID{}, part, err
}

// Find returns the one approval or question that a person names: by its id, by the last four or
// more characters of it, by its first eight or more, or as "last", the newest that is open in the
// workspace at root. It returns CodeBadID for what cannot be an id, CodeNotFound, and CodeConflict
// with all of them where there are several.
func Find(ctx context.Context, control Control, root, name string) (store.Inbox, error) {
	none := regie.Errorf(regie.CodeNotFound, "no approval or question has the id %s: see regie approvals --all", name)
	if name == "last" {
		none = regie.Errorf(regie.CodeNotFound, "nothing waits for an answer in this workspace: see regie approvals --all")
	} else {
		root = ""
	}
	self := func(id *regie.ID) regie.ID { return *id }
	id, err := findOne(name, none, self, func(id regie.ID, part string) ([]regie.ID, error) {
		inbox, err := control.Inbox(ctx, store.InboxFilter{Root: root, ID: id, Short: part, Brief: true})
		var ids []regie.ID
		for i := range inbox.Approvals {
			ids = append(ids, inbox.Approvals[i].ID)
		}
		for i := range inbox.Questions {
			ids = append(ids, inbox.Questions[i].ID)
		}
		slices.SortFunc(ids, func(a, b regie.ID) int { return bytes.Compare(a[:], b[:]) }) // by their time
		return ids, err
	})
	if err != nil {
		return store.Inbox{}, err
	}
	return control.Inbox(ctx, store.InboxFilter{ID: id})
}

func countWaiting(inbox store.Inbox) int { return len(inbox.Approvals) + len(inbox.Questions) }
