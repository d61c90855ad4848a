package chat

import (
	"context"

	"github.com/regie-run/regie"
	"github.com/regie-run/regie/internal/dispatch"
	"github.com/regie-run/regie/internal/store"
)

// Control is what a terminal asks of an engine: the methods of client.Client that it needs.
type Control interface {
	Submit(ctx context.Context, in dispatch.RunRequest) (dispatch.Run, error)
	Interrupt(ctx context.Context, round regie.ID) error
	Pause(ctx context.Context, round regie.ID) error
	Resume(ctx context.Context, round regie.ID) error
	Stop(ctx context.Context, session regie.ID) (dispatch.Stopped, error)
	CloseSession(ctx context.Context, session regie.ID) error
	TakeBack(ctx context.Context, in dispatch.TakeBackRequest) (regie.Message, error)
	Inbox(ctx context.Context, filter store.InboxFilter) (store.Inbox, error)
	Review(ctx context.Context, in dispatch.DecideRequest) (dispatch.Reviewed, error)
	Decide(ctx context.Context, in dispatch.DecideRequest) (store.Resolved, error)
	Answer(ctx context.Context, in dispatch.AnswerRequest) (store.Resolved, error)
	Rules(ctx context.Context, filter store.RuleFilter) (store.RuleList, error)
	Revoke(ctx context.Context, in dispatch.RevokeRequest) error
	Get(ctx context.Context, round regie.ID) (store.RoundView, error)
	List(ctx context.Context, filter store.RoundFilter) ([]store.RoundSummary, error)
	Spent(ctx context.Context, root string) (store.Spent, error)
	Events(ctx context.Context, session regie.ID, after int64, sink func(dispatch.Item) error) error
	Sessions(ctx context.Context, filter store.SessionFilter) ([]store.SessionSummary, error)
	Session(ctx context.Context, session regie.ID) (store.SessionView, error)
	Messages(ctx context.Context, in dispatch.MessagesRequest) ([]store.MessageView, error)
	Fork(ctx context.Context, in dispatch.ForkRequest) (store.Forked, error)
	Remove(ctx context.Context, in dispatch.RemoveRequest) (store.Removed, error)
	MarkRead(ctx context.Context, in dispatch.ReadRequest) error
	Verify(ctx context.Context, filter store.LogFilter) ([]store.LogReport, error)
	Replay(ctx context.Context, round regie.ID) (dispatch.Replay, error)
	PlanUndo(ctx context.Context, in dispatch.UndoRequest) (regie.UndoPlan, error)
	Undo(ctx context.Context, in dispatch.UndoRequest) (regie.Undo, error)
	CacheStats(ctx context.Context, root string) (store.CacheStats, error)
	ClearCache(ctx context.Context, in dispatch.ClearRequest) (dispatch.Cleared, error)
	OpenWorkspace(ctx context.Context, in dispatch.WorkspaceRequest) (regie.Workspace, error)
	Agents(ctx context.Context) ([]dispatch.AgentView, error)
	Providers(ctx context.Context) ([]dispatch.ProviderView, error)
	Query(ctx context.Context, in dispatch.QueryRequest) (dispatch.QueryResult, error)
	Models(ctx context.Context) ([]dispatch.ProviderModels, error)
}
