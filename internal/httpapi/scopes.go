package httpapi

import (
	"net/http"

	"github.com/regie-run/regie"
	"github.com/regie-run/regie/internal/access"
)

// anybody is the scope of what every token opens: who it is, what there is to ask, and to leave.
const anybody regie.TokenScope = "anybody"

// scopes say what a token needs for each operation. One that is missing here is served to nobody.
// Some requests need more, for what they say: what a run allows beforehand is an approval; an undo
// by force, and a directory that becomes a workspace, are the admin's (access.Confine).
var scopes = map[string]regie.TokenScope{
	"list_presence": regie.ScopeRead,
	"list_sessions": regie.ScopeRead, "show_session": regie.ScopeRead, "export_session": regie.ScopeRead,
	"list_messages":  regie.ScopeRead,
	"follow_session": regie.ScopeRead, "watch_sessions": regie.ScopeRead, "open_websocket": regie.ScopeRead,
	"list_rounds":            regie.ScopeRead,
	"list_rounds_of_session": regie.ScopeRead, "show_round": regie.ScopeRead, "replay_round": regie.ScopeRead,
	"show_inbox":     regie.ScopeRead,
	"list_approvals": regie.ScopeRead, "show_approval": regie.ScopeRead, "list_questions": regie.ScopeRead,
	"plan_undo":       regie.ScopeRead,
	"list_workspaces": regie.ScopeRead, "list_agents": regie.ScopeRead, "list_tools": regie.ScopeRead,
	"list_providers":  regie.ScopeRead,
	"query_workspace": regie.ScopeRead, "list_rules": regie.ScopeRead, "show_prompt": regie.ScopeRead,
	"show_spending": regie.ScopeRead,
	"verify_logs":   regie.ScopeRead, "show_cache": regie.ScopeRead, "list_users": regie.ScopeRead,
	"show_limits": regie.ScopeRead,
	"list_models": regie.ScopeRead, "search": regie.ScopeRead, "show_agent": regie.ScopeRead,
	"show_workspace": regie.ScopeRead, "show_tool": regie.ScopeRead, "show_provider": regie.ScopeRead,

	"create_session": regie.ScopeChat, "change_session": regie.ScopeChat, "fork_session": regie.ScopeChat,
	"mark_session_read": regie.ScopeChat,
	"interrupt_session": regie.ScopeChat, "pause_session": regie.ScopeChat, "resume_session": regie.ScopeChat,
	"stop_session":  regie.ScopeChat,
	"close_session": regie.ScopeChat, "request_control": regie.ScopeChat, "release_control": regie.ScopeChat,
	"send_message":      regie.ScopeChat,
	"give_command":      regie.ScopeChat, // what runs without an approval is what a rule allows whoever asks for it
	"take_back_message": regie.ScopeChat,
	"start_run":         regie.ScopeChat, "interrupt_round": regie.ScopeChat, "pause_round": regie.ScopeChat,
	"resume_round": regie.ScopeChat,
	"undo":         regie.ScopeChat, "undo_in_session": regie.ScopeChat,
	"beat": regie.ScopeChat,

	"decide": regie.ScopeApprove, "review_edit": regie.ScopeApprove, "answer_question": regie.ScopeApprove,
	"respond": regie.ScopeApprove, "resolve_call": regie.ScopeApprove,

	"remove_session": regie.ScopeAdmin, "change_limits": regie.ScopeAdmin, "revoke_rules": regie.ScopeAdmin,
	"clear_cache": regie.ScopeAdmin, "list_tokens": regie.ScopeAdmin,
	"add_token": regie.ScopeAdmin, "revoke_token": regie.ScopeAdmin, "revoke_tokens": regie.ScopeAdmin,
	"make_setup_link": regie.ScopeAdmin,

	"show_me": anybody, "logout": anybody, "open_workspace": anybody, // the last one says what it needs
}

// requires has a handler serve only those whose token opens it. Without a scope it serves nobody.
func (s *server) requires(scope regie.TokenScope, serve http.HandlerFunc) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		caller := access.From(r.Context())
		switch {
		case scope == "":
			s.refuse(w, r, "scope", regie.Errorf(regie.CodeForbidden, "nobody may ask for this"))
		case caller == nil:
			s.refuse(w, r, "token", regie.Errorf(regie.CodeNoToken,
				"the request shows no token, or a wrong one: send it as Authorization: Bearer …"))
		case scope != anybody && !caller.Has(scope):
			w.Header().Set("WWW-Authenticate", `Bearer realm="regie", error="insufficient_scope", scope="`+
				string(scope)+`"`)
			s.refuse(w, r, "scope", regie.Errorf(regie.CodeMissingScope,
				"this needs a token with the scope %s", string(scope)))
		default:
			serve(w, r)
		}
	}
}

// whole has a handler serve only those who see all workspaces: what it says is of all of them
// together.
func (s *server) whole(serve http.HandlerFunc) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		if caller := access.From(r.Context()); caller != nil && caller.Restricted() {
			s.refuse(w, r, "scope", regie.Errorf(regie.CodeForbidden,
				"this is about all workspaces, and the token is restricted to some"))
			return
		}
		serve(w, r)
	}
}
