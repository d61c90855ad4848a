package main

import (
	"fmt"

	"github.com/spf13/cobra"

	"github.com/regie-run/regie"
	"github.com/regie-run/regie/internal/app"
	"github.com/regie-run/regie/internal/chat"
	"github.com/regie-run/regie/internal/dispatch"
	"github.com/regie-run/regie/internal/store"
)

func decideRequest(approval regie.ID, decisions []regie.Decision) dispatch.DecideRequest {
	return dispatch.DecideRequest{ApprovalID: approval, Request: regie.NewID().String(), Decisions: decisions}
}

func (c *command) answerCommand() *cobra.Command {
	var f decideFlags
	var choice string
	var yes, no bool
	cmd := &cobra.Command{
		Use: "answer ID [TEXT]", Args: usage(cobra.RangeArgs(1, 2)),
		Short: c.text.T("Answer an agent's question, and go on with its run"),
		Long:  c.text.T("Answer a question by the numbers of its options (--choice 1,3), by yes or no, or by a text where it allows one.\n\nWhere no other regie runs, the run goes on here until it ends or waits again, like regie run, with its exit codes."),
		RunE: func(cmd *cobra.Command, args []string) error {
			given := 0
			for _, is := range []bool{len(args) == 2, cmd.Flags().Changed("choice"), yes, no} {
				if is {
					given++
				}
			}
			if given != 1 {
				return regie.Errorf(codeUsage, "give one answer: a text, --choice, --yes or --no")
			}
			return c.resolve(cmd.Context(), f, args[0], func(conn *app.Conn,
				inbox store.Inbox,
			) (store.Resolved, error) {
				if len(inbox.Questions) == 0 {
					return store.Resolved{}, regie.Errorf(codeUsage,
						"%s is an approval: regie approve %s, or regie deny %s", args[0], args[0], args[0])
				}
				q := &inbox.Questions[0]
				reply, err := replyTo(&q.Module, args[1:], choice, yes || no, yes)
				if err != nil {
					return store.Resolved{}, err
				}
				out, err := conn.Answer(cmd.Context(), dispatch.AnswerRequest{
					QuestionID: q.ID,
					Request:    regie.NewID().String(), Reply: reply,
				})
				if err == nil {
					fmt.Fprintln(c.stderr, c.text.T("answered"))
				}
				return out, err
			})
		},
	}
	cmd.Flags().StringVar(&choice, "choice", "", c.text.T("the numbers of the chosen options, such as 1 or 1,3"))
	cmd.Flags().BoolVar(&yes, "yes", false, c.text.T("answer yes"))
	cmd.Flags().BoolVar(&no, "no", false, c.text.T("answer no"))
	c.decideFlags(cmd, &f)
	return cmd
}

// replyTo makes the answer, of the kind that the question asks for.
func replyTo(m *regie.Module, text []string, choice string, yesNo, yes bool) (regie.QuestionReply, error) {
	switch validation := m.Kind == regie.ModuleValidation; {
	case validation && !yesNo:
		return regie.QuestionReply{}, regie.Errorf(codeUsage, "this is a question of yes or no: give --yes or --no")
	case validation:
		return chat.YesNo(yes), nil
	case yesNo:
		if !m.AllowFreeText {
			return regie.QuestionReply{}, regie.Errorf(codeUsage, "this is no question of yes or no: give --choice")
		}
		return regie.QuestionReply{}, regie.Errorf(codeUsage,
			"this is no question of yes or no: give --choice or a text")
	case len(text) == 0:
		return chat.Choose(m, choice)
	case !m.AllowFreeText:
		return regie.QuestionReply{}, regie.Errorf(codeUsage, "this question takes no text: give --choice")
	}
	var reply regie.QuestionReply
	if choice != "" { // the text stands beside what is chosen
		var err error
		if reply, err = chat.Choose(m, choice); err != nil {
			return reply, err
		}
	}
	reply.Text = text[0]
	return reply, nil
}
