package httpapi

import (
	"cmp"
	"net/http"

	"github.com/regie-run/regie"
	"github.com/regie-run/regie/internal/access"
	"github.com/regie-run/regie/internal/control"
)

// sameAs names the operation of the service behind addresses that do the same as another one, or a
// part of it: who may do it says control.RequiredScope. All others have its name.
var sameAs = map[string]string{
	"open_websocket": "watch_sessions", "list_rounds_of_session": "list_rounds",
	"list_approvals": "show_inbox", "change_provider": "resume_round",
	"interrupt_session": "interrupt_round", "pause_session": "pause_round", "resume_session": "resume_round",
	"start_run": "send_message", "show_attachment": "show_session", "undo_in_session": "undo",
	"create_automation": "change_automations", "edit_automation": "change_automations",
	"remove_automation": "change_automations", "rotate_hook": "change_automations",
	"enable_automation": "change_automations", "disable_automation": "change_automations",
	"preview_schedule": "list_automations", "list_automation_versions": "show_automation",
	"list_fires":       "show_automation",
	"pause_automation": "run_automation", "resume_automation": "run_automation", "stop_automation": "run_automation",
	"show_agent": "list_agents", "list_agent_versions": "list_agents", "create_agent": "change_agents",
	"change_agent": "change_agents", "remove_agent": "change_agents",
	"create_provider": "change_providers", "edit_provider": "change_providers", "remove_provider": "change_providers",
	"respond": "answer_question", "revoke_token": "revoke_tokens", "logout": "revoke_own_token",
}

// scopeOf returns the scope that a token needs for an operation of this interface.
func scopeOf(id string) regie.TokenScope { return control.RequiredScope(cmp.Or(sameAs[id], id)) }

// requireScope limits a handler to tokens with a scope. Without a scope it serves no request.
func (s *responder) requireScope(scope regie.TokenScope, serve http.HandlerFunc) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		caller := access.From(r.Context())
		switch {
		case scope == "":
			s.refuseRequest(w, r, "scope", regie.Errorf(regie.CodeForbidden, "this request is not allowed"))
		case caller == nil:
			s.refuseRequest(w, r, "token", access.ErrNoToken)
		case scope != control.EveryCaller && !caller.Has(scope):
			w.Header().Set("WWW-Authenticate", `Bearer realm="regie", error="insufficient_scope", scope="`+
				string(scope)+`"`)
			s.refuseRequest(w, r, "scope", access.MissingScope(scope))
		default:
			serve(w, r)
		}
	}
}

// requireOwner has a handler serve only those who see all workspaces: what it says is of all of
// them together.
func (s *responder) requireOwner(serve http.HandlerFunc) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		if caller := access.From(r.Context()); caller != nil && caller.Restricted() {
			s.refuseRequest(w, r, "scope", access.ErrRestricted)
			return
		}
		serve(w, r)
	}
}
