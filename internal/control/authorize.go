package control

import (
	"context"
	"slices"

	"github.com/regie-run/regie"
	"github.com/regie-run/regie/internal/access"
)

// EveryCaller is the scope of operations that every caller may do.
const EveryCaller regie.TokenScope = "anybody"

// VisitorOnly is the scope of operations that only visitors of widgets do. They do no
// other.
const VisitorOnly regie.TokenScope = "visitor"

// requiredScopes is the table of who may do what: the scope that an operation needs. An operation
// that is missing is refused to everybody. Some methods need more for what a request says: a run
// that allows calls beforehand needs approve, a directory that becomes a workspace admin.
var requiredScopes = map[string]regie.TokenScope{
	"list_sessions": regie.ScopeRead, "show_session": regie.ScopeRead, "export_session": regie.ScopeRead,
	"list_messages": regie.ScopeRead, "follow_session": regie.ScopeRead, "watch_sessions": regie.ScopeRead,
	"list_rounds": regie.ScopeRead, "show_round": regie.ScopeRead, "replay_round": regie.ScopeRead,
	"show_inbox": regie.ScopeRead, "plan_undo": regie.ScopeRead, "list_rules": regie.ScopeRead,
	"list_workspaces": regie.ScopeRead, "query_workspace": regie.ScopeRead, "search": regie.ScopeRead,
	"list_agents": regie.ScopeRead, "list_tools": regie.ScopeRead, "list_providers": regie.ScopeRead,
	"list_models": regie.ScopeRead, "show_prompt": regie.ScopeRead, "show_spending": regie.ScopeRead,
	"verify_logs": regie.ScopeRead, "show_cache": regie.ScopeRead, "show_limits": regie.ScopeRead,
	"list_automations": regie.ScopeRead, "show_automation": regie.ScopeRead,
	"list_users": regie.ScopeRead, "list_presence": regie.ScopeRead, "show_stats": regie.ScopeRead,
	"list_notifications": regie.ScopeRead,

	"create_session": regie.ScopeChat, "change_session": regie.ScopeChat, "fork_session": regie.ScopeChat,
	"mark_session_read": regie.ScopeChat, "stop_session": regie.ScopeChat, "close_session": regie.ScopeChat,
	"request_control": regie.ScopeChat, "release_control": regie.ScopeChat,
	"send_message": regie.ScopeChat, "upload_attachment": regie.ScopeChat, "take_back_message": regie.ScopeChat,
	"interrupt_round": regie.ScopeChat, "pause_round": regie.ScopeChat, "resume_round": regie.ScopeChat,
	"undo": regie.ScopeChat, "beat": regie.ScopeChat, "set_aside": regie.ScopeChat,

	"change_automations": regie.ScopeChat, "run_automation": regie.ScopeChat,

	"decide": regie.ScopeApprove, "review_edit": regie.ScopeApprove, "answer_question": regie.ScopeApprove,
	"resolve_call": regie.ScopeApprove, "extend_deadline": regie.ScopeApprove,

	"client_workspace": regie.ScopeCompletions,

	"remove_session": regie.ScopeAdmin, "change_limits": regie.ScopeAdmin, "change_agents": regie.ScopeAdmin,
	"revoke_rules": regie.ScopeAdmin, "fire_hook": regie.ScopeAdmin, "run_scheduler": regie.ScopeAdmin,
	"show_trust": regie.ScopeAdmin, "trust_workspace": regie.ScopeAdmin, "distrust_workspace": regie.ScopeAdmin,
	"clear_cache": regie.ScopeAdmin, "undo_by_force": regie.ScopeAdmin, "list_tokens": regie.ScopeAdmin,
	"add_token": regie.ScopeAdmin, "add_client_provider": regie.ScopeAdmin, "revoke_tokens": regie.ScopeAdmin,
	"make_setup_link": regie.ScopeAdmin, "rebuild_stats": regie.ScopeAdmin,
	"test_notifications": regie.ScopeAdmin,
	"change_providers":   regie.ScopeAdmin, "check_machine": regie.ScopeAdmin,

	"show_widget": VisitorOnly, "send_visit": VisitorOnly, "show_visit": VisitorOnly, "follow_visit": VisitorOnly,

	"show_me": EveryCaller, "revoke_own_token": EveryCaller,
	"open_workspace":     EveryCaller, // Open says what it needs
	"remove_own_session": EveryCaller, // Remove says whose it is
}

// partOfOthers are the operations that those of other scopes do on their way: a message is followed
// to the end of its round, an answer looks for its question. By themselves they need their scope.
var partOfOthers = map[string]bool{
	"list_sessions": true, "list_rounds": true, "show_inbox": true, "follow_session": true,
}

