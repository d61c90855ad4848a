package acp

import (
	"encoding/json"
	"net/url"
	"path/filepath"
	"strings"

	sdk "github.com/coder/acp-go-sdk"

	"github.com/regie-run/regie"
	"github.com/regie-run/regie/internal/plain"
)

// maxShown bounds what is shown of a call's result, in bytes.
const maxShown = 32 << 10

// segments are what a prompt says: texts, and files of the workspace that it links as enrichments
// (spec 7.3). It returns CodeBadRequest for what the agent has not said it takes.
func (a *agent) segments(s *session, blocks []sdk.ContentBlock) ([]regie.Segment, error) {
	var out []regie.Segment
	say := func(text string) {
		if n := len(out); n > 0 && out[n-1].Enrichment == nil {
			out[n-1].Text += text
		} else if text != "" {
			out = append(out, regie.Segment{Text: text})
		}
	}
	look, seen := a.Look(s.request.Root), map[string]bool{}
	for i := range blocks {
		switch b := &blocks[i]; {
		case b.Text != nil:
			say(b.Text.Text)
		case b.ResourceLink != nil:
			path, ok := s.within(b.ResourceLink.Uri)
			block, there := regie.EnrichmentBlock{}, false
			if ok {
				block, there = look(path)
			}
			switch {
			case there && !seen[block.Path]:
				seen[block.Path] = true
				out = append(out, regie.Segment{Enrichment: &block})
			case there:
				say(block.Label())
			default:
				say(b.ResourceLink.Name + " (" + b.ResourceLink.Uri + ")")
			}
		case b.Resource != nil && b.Resource.Resource.TextResourceContents != nil:
			embedded := b.Resource.Resource.TextResourceContents
			say("\n" + embedded.Uri + ":\n```\n" + embedded.Text + "\n```\n")
		default:
			return nil, regie.Errorf(regie.CodeBadRequest,
				"attachments cannot be sent yet: put the file into the workspace and name it")
		}
	}
	return out, nil
}

// within is the path in the workspace that an address names.
func (s *session) within(address string) (string, bool) {
	u, err := url.Parse(address)
	if err != nil || u.Scheme != "file" || u.Host != "" && u.Host != "localhost" {
		return "", false
	}
	for _, base := range []string{s.request.Root, s.dir} {
		if rel, err := filepath.Rel(base, u.Path); err == nil && filepath.IsLocal(rel) {
			if base == s.dir && base != s.request.Root { // which may be a name through a link, or below the root
				if resolved, err := filepath.EvalSymlinks(u.Path); err == nil {
					if rel, err = filepath.Rel(s.request.Root, resolved); err != nil || !filepath.IsLocal(rel) {
						return "", false
					}
				}
			}
			return filepath.ToSlash(rel), true
		}
	}
	return "", false
}

// silent are the tools that are shown in another way: as a plan, a question, an answer.
func silent(tool string) bool {
	return tool == "session.update_plan" || tool == "session.ask_user" || tool == "session.complete"
}

// kindOf is what an editor shows a call as.
func kindOf(tool string) sdk.ToolKind {
	switch tool {
	case "files.read_file", "files.list_files", "session.read_result", "skills.read_skill":
		return sdk.ToolKindRead
	case "files.search_text", "files.search_semantic":
		return sdk.ToolKindSearch
	case "files.write_file", "files.edit_file":
		return sdk.ToolKindEdit
	case "files.delete_file":
		return sdk.ToolKindDelete
	case "shell.shell_exec":
		return sdk.ToolKindExecute
	default:
		return sdk.ToolKindOther
	}
}

// known are the arguments that say what a call is about.
type arguments struct {
	Path    string `json:"path"`
	Query   string `json:"query"`
	Command string `json:"command"`
	Content string `json:"content"`
	Mode    string `json:"mode"`
	Edits   []struct {
		Old string `json:"old"`
		New string `json:"new"`
	} `json:"edits"`
}

// drawn is a call as an editor shows it.
type drawn struct {
	title     string
	kind      sdk.ToolKind
	locations []sdk.ToolCallLocation
	content   []sdk.ToolCallContent
	input     any
}

