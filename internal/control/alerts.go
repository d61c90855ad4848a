package control

import (
	"slices"
	"time"

	"github.com/regie-run/regie"
	"github.com/regie-run/regie/internal/store"
)

// AlertRule is an alert: what Prometheus evaluates over the metrics, and what the dashboard does
// over the roll-ups of this hour and the last one.
type AlertRule struct {
	store.Alert
	Expr, For string
	// Holds is nil where only Prometheus can tell.
	Holds func(*store.Stats) bool
}

// endedFor returns a condition: more rounds than a number ended for a reason.
func endedFor(end regie.RoundEnd, most int64) func(*store.Stats) bool {
	return func(s *store.Stats) bool { return s.Total.Ends[end] > most }
}

// AlertRules are all alerts, those first on which a person acts. docs/alerts.yaml is made of them.
var AlertRules = []AlertRule{
	{
		Alert: store.Alert{
			Name: "RegieApprovalsWait", Severity: "warning", Page: "/inbox",
			What: regie.Say("An approval has waited for more than four hours."),
			Do:   regie.Say("Decide it before it expires."),
		},
		Expr: `max(regie_waiting_oldest_seconds{kind="approval"}) > 4 * 3600`, For: "5m",
		Holds: func(s *store.Stats) bool { return s.Approvals.Age(s.To) > 4*time.Hour },
	},
	{
		Alert: store.Alert{
			Name: "RegieQuestionsWait", Severity: "info", Page: "/inbox",
			What: regie.Say("A question of a run has waited for more than a day."),
			Do:   regie.Say("Answer it, and the run goes on."),
		},
		Expr: `max(regie_waiting_oldest_seconds{kind="question"}) > 24 * 3600`, For: "5m",
		Holds: func(s *store.Stats) bool { return s.Questions.Age(s.To) > 24*time.Hour },
	},
	{
		Alert: store.Alert{
			Name: "RegieOutcomeUnknown", Severity: "warning", Page: "/runs",
			What: regie.Say("The outcome of an action is unknown."),
			Do:   regie.Say("Check whether it happened, and say so in its chat."),
		},
		Expr: `sum(increase(regie_tool_calls_total{state="UNKNOWN"}[1h])) > 0`,
		Holds: func(s *store.Stats) bool {
			return slices.ContainsFunc(s.Tools, func(t store.ToolStat) bool { return t.Unknown > 0 })
		},
	},
	{
		Alert: store.Alert{
			Name: "RegieRunsCrash", Severity: "critical", Page: "/runs",
			What: regie.Say("A run was taken up several times without progress."),
			Do:   regie.Say("Look at its last call: something in it may end the server."),
		},
		Expr:  `increase(regie_rounds_ended_total{reason="NO_PROGRESS"}[1h]) > 0`,
		Holds: endedFor(regie.EndNoProgress, 0),
	},
	{
		Alert: store.Alert{
			Name: "RegieWatchdogStops", Severity: "warning", Page: "/runs",
			What: regie.Say("The watchdog stopped a run without activity."),
			Do:   regie.Say("Look at the call or model that it waited for."),
		},
		Expr:  `increase(regie_rounds_ended_total{reason="WATCHDOG"}[1h]) > 0`,
		Holds: endedFor(regie.EndWatchdog, 0),
	},
	{
		Alert: store.Alert{
			Name: "RegieModelFails", Severity: "warning", Page: "/runs",
			What: regie.Say("More than five runs ended because their model did not answer."),
			Do:   regie.Say("Check the provider and its key with regie doctor."),
		},
		Expr:  `increase(regie_rounds_ended_total{reason="PROVIDER_ERROR"}[15m]) > 5`,
		Holds: endedFor(regie.EndProviderError, 5),
	},
	{
		Alert: store.Alert{
			Name: "RegieQueueStands", Severity: "warning", Page: "/runs",
			What: regie.Say("A run has waited for a slot for more than 15 minutes."),
			Do:   regie.Say("Look at the runs that hold the slots, or raise slots in regie.yaml."),
		},
		Expr: `max by (kind) (regie_queue_oldest_seconds) > 900 and max by (kind) (regie_queue_length) > 0`, For: "5m",
		Holds: func(s *store.Stats) bool { return s.Queue.Age(s.To) > 15*time.Minute },
	},
	{
		Alert: store.Alert{
			Name: "RegieToolFails", Severity: "warning", Page: "/dashboard#tools",
			What: regie.Say("More than half of the calls of a tool fail."),
			Do:   regie.Say("Look at the errors of its last calls."),
		},
		Expr: `sum by (tool) (increase(regie_tool_calls_total{state="FAILED"}[1h])) > 10
  and sum by (tool) (increase(regie_tool_calls_total{state="FAILED"}[1h])) > 0.5 * sum by (tool) (increase(regie_tool_calls_total[1h]))`,
		Holds: func(s *store.Stats) bool {
			return slices.ContainsFunc(s.Tools, func(t store.ToolStat) bool {
				failed := t.Calls - t.Succeeded - t.Unknown
				return failed > 10 && 2*failed > t.Calls
			})
		},
	},
	{
		Alert: store.Alert{
			Name: "RegieLoops", Severity: "info", Page: "/runs",
			What: regie.Say("Models repeat themselves: more than 20 calls in loops were stopped."),
			Do:   regie.Say("Give the agent clearer instructions, or another model."),
		},
		Expr:  `sum(increase(regie_tool_calls_caught_total{code=~"ANTI_LOOP|REPEATED_FAILURE"}[1h])) > 20`,
		Holds: func(s *store.Stats) bool { return s.Total.Loops > 20 },
	},
	{
		Alert: store.Alert{
			Name: "RegieLongRounds", Severity: "info", Page: "/runs",
			What: regie.Say("Runs take more than 20 model calls on average."),
			Do:   regie.Say("Give agents smaller tasks, or lower their limits."),
		},
		Expr: `sum(rate(regie_round_exchanges_sum[1h])) / sum(rate(regie_round_exchanges_count[1h])) > 20`, For: "30m",
		Holds: func(s *store.Stats) bool { return s.Total.Relaunches > 19*max(1, s.Total.Rounds) },
	},

	{
		Alert: store.Alert{
			Name: "RegieDown", Severity: "critical", What: regie.Say("The server does not answer."),
			Do: regie.Say("Look at its log, and at /readyz once it does."),
		},
		Expr: `up{job="regie"} == 0`, For: "2m",
	},
	{
		Alert: store.Alert{
			Name: "RegieSlowRequests", Severity: "warning", What: regie.Say("One request in a hundred takes more than 2.5 seconds."),
			Do: regie.Say("Look at the load of the machine and of its disk."),
		},
		Expr: `histogram_quantile(0.99, sum by (le) (rate(regie_http_request_seconds_bucket[10m]))) > 2.5`, For: "10m",
	},
	{
		Alert: store.Alert{
			Name: "RegieErrors", Severity: "warning", What: regie.Say("The server fails requests by its own fault."),
			Do: regie.Say("Look at its log."),
		},
		Expr: `sum(rate(regie_http_requests_total{status=~"5.."}[10m])) > 0.1`, For: "10m",
	},
	{
		Alert: store.Alert{
			Name: "RegieManyFiles", Severity: "critical", What: regie.Say("Nine tenths of the files and connections that the server may open are open."),
			Do: regie.Say("Raise its limit (LimitNOFILE)."),
		},
		Expr: `max(process_open_fds) / max(process_max_fds) > 0.9`, For: "5m",
	},
}
