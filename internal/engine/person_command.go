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

// runCommand replaces the phase MODEL for a person's command: it becomes the one call of the
// exchange and is treated like any other call from there on. It sends nothing, so a holder that
// dies before storing it leaves nothing behind.
func (r *run) runCommand(ctx context.Context) error {
	if err := r.budget.loadThread(ctx); err != nil {
		return ignoreCut(ctx, err)
	}
	r.budget.loadGuard(*r.budget.known)
	r.resumed = false
	message, calls, err := r.commandCall()
	if err != nil {
		return err
	}
	exchange := r.exchange
	exchange.Money = regie.Money{Reserved: r.exchange.Money.Reserved, Known: true}
	err = r.storeCalls(ctx, message, calls, exchange)
	if regie.CodeOf(err) == regie.CodeStopRequested {
		return r.readStop() // the loop ends the round: nothing was proposed
	}
	return err
}

// commandCall makes the call of the person's command, with the message that owns it: a turn in the
// canonical form, by the person, that no prompt shows. What the model reads is their message, and
// the one that brings the result.
func (r *run) commandCall() (regie.Message, []regie.Call, error) {
	var said *regie.Message
	for i := range r.budget.known.Messages {
		if m := &r.budget.known.Messages[i]; m.RoundID == r.round.ID && m.Sender == regie.SenderUser {
			said = m
			break
		}
	}
	if said == nil {
		return regie.Message{}, nil, regie.Errorf(regie.CodeCorrupt, "the round %s has no command", r.round.ID)
	}
	if err := r.judge.readRules(); err != nil {
		return regie.Message{}, nil, err
	}
	arguments, err := json.Marshal(struct {
		Command string `json:"command"`
		Timeout int    `json:"timeout,omitempty"`
	}{strings.TrimPrefix(said.Text, regie.CommandMark), r.runner.maxCommandTime()})
	if err != nil { // it always encodes
		return regie.Message{}, nil, err
	}
	message := regie.Message{
		ID: regie.NewID(), Sender: regie.SenderAI, Author: said.Author, Exchange: r.exchange.Number,
		TraceID: r.round.TraceID, ExcludeFromPrompt: true,
	}
	call := r.planner.proposeCall(&provider.Call{Name: commandTool, Arguments: string(arguments)},
		proposal{message: message.ID, used: map[string]struct{}{}})
	call.Origin, call.ProviderCallID = regie.OriginAPI, ""
	message.AI = &regie.AIReply{Parts: []regie.Part{{
		Type: regie.PartCall, CallID: call.ID, Tool: call.Tool, Arguments: regie.HashOf([]byte(call.Arguments)),
	}}}
	return message, []regie.Call{call}, nil
}
