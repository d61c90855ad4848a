package files

import (
	"context"
	"encoding/json"
	"slices"
	"strings"

	"github.com/regie-run/regie"
	"github.com/regie-run/regie/internal/tool"
	"github.com/regie-run/regie/internal/workspace"
)

// mustAskChange returns why a change needs a person's approval regardless of the rules (spec 8.2,
// decision 19): the file may hold a secret, it is an ignore file, or one names it, which makes it
// read-only by default.
func (k *toolkit) mustAskChange(_ context.Context, inv *tool.Invocation, w wish) []regie.Sentence {
	root, err := openWorkspace(inv)
	if err != nil {
		return nil
	}
	defer root.Close()
	place, err := root.Place(w.path)
	switch {
	case err != nil: // the call fails by itself
		return nil
	case place.Secret:
		return []regie.Sentence{regie.Say("%s may contain a secret: a person decides each time", place.Path)}
	case workspace.IsIgnoreFile(place.Path):
		return []regie.Sentence{regie.Say("%s says which files are left out: a person decides each time", place.Path)}
	case root.Ignored(place.Path):
		return []regie.Sentence{regie.Say("%s is in an ignore file: changing it needs an approval",
			place.Path)}
	}
	return nil
}

// mustAskRead says why a person has to be asked about a read.
func (k *toolkit) mustAskRead(_ context.Context, inv *tool.Invocation, args readArgs) []regie.Sentence {
	root, err := openWorkspace(inv)
	if err != nil {
		return nil
	}
	defer root.Close()
	if place, err := root.Place(args.Path); err == nil && place.Secret {
		return []regie.Sentence{regie.Say("%s may contain a secret: a person decides each time", place.Path)}
	}
	return nil
}

// checkAllowed refuses a change that needs a person's word and has none for this very file. The
// engine has asked before it comes to this; what is caught here is a path that led elsewhere then.
func (k *toolkit) checkAllowed(root *workspace.Root, inv *tool.Invocation, before *workspace.Content) error {
	why := "may hold a secret"
	switch {
	case before.Secret:
	case workspace.IsIgnoreFile(before.Path):
		why = "is an ignore file"
	case root.Ignored(before.Path):
		why = "is named by the ignore files"
	default:
		return nil
	}
	if slices.ContainsFunc(inv.Preconditions, func(p regie.Precondition) bool {
		return p.Kind == regie.PreconditionFile && p.Name == before.Path
	}) {
		return nil
	}
	return parameterError("path", regie.Errorf(regie.CodePathProtected,
		"%s %s: it is not changed without a person's word for this very file", before.Path, why))
}

// grantedPath returns the one path, without links, that a person has allowed the call to read
// although it may hold a secret.
func grantedPath(inv *tool.Invocation) string {
	for _, p := range inv.Preconditions {
		if p.Kind == regie.PreconditionPlace {
			return p.Name
		}
	}
	return ""
}

// checkSeen compares a file that is about to be edited, replaced or deleted with what the model has
// seen of it, or made of it, last. What it has seen is in the store: the results of its reads and
// the intents of its changes; so a restart changes nothing. A file that is not what the model knows
// is CodeFileChanged, which is also why an edit does not find its text; any other failure of the
// call so far is returned as it is. unread says that the model has seen nothing of the file in this
// session.
func (k *toolkit) checkSeen(ctx context.Context, inv *tool.Invocation, root *workspace.Root, w wish,
	before *workspace.Content, failure error,
) (unread bool, err error) {
	if code := regie.CodeOf(failure); code != "" && code != regie.CodeTextNotFound && code != regie.CodeTextAmbiguous {
		return false, failure
	}
	if inv.Earlier == nil || !before.Exists || w.mode == modeCreate || w.mode == modeAppend {
		return false, failure
	}
	if _, changes := inv.Assumes(regie.PreconditionFile, before.Path); changes {
		return false, failure
	}
	unread = true
	var stale error
	places := map[string]string{}
	err = inv.Earlier(ctx, func(call regie.Call) bool {
		var args readArgs
		arguments := []byte(call.Arguments)
		if len(call.Executed) > 0 {
			arguments = call.Executed
		}
		if json.Unmarshal(arguments, &args) != nil || k.placeOf(root, places, args.Path) != before.Path {
			return ctx.Err() == nil
		}
		switch _, operation, _ := strings.Cut(call.Tool, "."); operation {
		case "read_file":
			unread = false
			if call.State == regie.CallSucceeded && !k.looksTheSame(&call, args, before) {
				stale = changedSinceRead(before.Path, "it was read")
			}
			return false
		case "write_file", "edit_file", "delete_file":
			unread = false
			var made intent
			if len(call.Intent) == 0 || json.Unmarshal(call.Intent, &made) != nil { // a copy in a fork
				return false
			}
			now := before.Identity()
			if now != made.After && (call.State == regie.CallSucceeded || now != made.Before) {
				stale = changedSinceRead(before.Path, "you changed it")
			}
			return false
		}
		return ctx.Err() == nil
	})
	if err == nil {
		err = stale
	}
	if err == nil {
		err = failure
	}
	return unread, err
}

func changedSinceRead(name, what string) error {
	return tool.Advice{
		Err: regie.Errorf(regie.CodeFileChanged, "%s is not what it was when %s: somebody else has changed it since",
			name, what),
		Param: "path", Hint: "read it again, then change what is there now",
	}
}

// placeOf returns where a path of an earlier call leads now.
func (k *toolkit) placeOf(root *workspace.Root, known map[string]string, name string) string {
	if found, ok := known[name]; ok {
		return found
	}
	place, err := root.Place(name)
	if err != nil {
		place.Path = ""
	}
	known[name] = place.Path
	return place.Path
}

// looksTheSame reports whether a read would show the same lines now as then.
func (k *toolkit) looksTheSame(call *regie.Call, args readArgs, before *workspace.Content) bool {
	now, err := k.showFile(args, strings.NewReader(string(before.Data)), int64(len(before.Data)))
	return err == nil && shownLines(now.Content) == shownLines(call.Result)
}

// shownLines returns the part of a result of read_file that shows lines; of one that shows none,
// all of it.
func shownLines(result string) string {
	end := 0
	for end < len(result) && numberedAt(result[end:]) {
		next := strings.IndexByte(result[end:], '\n')
		if next < 0 {
			return result
		}
		end += next + 1
	}
	if end == 0 {
		return result
	}
	return result[:end]
}

// numberedAt reports whether a line begins with its number.
func numberedAt(text string) bool {
	digits := strings.TrimLeft(text, " ")
	rest := strings.TrimLeft(digits, "0123456789")
	return len(rest) < len(digits) && strings.HasPrefix(rest, "\t")
}
