package regie

// NotificationKind is what a person is notified of (decision 60).
type NotificationKind string

// The kinds of notifications.
const (
	NotifyApproval    NotificationKind = "approval" // an agent asks for an approval
	NotifyQuestion    NotificationKind = "question" // an agent has a question
	NotifyUnknown     NotificationKind = "unknown"  // the outcome of an action is unknown
	NotifyFailure     NotificationKind = "failure"  // a run ended badly
	NotifyBudget      NotificationKind = "budget"   // a budget paused or ended a run
	NotifyPause       NotificationKind = "pause"    // the runtime paused a run
	NotifyFinished    NotificationKind = "finished" // an unattended run has finished
	NotifyTaskOverdue NotificationKind = "task_overdue"
	NotifyTest        NotificationKind = "test" // a person tries a channel
)

// NotificationKinds are the kinds that a channel can choose from.
func NotificationKinds() []NotificationKind {
	return []NotificationKind{
		NotifyApproval, NotifyQuestion, NotifyUnknown, NotifyFailure, NotifyBudget, NotifyPause, NotifyFinished,
		NotifyTaskOverdue,
	}
}
