package main

import (
	"context"
	"encoding/json"
	"fmt"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/regie-run/regie"
	"github.com/regie-run/regie/internal/app"
	"github.com/regie-run/regie/internal/chat"
	"github.com/regie-run/regie/internal/dispatch"
	"github.com/regie-run/regie/internal/sanitize"
)

type promptFlags struct {
	exchange                  string
	asJSON, bytes, everywhere bool
}

// newPromptCommand shows the prompt of a model call.
func newPromptCommand(env *environment) *cobra.Command {
	root := &cobra.Command{Use: "prompt", Short: env.T("Inspect the prompts of a model")}
	var f promptFlags
	show := &cobra.Command{
		Use: "show [SESSION|last]", Args: checkArgCount(0, 1),
		Short: env.T("Show the next prompt of a session, or a stored one"),
		Long:  env.T("With a session, or last: show the next request to its model as a table of parts with their sizes; --bytes prints the request itself.\n\nWith --exchange: show the exact bytes of a stored model call, rebuilt from the store and compared with the stored hash. An ID is written as its last characters (four or more). If the bytes differ from those that were sent, the command says so and exits with 1."),
		RunE: func(cmd *cobra.Command, args []string) error {
			if (len(args) == 1) == (f.exchange != "") {
				return regie.Errorf(codeUsage, "name a session, or a model call with --exchange")
			}
			return showPrompt(cmd.Context(), env, f, args)
		},
	}
	flags := show.Flags()
	flags.StringVar(&f.exchange, "exchange", "",
		env.T("the model call of an exchange: RUN/NUMBER, or last/NUMBER"))
	flags.BoolVar(&f.bytes, "bytes", false, env.T("print the request, byte for byte"))
	addViewFlags(env, show, &f.everywhere, &f.asJSON)
	show.MarkFlagsMutuallyExclusive("bytes", "json")
	addModelFlags(env, show)
	root.AddCommand(show)
	return root
}

func showPrompt(ctx context.Context, env *environment, f promptFlags, args []string) error {
	in, run, err := f.parseExchange()
	if err != nil {
		return err
	}
	if in.Root, err = env.commandRoot(ctx, f.everywhere); err != nil {
		return err
	}
	env.config.Record = "" // no model call, so no recording
	p, err := readStore(ctx, env, func(conn *app.Conn) (dispatch.Prompt, error) {
		if err := findPrompt(ctx, conn, &in, run, args); err != nil {
			return dispatch.Prompt{}, err
		}
		return conn.Prompt(ctx, in)
	})
	switch {
	case err != nil:
	case f.asJSON:
		err = writeJSON(env.stdout, readablePrompt(p))
	case f.bytes, p.Exchange != 0:
		_, err = env.stdout.Write(p.Body)
	default:
		err = printPrompt(env.newPrinter(), &p)
	}
	switch {
	case err != nil:
		return err
	case !p.Exact():
		return regie.Errorf(regie.CodePromptMismatch,
			"these %d bytes differ from those that were sent: their SHA-256 is %s, the stored one is %s; the thread, the provider's settings or this version have changed", len(p.Body), p.Request, p.Stored)
	case f.asJSON:
	case !p.Cached.IsZero():
		env.notef("%d bytes, SHA-256 %s; they were not sent: the answer came from the response cache", len(p.Body), p.Request)
	case p.Exchange != 0:
		env.notef("%d bytes, SHA-256 %s, as it was stored when they were sent", len(p.Body), p.Request)
	}
	return nil
}

// readablePrompt shows a request as the JSON that it is, or as a text; the very bytes come with
// --bytes.
func readablePrompt(p dispatch.Prompt) any {
	var body any = string(p.Body)
	if json.Valid(p.Body) {
		body = json.RawMessage(p.Body)
	}
	return struct {
		dispatch.Prompt
		Body any `json:"body"`
	}{p, body}
}

// parseExchange parses --exchange: a run, and the number of its exchange.
func (f *promptFlags) parseExchange() (in dispatch.PromptRequest, run string, err error) {
	if f.exchange == "" {
		return in, "", nil
	}
	run, digits, _ := strings.Cut(f.exchange, "/")
	if in.Exchange, err = strconv.Atoi(digits); err != nil || in.Exchange < 1 {
		return in, "", regie.Errorf(codeUsage, "--exchange takes a run and the number of an exchange, such as last/2")
	}
	return in, run, nil
}

// findPrompt completes a request with the named run or session.
func findPrompt(ctx context.Context, conn *app.Conn, in *dispatch.PromptRequest, run string,
	args []string,
) (err error) {
	if run != "" {
		in.RoundID, err = runID(ctx, conn.Client, in.Root, run)
		return err
	}
	found, err := chat.FindSession(ctx, conn.Client, in.Root, args[0])
	in.SessionID = found.ID
	return err
}

// printPrompt prints the parts of a prompt with their sizes.
func printPrompt(out *printer, p *dispatch.Prompt) error {
	t := out.text
	out.printLine("%s %s  %s %s / %s", t.T("session"), p.SessionID, t.T("model"), p.Provider, p.Model)
	out.printLine("\n%9s %9s  %s", t.T("bytes"), t.T("tokens"), t.T("part"))
	for i := range p.Parts {
		part := &p.Parts[i]
		name := part.Kind
		if part.Kind == "message" {
			name = fmt.Sprintf("%d %s", part.Seq, part.Sender)
		}
		if part.Calls > 0 {
			name += fmt.Sprintf(" (%d)", part.Calls)
		}
		if part.Dropped > 0 {
			name += " " + t.T("%d left out", part.Dropped)
		}
		if part.Breakpoint {
			name += " ▪"
		}
		name = strings.TrimSpace(name + " " + part.Chunk)
		out.printLine("%9d %9d  %-28s %s", part.Bytes, part.Tokens, name, oneLine(sanitize.Strip(part.Text), 80))
	}
	out.printLine("%9d %9d  %s\n", len(p.Body), p.Tokens, t.T("total"))
	out.printText("", "▪ end of a part that the provider may cache")
	out.printText("", "tokens are estimated; the budget is %d, the model takes %d", p.Budget, p.Window)
	if p.Over {
		out.printText("", "over the budget: older messages are summarised before it is sent")
	}
	out.printLine("SHA-256 %s", p.Request)
	return out.err
}