// readsToo are the operations that answer with what a session holds: they need the scope read as
// well.
var readsToo = map[string]bool{
	"fork_session": true, "undo": true, "undo_by_force": true, "change_automations": true,
}

// writingScopes are those of operations that change what is stored, which an engine that only reads
// refuses.
var writingScopes = []regie.TokenScope{regie.ScopeChat, regie.ScopeApprove, regie.ScopeAdmin}

// RequiredScope returns the scope that an operation needs, empty for one that is not there.
func RequiredScope(operation string) regie.TokenScope { return requiredScopes[operation] }

// authorize returns the caller of a context, who may do the operation to the things with these ids.
// It returns CodeForbidden without a caller and for a visitor of a widget who does anything else
// than visitors do, CodeMissingScope, with its name, where the caller lacks the scope, and
// CodeNotFound for an id that is not there or in a workspace that the caller does not see. An
// interface with a scope of its own (MCP, /v1) opens what reading and chatting open.
func (c *core) authorize(ctx context.Context, operation string, ids ...regie.ID) (*access.Caller, error) {
	scope, known := requiredScopes[operation]
	caller := access.From(ctx)
	switch {
	case caller == nil, !known, (caller.Visitor != nil) != (scope == VisitorOnly):
		return nil, access.ErrNobody
	case scope == VisitorOnly, scope == EveryCaller, caller.Has(scope), partOfOthers[operation]:
	case caller.Surface != "" && (scope == regie.ScopeRead || scope == regie.ScopeChat):
	default:
		return nil, access.MissingScope(scope)
	}
	if c.ReadOnly && !c.StoreOnly && slices.Contains(writingScopes, scope) && operation != "list_tokens" {
		return nil, errRunsNothing
	}
	if readsToo[operation] && !caller.Has(regie.ScopeRead) && caller.Surface == "" {
		return nil, access.MissingScope(regie.ScopeRead)
	}
	return caller, c.owns(ctx, caller, ids...)
}

// authorizeIn returns authorize for an operation on the workspace at a root, which it settles as
// core.root does.
func (c *core) authorizeIn(ctx context.Context, operation string, root *string, ids ...regie.ID) (
	*access.Caller, error,
) {
	caller, err := c.authorize(ctx, operation)
	if err == nil {
		*root, err = c.root(ctx, caller, *root, ids...)
	}
	return caller, err
}

// authorizeAll returns authorize for an operation that is about all workspaces, which no restricted
// caller does.
func (c *core) authorizeAll(ctx context.Context, operation string) (*access.Caller, error) {
	caller, err := c.authorize(ctx, operation)
	if err == nil && caller.Restricted() {
		err = access.ErrRestricted
	}
	return caller, err
}

// owns returns CodeNotFound, in the same words, for ids that are not there and for those of
// workspaces that the caller does not see.
func (c *core) owns(ctx context.Context, caller *access.Caller, ids ...regie.ID) error {
	if !caller.Restricted() {
		return nil
	}
	for _, id := range ids {
		workspace, err := c.Store.WorkspaceOf(ctx, id)
		switch {
		case regie.CodeOf(err) == regie.CodeNotFound, err == nil && !caller.Sees(workspace):
			return notFound(id)
		case err != nil:
			return err
		}
	}
	return nil
}

// ownsOrNew is owns for an id that a request gives to what it makes: it may be there already.
func (c *core) ownsOrNew(ctx context.Context, caller *access.Caller, id regie.ID) error {
	if !caller.Restricted() || id.IsZero() {
		return nil
	}
	workspace, err := c.Store.WorkspaceOf(ctx, id)
	switch {
	case regie.CodeOf(err) == regie.CodeNotFound:
		return nil
	case err == nil && !caller.Sees(workspace):
		return notFound(id)
	}
	return err
}

// notFound is the error for an id that is not there, or that the caller does not see.
func notFound(id regie.ID) error {
	return regie.Errorf(regie.CodeNotFound, "there is nothing %s here", id)
}

// given are those of some ids that a request names.
func given(ids ...regie.ID) []regie.ID { return slices.DeleteFunc(ids, regie.ID.IsZero) }

// refusePart returns CodeBadRequest where a restricted caller names something by a part of its id:
// it could be the part of an id in another workspace.
func refusePart(caller *access.Caller, part string) error {
	if caller.Restricted() && part != "" {
		return regie.Errorf(regie.CodeBadRequest,
			"a token restricted to workspaces must use whole ids")
	}
	return nil
}
