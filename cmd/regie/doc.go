// Command regie is a self-hosted runtime for AI agents with controlled autonomy (spec 1): one
// binary, all of it.
//
// A command runs on the main goroutine. The goroutines that follow a session's events and read the
// terminal belong to internal/chat, which ends them. Four more are the command's own: those that
// hand on signals and refuse Ctrl-Z, and give a terminal back that hides a key, end with it; the
// one that reads a job from standard input is left behind where the job never comes.
package main
