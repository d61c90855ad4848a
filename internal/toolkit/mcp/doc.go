// Package mcp brings the tools of Model Context Protocol servers into Regie (spec 4.2, 11.3, 13):
// over stdio, where the server is a command that this package starts, or over streamable HTTP. A
// server's tools are ordinary tools named server.operation.
//
// A server is a third party's program. What it says is bounded, cleaned and, without trust_hints,
// not believed: each tool is then an action of class once that asks. Its definitions are pinned: a
// tool runs only while the server still describes it as it did when it was handed out (decision
// 20). Whether a failed call happened is told by what left this process, never by the server's
// mood: a call that was not written, or that the protocol says was not taken up, is NotDone;
// anything else is unknown (decision 5).
//
// # Who owns what
//
// A Fleet owns the servers of an engine, and the registry that rounds begin with: whoever holds its
// lock may make a new one, of entries that stay as they are, and everybody reads the current one by
// a pointer. Nothing polls: servers are looked at when a round begins. One that is away, or whose
// list has changed, is then tried by a goroutine, one for each server at most, which ends within
// the server's start timeout or with Close.
//
// A Server owns at most one session, and whoever holds its turn (a channel of one place) may open,
// list or end it. A call that finds it gone restarts it, within the call's own time. What it tells
// of itself in between (that its list has changed) only sets a mark.
//
// Each session has these goroutines, and Close returns after they have ended:
//
//   - the SDK's reader and its short-lived handlers, ended by the end of the connection;
//   - watch, which waits for that end, then for the process, and then says that the session is
//     over;
//   - of a process: pump (its output, line by line), copyLog (the end of its standard error), await
//     (for its exit) and supervise, which ends it on request (close its input, SIGTERM, SIGKILL,
//     each after a grace), kills the group that it leaves behind and closes the pipes;
//   - over HTTP: the SDK's stream of notifications, ended with the session's context.
//
// A call that is cancelled returns at once; the SDK sends the notification of it from a goroutine
// that ends within 5 s, or with the session. A process that even SIGKILL does not end (it hangs in
// the kernel) is given up: await is then lost until it ends.
package mcp
