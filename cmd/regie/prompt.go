package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/regie-run/regie"
	"github.com/regie-run/regie/internal/app"
	"github.com/regie-run/regie/internal/chat"
	"github.com/regie-run/regie/internal/dispatch"
	"github.com/regie-run/regie/internal/plain"
	"github.com/regie-run/regie/internal/store"
	"github.com/regie-run/regie/internal/text"
)

type promptFlags struct {
	call, exchange       string
	asJSON, bytes, table bool
	everywhere           bool
}

func (c *command) promptCommand() *cobra.Command {
	root := &cobra.Command{
		Use: "prompt", Short: c.text.T("What a model is sent"), Args: usage(cobra.NoArgs),
		RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	var f promptFlags
	show := &cobra.Command{
		Use: "show [SESSION|last]", Args: usage(cobra.MaximumNArgs(1)),
		Short: c.text.T("What would be sent for a session now, or what was sent in a stored model call"),
		Long:  c.text.T("With a session, or last: what would be sent to its model now, as a table of its parts with their sizes; --bytes prints the request itself.\n\nWith --call or --exchange: the exact bytes of a stored model call, rebuilt from the store and compared with the hash that was stored when it was sent; --table prints its parts. An ID is written as its last characters (four or more). Where the bytes are not those that were sent, that is said and the exit code is 1."),
		RunE:  func(cmd *cobra.Command, args []string) error { return c.showPrompt(cmd.Context(), f, args) },
	}
	flags := show.Flags()
	flags.StringVar(&f.call, "call", "", c.text.T("the model call that proposed this tool call, by its id"))
	flags.StringVar(&f.exchange, "exchange", "",
		c.text.T(
			"the model call of an exchange: RUN/NUMBER, or last/NUMBER; an earlier attempt at it: RUN/NUMBER/ATTEMPT"))
	flags.BoolVar(&f.asJSON, "json", false, c.text.T("print JSON"))
	flags.BoolVar(&f.bytes, "bytes", false, c.text.T("print the request, byte for byte"))
	flags.BoolVar(&f.table, "table", false, c.text.T("print its parts with their sizes"))
	flags.BoolVar(&f.everywhere, "all", false, c.text.T("of every workspace"))
	c.modelFlags(show)
	root.AddCommand(show)
	return root
}

func (c *command) showPrompt(ctx context.Context, f promptFlags, args []string) error {
	named := len(args)
	for _, flag := range []string{f.call, f.exchange} {
		if flag != "" {
			named++
		}
	}
	if named != 1 {
		return regie.Errorf(codeUsage, "name a session, or a model call with --call or --exchange")
	}
	if f.bytes && (f.table || f.asJSON) || f.table && f.asJSON {
		return regie.Errorf(codeUsage, "--bytes, --table and --json exclude each other")
	}
	if _, _, _, err := f.exchangeNamed(); err != nil {
		return err
	}
	root, err := c.scope(ctx, f.everywhere)
	if err != nil {
		return err
	}
	c.config.Record, c.config.RecordRaw = "", "" // nothing is asked, so nothing is recorded
	conn, err := c.connect(ctx, app.Options{ReadOnly: true})
	if err != nil {
		return err
	}
	var p dispatch.Prompt
	in, err := namedPrompt(ctx, conn, root, f, args)
	if err == nil {
		p, err = conn.Prompt(ctx, in)
	}
	if closing := conn.Close(); err == nil {
		err = closing
	}
	if err != nil {
		return err
	}
	switch {
	case f.asJSON:
		err = writeJSON(c.stdout, readable(p))
	case f.bytes, p.Exchange != 0 && !f.table:
		_, err = c.stdout.Write(p.Body)
	default:
		err = promptTable(c.stdout, c.text, &p)
	}
	if err == nil && !p.Exact() {
		return regie.Errorf(regie.CodePromptMismatch,
			"these %d bytes are not what was sent: their SHA-256 is %s, stored is %s; the thread, the provider's settings or this version are no longer as they were", len(p.Body), p.Request, p.Stored)
	}
	if err == nil && !p.Cached.IsZero() && !f.asJSON {
		_, err = fmt.Fprintln(c.stderr, c.text.T(
			"%d bytes, SHA-256 %s; they were not sent: the answer came from the response cache", len(p.Body),
			p.Request))
		return err
	}
	if err == nil && p.Exchange != 0 && !f.asJSON {
		_, err = fmt.Fprintln(c.stderr, c.text.T("%d bytes, SHA-256 %s, as it was stored when they were sent",
			len(p.Body), p.Request))
	}
	return err
}

// readablePrompt is a prompt whose body people and scripts can read; the very bytes come with
// --bytes.
type readablePrompt struct {
	dispatch.Prompt
	Body any `json:"body"`
}

// readable shows a request as the JSON that it is, or as a text.
func readable(p dispatch.Prompt) readablePrompt {
	if json.Valid(p.Body) {
		return readablePrompt{p, json.RawMessage(p.Body)}
	}
	return readablePrompt{p, string(p.Body)}
}

// exchangeNamed reads --exchange: which run, which exchange of it, and which attempt at that, 0 for
// the last.
func (f *promptFlags) exchangeNamed() (run string, number, attempt int, err error) {
	if f.exchange == "" {
		return "", 0, 0, nil
	}
	run, rest, _ := strings.Cut(f.exchange, "/")
	digits, tries, tried := strings.Cut(rest, "/")
	number, err = strconv.Atoi(digits)
	if err == nil && tried {
		attempt, err = strconv.Atoi(tries)
	}
	if err != nil || number < 1 || tried && attempt < 1 {
		err = regie.Errorf(codeUsage, "--exchange takes a run and the number of an exchange, such as last/2")
	}
	return run, number, attempt, err
}

// namedPrompt finds what the command line names in the workspace at root, or in all of them for "".
// Last is the newest run, or, where no exchange is meant, its session.
func namedPrompt(ctx context.Context, conn *app.Conn, root string, f promptFlags,
	args []string,
) (dispatch.PromptRequest, error) {
	in := dispatch.PromptRequest{Root: root}
	var err error
	switch {
	case f.call != "":
		if in.CallID, err = regie.ParseID(f.call); err != nil {
			in.CallPart, err = chat.PartOfID(f.call)
		}
	case f.exchange != "":
		var name string
		if name, in.Exchange, in.Attempt, err = f.exchangeNamed(); err == nil {
			in.RoundID, err = runID(ctx, conn, root, name)
		}
	case args[0] == "last":
		var round regie.Round
		round, err = newestRun(ctx, conn, root)
		in.SessionID = round.SessionID
	default:
		var found store.SessionSummary
		found, err = chat.FindSession(ctx, conn, root, args[0])
		in.SessionID = found.ID
	}
	return in, err
}

// partName is what a part of a prompt is called.
func partName(t *text.Printer, kind string) string {
	switch kind {
	case "level1":
		return t.T("level1")
	case "level2":
		return t.T("level2")
	case "tools":
		return t.T("tools")
	case "fixed":
		return t.T("fixed")
	case "instruction":
		return t.T("instruction")
	case "guidance":
		return t.T("guidance")
	default:
		return kind
	}
}

// promptTable prints the parts of a prompt with their sizes.
func promptTable(w io.Writer, t *text.Printer, p *dispatch.Prompt) error {
	out := &printer{w: w}
	out.line("%s %s  %s %s / %s", t.T("session"), p.SessionID, t.T("model"), p.Provider, p.Model)
	if !p.Cached.IsZero() {
		out.line("%s", t.T("this was not sent: the answer came from the response cache"))
	}
	if p.Exchange != 0 {
		purpose := ""
		if p.Purpose != "" {
			purpose = "  " + string(p.Purpose)
		}
		if p.Attempt != 0 {
			purpose += "  " + t.T("attempt") + " " + strconv.Itoa(p.Attempt)
		}
		out.line("%s %s  %s %d%s", t.T("run"), p.RoundID, t.T("exchange"), p.Exchange, purpose)
	}
	out.line("")
	out.line("%9s %9s  %s", t.T("bytes"), t.T("tokens"), t.T("part"))
	marked := false
	for i := range p.Parts {
		part := &p.Parts[i]
		name := partName(t, part.Kind)
		if part.Kind == "message" {
			name = fmt.Sprintf("%d %s", part.Seq, part.Sender)
		}
		if part.Chunk != "" {
			name += " " + part.Chunk
		}
		if part.Calls > 0 {
			name += fmt.Sprintf(" (%d)", part.Calls)
		}
		if part.Dropped > 0 {
			name += " " + t.T("%d left out", part.Dropped)
		}
		if part.Breakpoint {
			name, marked = name+" ▪", true
		}
		out.line("%9d %9d  %-28s %s", part.Bytes, part.Tokens, name, oneLine(plain.Strip(part.Text), 80))
	}
	out.line("%9d %9d  %s", len(p.Body), p.Tokens, t.T("total"))
	out.line("")
	if marked {
		out.line("%s", t.T("▪ the end of what the provider is told that it may cache"))
	}
	counted := t.T("tokens are estimated")
	if p.Counted {
		counted = t.T("the total of tokens is what the provider counted")
	}
	out.line("%s; %s", counted, t.T("the budget is %d", p.Budget))
	if p.Window > 0 {
		out.line("%s", t.T("the model takes %d tokens", p.Window))
	}
	if p.Over {
		out.line("%s", t.T("over the budget: older messages are summarised before it is sent"))
	}
	out.line("SHA-256 %s", p.Request)
	return out.err
}
