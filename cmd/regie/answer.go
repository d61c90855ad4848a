package main

import (
	"github.com/spf13/cobra"

	"github.com/regie-run/regie"
	"github.com/regie-run/regie/internal/app"
	"github.com/regie-run/regie/internal/chat"
	"github.com/regie-run/regie/internal/dispatch"
	"github.com/regie-run/regie/internal/store"
)

// newAnswerCommand answers an agent's question.
func newAnswerCommand(env *environment) *cobra.Command {
	var choice string
	var yes, no, noContinue bool
	cmd := &cobra.Command{
		Use: "answer ID [TEXT]", Args: checkArgCount(1, 2),
		Short: env.T("Answer an agent's question and resume its run"),
		Long:  env.T("Answer a question with the numbers of its options (--choice 1,3), with yes or no, or with a text where it allows one.\n\nIf no other regie process runs, the run continues here until it ends or waits again, like regie run, with its exit codes."),
		RunE: func(cmd *cobra.Command, args []string) error {
			given := cmd.Flags().Changed("choice") || yes || no
			if given == (len(args) == 2) {
				return regie.Errorf(codeUsage, "give one answer: a text, --choice, --yes or --no")
			}
			return answerWaiting(cmd.Context(), env, noContinue, args[0], func(conn *app.Conn,
				inbox store.Inbox,
			) (out store.Resolved, err error) {
				if len(inbox.Questions) == 0 {
					return out, regie.Errorf(codeUsage, "%s is an approval: regie approve %s, or regie deny %s",
						args[0], args[0], args[0])
				}
				q := &inbox.Questions[0]
				reply, err := replyTo(&q.Module, args[1:], choice, yes || no, yes)
				if err != nil {
					return out, err
				}
				out, err = conn.Answer(cmd.Context(), dispatch.AnswerRequest{
					QuestionID: q.ID, Request: regie.NewID().String(), Reply: reply,
				})
				if err == nil {
					env.notef("answered")
				}
				return out, err
			})
		},
	}
	cmd.Flags().StringVar(&choice, "choice", "", env.T("the numbers of the chosen options, such as 1 or 1,3"))
	cmd.Flags().BoolVar(&yes, "yes", false, env.T("answer yes"))
	cmd.Flags().BoolVar(&no, "no", false, env.T("answer no"))
	cmd.MarkFlagsMutuallyExclusive("choice", "yes", "no")
	addContinueFlags(env, cmd, &noContinue)
	return cmd
}

// replyTo returns an answer of the kind that the question asks for.
func replyTo(m *regie.Module, text []string, choice string, yesNo, yes bool) (reply regie.QuestionReply, _ error) {
	validation, chosen := m.Kind == regie.ModuleValidation, !yesNo && len(text) == 0
	switch {
	case yesNo && !validation, len(text) > 0 && !m.AllowFreeText, chosen && validation && len(m.Options) == 0:
		return reply, regie.Errorf(codeUsage, "this question takes --yes or --no, --choice or a text: regie approvals show says which")
	case yesNo:
		return chat.YesNo(yes), nil
	case len(text) == 0:
		return chat.Choose(m, choice)
	}
	reply.Text = text[0]
	return reply, nil
}
