package engine

import (
	"context"
	"encoding/json"
	"strings"

	"github.com/regie-run/regie"
	"github.com/regie-run/regie/internal/provider"
)

// commandTool is what runs a person's own command: the very tool that a model proposes, so that
// rules, sandbox, snapshots and undo are the same.
const commandTool = "shell.shell_exec"

// commanded reports whether the present exchange is a person's own command, for which no model is
// asked (spec 10.1).
func (r *run) commanded() bool { return r.exchange.Reason == regie.ExchangeCommand }

// command is phase MODEL where the person has said what to do: their command becomes the one call
// of the exchange, and goes the way of any other call from there on. Nothing is sent to anybody, so
// a holder that died before this was stored leaves nothing behind.
func (r *run) command(ctx context.Context) error {
	if err := r.read(ctx); err != nil {
		return cutIn(ctx, err)
	}
	r.watch(*r.known)
	r.resumed = false
	message, calls, err := r.ownCall()
	if err != nil {
		return err
	}
	exchange := r.exchange
	exchange.Money = regie.Money{Reserved: r.exchange.Money.Reserved, Known: true}
	err = r.proposed(ctx, message, calls, exchange)
	if regie.CodeOf(err) == regie.CodeStopRequested {
		return r.readStop() // the loop ends the round: nothing was proposed
	}
	return err
}

// ownCall makes the call of the person's command, with the message that owns it: a turn in the
// canonical form, by the person, that no prompt shows. What the model reads is their message, and
// the one that brings the result.
func (r *run) ownCall() (regie.Message, []regie.Call, error) {
	var said *regie.Message
	for i := range r.known.Messages {
		if m := &r.known.Messages[i]; m.RoundID == r.round.ID && m.Sender == regie.SenderUser {
			said = m
			break
		}
	}
	if said == nil {
		return regie.Message{}, nil, regie.Errorf(regie.CodeCorrupt, "the round %s has no command", r.round.ID)
	}
	if err := r.readRules(); err != nil {
		return regie.Message{}, nil, err
	}
	arguments, err := json.Marshal(struct {
		Command string `json:"command"`
		Timeout int    `json:"timeout,omitempty"`
	}{strings.TrimPrefix(said.Text, regie.CommandMark), r.longest()})
	if err != nil { // it always encodes
		return regie.Message{}, nil, err
	}
	message := regie.Message{
		ID: regie.NewID(), Sender: regie.SenderAI, Author: said.Author, Exchange: r.exchange.Number,
		TraceID: r.round.TraceID, ExcludeFromPrompt: true,
	}
	call := r.propose(&provider.Call{Name: commandTool, Arguments: string(arguments)},
		proposal{message: message.ID, used: map[string]struct{}{}})
	call.Origin, call.ProviderCallID = regie.OriginAPI, ""
	message.AI = &regie.AIReply{Parts: []regie.Part{{
		Type: regie.PartCall, CallID: call.ID, Tool: call.Tool, Arguments: regie.HashOf([]byte(call.Arguments)),
	}}}
	return message, []regie.Call{call}, nil
}

// longest is the most time in seconds that the tool gives a command, by its own schema: the person
// sits before theirs and can end it, so nothing else should. Zero leaves it to the tool.
func (r *run) longest() int {
	checked := r.tools.Check(commandTool, "{}")
	if checked.Tool == nil {
		return 0
	}
	var schema struct {
		Properties struct {
			Timeout struct {
				Maximum float64 `json:"maximum"`
			} `json:"timeout"`
		} `json:"properties"`
	}
	if json.Unmarshal(checked.Tool.Definition().Parameters, &schema) != nil {
		return 0
	}
	return int(schema.Properties.Timeout.Maximum)
}

// commandDone is what follows a person's command: the end. Whatever came of it, the model reads it
// when the person next says something.
func (r *run) commandDone(calls []regie.Call, v conclusion) closed {
	message, end := r.results(calls, ownCommandNote(r.policy.French)), regie.EndCompleted
	for i := range calls {
		if calls[i].NotRun == regie.NotRunDenied || cancelled(&calls[i]) {
			end = regie.EndDenied
		}
	}
	if v.refused != "" {
		message.System.Type = v.refused
	}
	note := quietly
	if end == regie.EndDenied {
		note = regie.Say("the command was not run")
	}
	return closed{message: message, advance: r.ended(r.round.Counters, end, note)}
}

// ownCommandNote is what the model reads above the result.
func ownCommandNote(french bool) string {
	if french {
		return "La personne a donné elle-même cette commande dans l'espace de travail ; ce n'est pas une demande. Voici ce qui en est sorti :"
	}
	return "The person gave this command in the workspace themselves; it is no request. This is what came of it:"
}
