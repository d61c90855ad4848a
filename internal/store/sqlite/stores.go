package sqlite

import "github.com/regie-run/regie"

// The statements of a transition are methods of types by noun, on its one transaction. A method
// calls one of another noun through the transaction: t.slots.putSlot.
type (
	sessionTx struct{ *tx } // sessions, their chains, forks and removal
	roundTx   struct{ *tx } // rounds, exchanges, calls and the messages of a round
	pendingTx struct{ *tx } // messages that wait for their turn
	waitTx    struct{ *tx } // waits, approvals, questions and rules
	slotTx    struct{ *tx } // slots, the queue and leases
	moneyTx   struct{ *tx } // reservations, spending, the response cache and proxied calls
	undoTx    struct{ *tx }
	tokenTx   struct{ *tx }
	// automations, their versions and fires
	automationTx struct{ *tx }
)

// The transitions and reads of a store are methods of types by noun too; Store embeds them all.
type (
	sessionStore  struct{ *core } // sessions, workspaces, their lists and exports
	roundStore    struct{ *core } // rounds, their exchanges, calls, messages and leases
	approvalStore struct{ *core } // approvals, questions, rules and deadlines
	slotStore     struct{ *core } // slots, the queue and presence
	tokenStore    struct{ *core } // tokens, idempotency keys and settings
	undoStore     struct{ *core }
	moneyStore    struct{ *core } // reservations, spending, the response cache and proxied calls
	auditStore    struct{ *core } // verify
	agentStore    struct{ *core } // agents and their versions
	statStore     struct{ *core } // roll-ups of rounds
	// automations, their versions and fires
	automationStore struct{ *core }
	outboxStore     struct{ *core } // notifications
)

func newStore(c *core) *Store {
	return &Store{
		core: c, sessionStore: sessionStore{c}, roundStore: roundStore{c}, approvalStore: approvalStore{c},
		slotStore: slotStore{c}, tokenStore: tokenStore{c}, undoStore: undoStore{c},
		moneyStore: moneyStore{c}, auditStore: auditStore{c}, agentStore: agentStore{c}, statStore: statStore{c},
		automationStore: automationStore{c},
		outboxStore:     outboxStore{c},
	}
}

// newTx makes the writer's end of a group of transitions, or of one on another database.
func newTx(w *writer, other Statements) *tx {
	t := &tx{w: w, other: other, heads: map[int64]head{}, notices: map[regie.ID][]regie.Event{}}
	t.sessions, t.rounds, t.pending, t.waits = sessionTx{t}, roundTx{t}, pendingTx{t}, waitTx{t}
	t.slots, t.money, t.undos, t.tokens = slotTx{t}, moneyTx{t}, undoTx{t}, tokenTx{t}
	t.automations = automationTx{t}
	return t
}
