// Package trigger starts automations (spec 5.2): Scheduler at the instants of their schedules and
// when a run has ended, FileWatcher where files of their workspaces change. Each has one goroutine,
// its Run, which the engine owns and ends by its context. What is due, and what starts, the service
// decides.
package trigger
