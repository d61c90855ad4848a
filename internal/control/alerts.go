package control

import (
	"slices"
	"time"

	"github.com/regie-run/regie"
	"github.com/regie-run/regie/internal/store"
)

// AlertRule is an alert: the expression that Prometheus evaluates over the metrics, and the
// condition that the dashboard evaluates over the roll-ups of this hour and the last one.
type AlertRule struct {
	store.Alert
	Expr, For string
	// Holds is nil where only Prometheus can tell.
	Holds func(*store.StatReport) bool
}

func newAlertRule(name, severity, page string, what, do regie.Sentence, expr, lasts string,
	holds func(*store.StatReport) bool,
) AlertRule {
	return AlertRule{store.Alert{Name: name, Severity: severity, What: what, Do: do, Page: page}, expr, lasts, holds}
}

// endedFor returns a condition: more rounds than a number ended for a reason.
func endedFor(end regie.RoundEnd, most int64) func(*store.StatReport) bool {
	return func(s *store.StatReport) bool { return s.Total.Ends[end] > most }
}

// anyTool returns a condition that one tool is enough for.
func anyTool(holds func(store.ToolStat) bool) func(*store.StatReport) bool {
	return func(s *store.StatReport) bool { return slices.ContainsFunc(s.Tools, holds) }
}

// AlertRules are all alerts, those first on which a person acts. docs/alerts.yaml is made of them.
var AlertRules = []AlertRule{
	newAlertRule("RegieApprovalsWait", "warning", "/inbox", regie.Say("An approval has waited for more than four hours."), regie.Say("Decide it before it expires."),
		`max(regie_waiting_oldest_seconds{kind="approval"}) > 4 * 3600`, "5m", func(s *store.StatReport) bool { return s.Approvals.Age(s.To) > 4*time.Hour }),
	newAlertRule("RegieQuestionsWait", "info", "/inbox", regie.Say("A question of a run has waited for more than a day."), regie.Say("Answer it, and the run goes on."),
		`max(regie_waiting_oldest_seconds{kind="question"}) > 24 * 3600`, "5m", func(s *store.StatReport) bool { return s.Questions.Age(s.To) > 24*time.Hour }),
	newAlertRule("RegieOutcomeUnknown", "warning", "/inbox", regie.Say("The outcome of an action is unknown."), regie.Say("Check whether it happened, and say so in its chat."),
		`max(regie_waiting{kind="unknown"}) > 0`, "", func(s *store.StatReport) bool { return s.Unknown > 0 }),
	newAlertRule("RegieRunsCrash", "critical", "/runs", regie.Say("A run was taken up several times without progress."), regie.Say("Look at its last call: something in it may end the server."),
		`increase(regie_rounds_ended_total{reason="NO_PROGRESS"}[1h]) > 0`, "", endedFor(regie.EndNoProgress, 0)),
	newAlertRule("RegieWatchdogStops", "warning", "/runs", regie.Say("The watchdog stopped a run without activity."), regie.Say("Look at the call or model that it waited for."),
		`increase(regie_rounds_ended_total{reason="WATCHDOG"}[1h]) > 0`, "", endedFor(regie.EndWatchdog, 0)),
	newAlertRule("RegieModelFails", "warning", "/runs", regie.Say("More than five runs ended because their model did not answer."), regie.Say("Check the provider and its key with regie doctor."),
		`increase(regie_rounds_ended_total{reason="PROVIDER_ERROR"}[15m]) > 5`, "", endedFor(regie.EndProviderError, 5)),
	newAlertRule("RegieQueueStands", "warning", "/runs", regie.Say("A run has waited for a slot for more than 15 minutes."), regie.Say("Look at the runs that hold the slots, or raise slots in regie.yaml."),
		`max by (kind) (regie_queue_oldest_seconds) > 900 and max by (kind) (regie_queue_length) > 0`, "5m", func(s *store.StatReport) bool { return s.Queue.Age(s.To) > 15*time.Minute }),
	newAlertRule("RegieToolFails", "warning", "/dashboard#tools",
		regie.Say("More than half of the calls of a tool fail."), regie.Say("Look at the errors of its last calls."),
		`sum by (tool) (increase(regie_tool_calls_total{state="FAILED"}[1h])) > 10 and sum by (tool) (increase(regie_tool_calls_total{state="FAILED"}[1h])) > 0.5 * sum by (tool) (increase(regie_tool_calls_total[1h]))`, "", anyTool(func(t store.ToolStat) bool { return t.Failed() > 10 && 2*t.Failed() > t.Calls })),
	newAlertRule("RegieLoops", "info", "/runs", regie.Say("Models repeat themselves: more than 20 calls in loops were stopped."), regie.Say("Give the agent clearer instructions, or another model."),
		`sum(increase(regie_tool_calls_caught_total{code=~"ANTI_LOOP|REPEATED_FAILURE"}[1h])) > 20`, "", func(s *store.StatReport) bool { return s.Total.Loops > 20 }),
	newAlertRule("RegieLongRounds", "info", "/runs", regie.Say("Runs take more than 20 model calls on average."), regie.Say("Give agents smaller tasks, or lower their limits."),
		`sum(rate(regie_round_exchanges_sum[1h])) / sum(rate(regie_round_exchanges_count[1h])) > 20`, "30m", func(s *store.StatReport) bool { return s.Total.Relaunches > 19*max(1, s.Total.Rounds) }),
	newAlertRule("RegieDown", "critical", "", regie.Say("The server does not answer."), regie.Say("Look at its log, and at /readyz once it does."),
		`up{job="regie"} == 0`, "2m", nil),
	newAlertRule("RegieSlowRequests", "warning", "", regie.Say("One request in a hundred takes more than 2.5 seconds."), regie.Say("Look at the load of the machine and of its disk."),
		`histogram_quantile(0.99, sum by (le) (rate(regie_http_request_seconds_bucket[10m]))) > 2.5`, "10m", nil),
	newAlertRule("RegieErrors", "warning", "", regie.Say("The server fails requests by its own fault."),
		regie.Say("Look at its log."),
		`sum(rate(regie_http_requests_total{status=~"5.."}[10m])) > 0.1`, "10m", nil),
	newAlertRule("RegieManyFiles", "critical", "", regie.Say("Nine tenths of the files and connections that the server may open are open."), regie.Say("Raise its limit (LimitNOFILE)."),
		`max(process_open_fds) / max(process_max_fds) > 0.9`, "5m", nil),
}