// draw shows a call by its arguments.
func (s *session) draw(tool, written string) drawn {
	var args arguments
	_ = json.Unmarshal([]byte(written), &args) // a model's: what does not fit is shown without
	d := drawn{kind: kindOf(tool), title: plain.Line(tool)}
	for _, about := range []string{args.Path, args.Query, args.Command} {
		if about != "" {
			d.title += " " + plain.Line(clip(about, 200))
			break
		}
	}
	var input any
	if json.Unmarshal([]byte(written), &input) == nil {
		d.input = harmless(input)
	}
	if args.Path == "" || !filepath.IsLocal(args.Path) || !strings.HasPrefix(tool, "files.") {
		return d
	}
	at := plain.Strip(filepath.Join(s.request.Root, filepath.FromSlash(args.Path)))
	d.locations = []sdk.ToolCallLocation{{Path: at}}
	switch {
	case tool == "files.write_file" && (args.Mode == "" || args.Mode == "create"):
		d.content = append(d.content, sdk.ToolDiffContent(at, plain.Visible(clip(args.Content, regie.MaxDiff))))
	case tool == "files.edit_file":
		for _, e := range args.Edits {
			d.content = append(d.content, sdk.ToolDiffContent(at, plain.Visible(clip(e.New, maxShown)),
				plain.Visible(clip(e.Old, maxShown))))
		}
	}
	return d
}

// harmless is a value of JSON whose texts do nothing to who shows them.
func harmless(value any) any {
	switch v := value.(type) {
	case string:
		return plain.Visible(clip(v, maxShown))
	case []any:
		for i := range v {
			v[i] = harmless(v[i])
		}
	case map[string]any:
		out := make(map[string]any, len(v))
		for name, member := range v {
			out[plain.Line(name)] = harmless(member)
		}
		return out
	}
	return value
}

// hunks are a unified diff as an editor shows it: each hunk with what it replaces. What is no diff
// is a text.
func hunks(at, diff string) []sdk.ToolCallContent {
	if diff == "" {
		return nil
	}
	diff = plain.Visible(diff)
	var out []sdk.ToolCallContent
	var before, after strings.Builder
	within := false
	flush := func() {
		if within {
			if before.Len() == 0 {
				out = append(out, sdk.ToolDiffContent(at, after.String()))
			} else {
				out = append(out, sdk.ToolDiffContent(at, after.String(), before.String()))
			}
		}
		before.Reset()
		after.Reset()
	}
	for line := range strings.Lines(diff) {
		switch {
		case strings.HasPrefix(line, "@@"):
			flush()
			within = true
		case !within && (strings.HasPrefix(line, "--- ") || strings.HasPrefix(line, "+++ ")):
		case within && strings.HasPrefix(line, "+"):
			after.WriteString(line[1:])
		case within && strings.HasPrefix(line, "-"):
			before.WriteString(line[1:])
		case within && strings.HasPrefix(line, " "):
			before.WriteString(line[1:])
			after.WriteString(line[1:])
		case within && strings.HasPrefix(line, `\`): // no newline at the end of the file
		default: // shortened, or no diff at all: the text as it is
			return []sdk.ToolCallContent{sdk.ToolContent(sdk.TextBlock("```diff\n" + diff + "\n```"))}
		}
	}
	flush()
	return out
}

// settledAs is what an editor shows the end of a call as.
func settledAs(state regie.CallState, exit string) sdk.ToolCallStatus {
	if exit != "" { // a command that failed
		return sdk.ToolCallStatusFailed
	}
	switch state {
	case regie.CallSucceeded:
		return sdk.ToolCallStatusCompleted
	case regie.CallFailed, regie.CallUnknown, regie.CallNotRun:
		return sdk.ToolCallStatusFailed
	case regie.CallStarted:
		return sdk.ToolCallStatusInProgress
	default:
		return sdk.ToolCallStatusPending
	}
}

// resultOf is what a call brought, for people.
func resultOf(c *regie.Call) string {
	switch {
	case c.Error != nil:
		return plain.Strip(clip(string(c.Error.Code)+": "+c.Error.Message, maxShown))
	case c.NotRun != "":
		return string(c.NotRun)
	default:
		return plain.Strip(clip(c.Result, maxShown))
	}
}
