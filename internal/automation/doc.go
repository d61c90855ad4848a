// Package automation says when automations run (spec 5.2, decisions 26 and 57). It is pure: the
// schedule, the history and the time are arguments, and nothing is stored that could go stale.
//
//	schedule.go  Validate, and a schedule prepared for the walk; a library parses cron expressions
//	next.go      Next: the walk from one instant to the following one
//	due.go       Due: the rows for the instants that have come, and the next instant
//	text.go      the short form of the command line, "weekly mon,fri 09:00", and words for people
//
// Fixed hours and the times of a period are readings of the zone's clock. Each runs at the first
// instant at which the clock shows it or a later reading: one in a gap runs when the gap ends, one
// in an overlap runs once. A cron expression with `*` or a step among its hours runs at each minute
// at which the clock shows a matching reading. So `*` runs in each real hour, and "*/2" runs once
// less on the day of a gap at 02:00, and once more on the day of an overlap.
package automation
