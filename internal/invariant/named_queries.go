package invariant

import (
	"context"

	"github.com/regie-run/regie"
)

// checkNamed asserts that the references in people's messages are read once each (decision 46).
// Queries without a provider's id read them, and the result follows the message before the round's
// next reply. A round that is stopped earlier leaves them unread.
func (c *check) checkNamed(ctx context.Context) {
	thread, err := c.Store.Thread(ctx, c.Session, 0)
	if err != nil {
		c.Fail("the thread cannot be read: %v", err)
		return
	}
	unread, read := map[regie.ID]*regie.Message{}, map[regie.ID]bool{}
	for i := range thread.Messages {
		m := &thread.Messages[i]
		switch {
		case m.AI != nil:
			for _, waits := range unread {
				if waits.RoundID == m.RoundID {
					c.Fail("the reply at %d came before what the message at %d names was read (decision 46)", m.Seq,
						waits.Seq)
				}
			}
		case m.Sender == regie.SenderUser && len(m.Enrichments()) > 0:
			unread[m.ID] = m
		case m.Enriching():
			named := unread[m.System.Enriches]
			if named == nil {
				c.Fail(
					"the message at %d brings what no message before it names, or names no longer: it was read %v (decision 46)", m.Seq, read[m.System.Enriches])
				continue
			}
			delete(unread, named.ID)
			read[named.ID] = true
			c.checkQueries(m, named, thread.Calls[m.ID])
		}
	}
}

// checkQueries checks the calls of a message's enrichments.
func (c *check) checkQueries(m, named *regie.Message, calls []regie.Call) {
	if len(calls) != len(named.Enrichments()) || len(calls) != len(m.System.CallIDs) ||
		m.RoundID != named.RoundID || m.Exchange != 0 {
		c.Fail("the message at %d names %d things, the one at %d brings %d (decision 46)", named.Seq,
			len(named.Enrichments()), m.Seq, len(calls))
	}
	for i := range calls {
		call := &calls[i]
		c.saw("named " + string(call.State))
		if call.Origin != regie.OriginUser || call.ProviderCallID != "" || call.Kind != regie.KindQuery ||
			!call.State.Settled() || call.State == regie.CallUnknown {
			c.Fail("the query %s of a person is %s, %s, %s with the provider's id %q (decision 46)", call.ID,
				call.Origin, call.Kind, call.State, call.ProviderCallID)
		}
	}
}
