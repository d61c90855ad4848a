package acp

import (
	"cmp"
	"context"
	"encoding/base64"
	"encoding/json"
	"net/url"
	"path"
	"path/filepath"
	"strings"

	sdk "github.com/coder/acp-go-sdk"

	"github.com/regie-run/regie"
	"github.com/regie-run/regie/internal/dispatch"
	"github.com/regie-run/regie/internal/sanitize"
	"github.com/regie-run/regie/internal/store"
)

// maxShown limits the shown part of a call's result, in bytes.
const maxShown = 32 << 10

// promptSegments converts a prompt: texts, images, and linked files of the workspace as enrichments
// (spec 7.3). It returns CodeBadRequest for content that the agent does not support.
func (a *agent) promptSegments(ctx context.Context, s *session, blocks []sdk.ContentBlock) ([]regie.Segment, error) {
	var out []regie.Segment
	say := func(text string) {
		if n := len(out); n > 0 && out[n-1].Text != "" {
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
			file, ok := s.workspacePath(b.ResourceLink.Uri)
			block, there := regie.EnrichmentBlock{}, false
			if ok {
				block, there = look(file)
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
		case b.Image != nil:
			attached, err := a.uploadImage(ctx, b.Image)
			if err != nil {
				return nil, err
			}
			out = append(out, regie.Segment{Attachment: &attached})
		default:
			return nil, regie.Errorf(regie.CodeBadRequest,
				"sound and other files cannot be sent: put the file into the workspace and name it")
		}
	}
	return out, nil
}

// uploadImage uploads an image of the editor.
func (a *agent) uploadImage(ctx context.Context, image *sdk.ContentBlockImage) (regie.Attachment, error) {
	data, err := base64.StdEncoding.DecodeString(image.Data)
	if err != nil {
		return regie.Attachment{}, regie.Errorf(regie.CodeBadRequest, "the image is not in base64: %v", err)
	}
	name := ""
	if image.Uri != nil {
		name = path.Base(*image.Uri)
	}
	return a.Control.Attachments.Add(ctx, dispatch.Upload{Name: name, Data: data})
}

// workspacePath returns the path in the workspace that an address names.
func (s *session) workspacePath(address string) (string, bool) {
	u, err := url.Parse(address)
	if err != nil || u.Scheme != "file" || u.Host != "" && u.Host != "localhost" {
		return "", false
	}
	rel, err := filepath.Rel(s.request.Root, u.Path)
	return filepath.ToSlash(rel), err == nil && filepath.IsLocal(rel)
}

// isSilent returns the tools that are shown in another way: as a plan, a question, an answer.
func isSilent(tool string) bool {
	return tool == "session.update_plan" || tool == "session.ask_user" || tool == "session.complete"
}

// kinds are what an editor shows calls as.
var kinds = map[string]sdk.ToolKind{
	"files.read_file": sdk.ToolKindRead, "files.list_files": sdk.ToolKindRead, "skills.read_skill": sdk.ToolKindRead,
	"session.read_result": sdk.ToolKindRead, "files.search_text": sdk.ToolKindSearch,
	"files.search_semantic": sdk.ToolKindSearch, "files.write_file": sdk.ToolKindEdit,
	"files.edit_file": sdk.ToolKindEdit, "files.delete_file": sdk.ToolKindDelete,
	"shell.shell_exec": sdk.ToolKindExecute,
}

// arguments are the arguments that name the subject of a call.
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
}

// drawCall shows a call by its arguments.
func (s *session) drawCall(tool, written string) drawn {
	var args arguments
	_ = json.Unmarshal([]byte(written), &args) // a model's: what does not fit is shown without
	d := drawn{kind: cmp.Or(kinds[tool], sdk.ToolKindOther)}
	about := cmp.Or(args.Path, args.Query, args.Command, written)
	d.title = sanitize.Line(strings.TrimSpace(tool + " " + truncateText(about, 200)))
	if args.Path == "" || !filepath.IsLocal(args.Path) || !strings.HasPrefix(tool, "files.") {
		return d
	}
	at := sanitize.Strip(filepath.Join(s.request.Root, filepath.FromSlash(args.Path)))
	d.locations = []sdk.ToolCallLocation{{Path: at}}
	switch {
	case tool == "files.write_file" && (args.Mode == "" || args.Mode == "create"):
		shown := sanitize.Visible(truncateText(args.Content, regie.MaxDiff))
		d.content = append(d.content, sdk.ToolDiffContent(at, shown))
	case tool == "files.edit_file":
		for _, e := range args.Edits {
			d.content = append(d.content, sdk.ToolDiffContent(at, sanitize.Visible(truncateText(e.New, maxShown)),
				sanitize.Visible(truncateText(e.Old, maxShown))))
		}
	}
	return d
}

// startUpdate returns the first update of a call for the editor, with the result if the call is
// settled.
func (s *session) startUpdate(c *regie.Call) sdk.SessionUpdate {
	d := s.drawCall(c.Tool, c.Arguments)
	if c.State.Settled() {
		d.content = append(d.content, sdk.ToolContent(sdk.TextBlock(resultOf(c))))
	}
	return sdk.StartToolCall(sdk.ToolCallId(c.ID.String()), d.title, sdk.WithStartKind(d.kind),
		sdk.WithStartStatus(settledAs(c.State, store.ExitCode(c))), sdk.WithStartLocations(d.locations),
		sdk.WithStartContent(d.content))
}

// settledAs returns what an editor shows the end of a call as; exit is that of a command that
// failed.
func settledAs(state regie.CallState, exit string) sdk.ToolCallStatus {
	switch {
	case exit != "", state == regie.CallFailed, state == regie.CallUnknown, state == regie.CallNotRun:
		return sdk.ToolCallStatusFailed
	case state == regie.CallSucceeded:
		return sdk.ToolCallStatusCompleted
	case state == regie.CallStarted:
		return sdk.ToolCallStatusInProgress
	}
	return sdk.ToolCallStatusPending
}

// resultOf returns a call's result for people.
func resultOf(c *regie.Call) string {
	result := cmp.Or(c.Result, string(c.NotRun))
	if c.Error != nil {
		result = string(c.Error.Code) + ": " + c.Error.Message
	}
	return sanitize.Strip(truncateText(result, maxShown))
}
