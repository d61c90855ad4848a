package httpapi

import (
	"context"
	"net/http"
	"slices"

	"github.com/regie-run/regie"
	"github.com/regie-run/regie/internal/config"
	"github.com/regie-run/regie/internal/dispatch"
	"github.com/regie-run/regie/internal/store"
)

// operations are the whole interface below base, in the order of its document (spec 10.2). What
// belongs to features that are not there yet comes with them.
func (s *server) operations() []operation {
	all := slices.Concat(s.sessionOperations(), s.messageOperations(), s.roundOperations(), s.approvalOperations(),
		s.undoOperations(), s.placeOperations(), agentOperations(s), providerOperations(s),
		attachmentOperations(s), automationOperations(s), s.keepingOperations(),
		s.settingOperations(), s.identityOperations())
	if s.Trusted { // on the engine's private socket alone
		all = append(all, postBody(s, "/client-providers", "add_client_provider",
			"Hand over a provider with its key for runs of this client",
			func(ctx context.Context, in config.ClientProvider) (none, error) {
				return none{}, s.Service.Rounds.AddProvider(ctx, in)
			}))
	}
	for i := range all {
		all[i].scope = scopeOf(all[i].id)
	}
	return all
}

// withoutInput makes a handler of a function without input.
func withoutInput[A any](ask func(context.Context) (A, error)) func(context.Context, *request[none, none]) (A, error) {
	return func(ctx context.Context, _ *request[none, none]) (A, error) { return ask(ctx) }
}

// getByID makes an operation about the one thing that its address names.
func getByID[A any](s *server, method, path, id, summary string,
	ask func(context.Context, regie.ID) (A, error),
) operation {
	return newOperation(s, method, path, id, summary, http.StatusOK,
		func(ctx context.Context, in *request[none, none]) (A,
			error,
		) {
			return ask(ctx, in.ID)
		})
}

// actionByID makes an operation that says a word to the one thing that its address names.
func actionByID(s *server, path, id, summary string, say func(context.Context, regie.ID) error) operation {
	return getByID(s, http.MethodPost, path, id, summary, withoutAnswer(say))
}

// withoutAnswer makes a function of one that answers nothing.
func withoutAnswer[B any](do func(context.Context, B) error) func(context.Context, B) (none, error) {
	return func(ctx context.Context, in B) (none, error) { return none{}, do(ctx, in) }
}

// postBody makes an operation that says in its body what is wanted.
func postBody[B, A any](s *server, path, id, summary string, do func(context.Context, B) (A, error)) operation {
	return newOperation(s, http.MethodPost, path, id, summary, http.StatusOK,
		func(ctx context.Context, in *request[none, B]) (A, error) { return do(ctx, in.Body) })
}

// getByQuery returns a GET operation that answers a query.
func getByQuery[Q, A any](s *server, path, id, summary string, do func(context.Context, Q) (A, error)) operation {
	return newOperation(s, http.MethodGet, path, id, summary, http.StatusOK,
		func(ctx context.Context, in *request[Q, none]) (A, error) { return do(ctx, in.Query) })
}

func (s *server) undoOperations() []operation {
	return []operation{
		postBody(s, "/undos/plan", "plan_undo", "What an undo would do", s.Service.Undos.Plan),
		newOperation(s, http.MethodPost, "/undos", "undo", "Take back what runs did to files, and redo", http.StatusOK,
			func(ctx context.Context, in *request[none, dispatch.UndoRequest]) (regie.Undo, error) {
				setKeyedID(in.Key, &in.Body.UndoID)
				return s.Service.Undos.Undo(ctx, in.Body)
			}),
		newAddressed(s, http.MethodPost, "/sessions/{id}/undo", "undo_in_session",
			"Take back what the newest run of a session did to files",
			func(b *dispatch.UndoRequest, key string) *regie.ID {
				setKeyedID(key, &b.UndoID)
				return &b.SessionID
			}, s.Service.Undos.Undo),
	}
}

// setKeyedID derives the id of a new thing from its Idempotency-Key, so that a repeated request
// finds it. Without a key the id is new.
func setKeyedID(key string, id *regie.ID) {
	switch {
	case !id.IsZero():
	case key == "":
		*id = regie.NewID()
	default:
		*id = regie.NamedID("idempotency-key", key)
	}
}

type rootQuery struct {
	Root string `query:"root" doc:"The directory of a workspace; all of them where it is left out."`
}

// ofRoot makes a handler of a function of a workspace's root.
func ofRoot[A any](ask func(context.Context, string) (A, error)) func(context.Context, rootQuery) (A, error) {
	return func(ctx context.Context, in rootQuery) (A, error) { return ask(ctx, in.Root) }
}

// keepingOperations returns about what is kept: cache, money, audit, prompts, rules.
func (s *server) keepingOperations() []operation {
	return []operation{
		getByQuery(s, "/rules", "list_rules", "Standing rules, the oldest first", s.listRules),
		postBody(s, "/rules/revoke", "revoke_rules", "Take standing rules back, all of them or none",
			withoutAnswer(s.Service.Rules.Revoke)),
		getByQuery(s, "/prompt", "show_prompt", "What a model is sent, or was sent, byte for byte",
			s.Service.Rounds.Prompt),
		getByQuery(s, "/spending", "show_spending", "What was spent today", ofRoot(s.Service.Rounds.Spent)),
		getByQuery(s, "/verify", "verify_logs", "Whether logs are what was written",
			onePage(s.Service.Sessions.Verify)),
		getByQuery(s, "/cache", "show_cache", "What is in the response cache", ofRoot(s.Service.Cache.Stats)),
		postBody(s, "/cache/clear", "clear_cache", "Empty the response cache", s.Service.Cache.Clear),
		getByQuery(s, "/stats", "show_stats",
			"What rounds and tools did in a period, what waits now, what it costs, and which alerts hold", s.Service.Stats.Get),
		newOperation(s, http.MethodPost, "/stats/rebuild", "rebuild_stats", "Write the roll-ups of all workspaces anew from the rounds",
			http.StatusOK, withoutInput(func(ctx context.Context) (none, error) {
				return none{}, s.Service.Stats.Rebuild(ctx)
			})),
	}
}

// settingOperations settle what files leave open (decision 52), and say who is there (spec 5.4).
func (s *server) settingOperations() []operation {
	return []operation{
		newOperation(s, http.MethodGet, "/settings/limits", "show_limits",
			"The limits that the next round of a chat and of an automation gets, each with where it comes from",
			http.StatusOK, withoutInput(s.Service.Limits.Get)),
		newOperation(s, http.MethodPatch, "/settings/limits", "change_limits",
			"Store limits, effective from the next round; 0 takes back what was stored. What a file fixes cannot be changed here",
			http.StatusOK, func(ctx context.Context, in *request[none, dispatch.LimitChanges]) (
				dispatch.LimitSettings, error,
			) {
				return s.Service.Limits.Set(ctx, in.Body)
			}),
		newOperation(s, http.MethodPost, "/presence", "beat",
			"A heartbeat: a person is there for some minutes. A stream is one by itself, but for those of API tokens: a program says it where a person sits before it", http.StatusOK,
			withoutInput(s.Service.Presence.Beat)),
		listAll(s, "/presence", "list_presence", "Who is there, and who was within 24 hours",
			s.Service.Presence.List),
		getByQuery(s, "/notifications", "list_notifications", "What was notified, the newest first, by channel",
			onePage(s.Service.Notifications.List)),
		postBody(s, "/notifications/test", "test_notifications", "Send a test notification through one channel, or each of them",
			onePage(s.Service.Notifications.Test)),
	}
}

// RulePage is a part of the standing rules. What verifying the logs of their workspaces found
// (decision 15) comes with the first one.
type RulePage struct {
	Page[store.StandingRule]
	Audit *store.VerifyReport `json:"audit,omitempty"`
	// AuditError says where rules are not what was written.
	AuditError string `json:"audit_error,omitempty"`
}

func (s *server) listRules(ctx context.Context, filter store.RuleFilter) (RulePage, error) {
	limit := nextPage(&filter.Limit)
	found, err := s.Service.Rules.List(ctx, filter)
	page := cutPage("rules", found.Rules, limit, func(r *store.StandingRule) store.Mark {
		return store.Mark{At: r.CreatedAt, ID: r.ID}
	})
	return RulePage{Page: page, Audit: found.Audit, AuditError: found.AuditError}, err
}

func (s *server) placeOperations() []operation {
	return []operation{
		listAll(s, "/workspaces", "list_workspaces", "The workspaces", s.Service.Workspaces.List),
		postBody(s, "/workspaces", "open_workspace",
			"The workspace that a directory of the server's machine belongs to, made the first time, which needs the scope admin", s.Service.Workspaces.Open),
		getByID(s, http.MethodGet, "/workspaces/{id}/trust", "show_trust",
			"What the files of a workspace give to agents, and whether exactly that is trusted", s.Service.Workspaces.GetTrust),
		newAddressed(s, http.MethodPut, "/workspaces/{id}/trust", "trust_workspace",
			"Trust the content that was shown, which its hash names; any other content is refused",
			func(b *dispatch.TrustRequest, _ string) *regie.ID { return &b.WorkspaceID }, s.Service.Workspaces.Trust),
		getByID(s, http.MethodDelete, "/workspaces/{id}/trust", "distrust_workspace",
			"Withdraw the trust in a workspace", withoutAnswer(s.Service.Workspaces.Distrust)),
		listAll(s, "/tools", "list_tools", "What agents can call", s.Service.Catalog.Tools),
		listAll(s, "/models", "list_models",
			"The models that each configured provider has, with what they can do and what they cost", s.Service.Catalog.Models),
		getByQuery(s, "/search", "search", "Look through a workspace: what was said in its sessions, and its files",
			s.Service.Workspaces.Search),
		postBody(s, "/queries", "query_workspace", "Call a query of a workspace, without a model and a session",
			s.Service.Workspaces.Query),
	}
}

// onePage makes a handler of a list that is short by its nature.
func onePage[Q, T any](list func(context.Context, Q) ([]T, error)) func(context.Context, Q) (Page[T], error) {
	return func(ctx context.Context, in Q) (Page[T], error) {
		items, err := list(ctx, in)
		return Page[T]{Items: items}, err
	}
}

// listAll makes an operation that lists all there is of something: a list that is short by its
// nature.
func listAll[T any](s *server, path, id, summary string, list func(context.Context) ([]T, error)) operation {
	return newOperation(s, http.MethodGet, path, id, summary, http.StatusOK,
		withoutInput(func(ctx context.Context) (Page[T], error) {
			items, err := list(ctx)
			return Page[T]{Items: items}, err
		}))
}
