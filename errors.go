package regie

import (
	"errors"
	"fmt"
)

// Code is a stable, documented name of an error. Programs branch on it; it never changes once
// released.
type Code string

// The codes, each with its meaning and, after the colon of "Fix:", the remedy.
// docs/error-codes.md is generated from these comments.
const (
	// CodeBadID: The id is malformed. Fix: Copy it from `regie runs list`.
	CodeBadID Code = "BAD_ID"
	// CodeBadRequest: The input is not valid; the sentence names the field. Fix: Correct it.
	CodeBadRequest Code = "BAD_REQUEST"
	// CodeNotFound: No such object exists in this workspace. Fix: Check the id and the
	// workspace.
	CodeNotFound Code = "NOT_FOUND"
	// CodeConflict: The object's state does not allow this operation. Fix: Look at its state
	// first.
	CodeConflict Code = "CONFLICT"
	// CodeRoundInProgress: The session is busy and the message was not to wait. Fix: Wait for
	// the end of the run, or interrupt it.
	CodeRoundInProgress Code = "ROUND_IN_PROGRESS"
	// CodeExpired: The answer came after the deadline; nothing was run. Fix: Ask the agent
	// again.
	CodeExpired Code = "EXPIRED"
	// CodeTooLarge: The request is larger than 16 MiB. Fix: Send less at once.
	CodeTooLarge Code = "TOO_LARGE"
	// CodeKeyReused: The `Idempotency-Key` or `client_message_id` came with a different request
	// before. Fix: Use a new key for each new request.
	CodeKeyReused Code = "KEY_REUSED"
	// CodeKeyInUse: The first request with this `Idempotency-Key` is still at work. Fix: Try
	// again in a moment.
	CodeKeyInUse Code = "KEY_IN_USE"
	// CodeNoMethod: The address exists but has no such method. Fix: Use a method of the header
	// `Allow`.
	CodeNoMethod Code = "METHOD_NOT_ALLOWED"
	// CodeRequestTimeout: The body of the request did not arrive in time. Fix: Send it again.
	CodeRequestTimeout Code = "REQUEST_TIMEOUT"
	// CodeNoToken: The request has no token, or one that the server does not know. Fix: Send the
	// one in `api.token` of the data directory, or one from `regie token add`.
	CodeNoToken Code = "NO_TOKEN"
	// CodeTokenEnded: The token has expired or was revoked. Fix: Make another one with `regie
	// token add`.
	CodeTokenEnded Code = "TOKEN_ENDED"
	// CodeMissingScope: The token lacks the scope that the sentence names. Fix: Use a token that
	// has it.
	CodeMissingScope Code = "MISSING_SCOPE"
	// CodeTooManyRequests: The token sends too many requests or has too many open. Fix: Wait as
	// long as `Retry-After` says; `token_limits` in `regie.yaml` sets the limits.
	CodeTooManyRequests Code = "TOO_MANY_REQUESTS"
	// CodeUserRejected: A person denied the call. Fix: Nothing: the agent knows.
	CodeUserRejected Code = "USER_REJECTED"
	// CodeForbidden: A rule forbids the call. Fix: Change the rule, or do without.
	CodeForbidden Code = "FORBIDDEN"
	// CodeStale: Another process has taken over the session. Fix: Nothing: that process
	// continues.
	CodeStale Code = "STALE_EPOCH"
	// CodeStopRequested: The run was stopped or paused first. Fix: Nothing, or start again.
	CodeStopRequested Code = "STOP_REQUESTED"
	// CodeCorrupt: The store holds invalid data. Fix: Restore a backup.
	CodeCorrupt Code = "CORRUPT"
	// CodeNewerSchema: A newer version wrote the database. Fix: Use that version.
	CodeNewerSchema Code = "NEWER_SCHEMA"
	// CodeSchemaTooOld: A version from before the first release wrote the database. Fix: Export
	// the sessions with that version and use a new data directory.
	CodeSchemaTooOld Code = "SCHEMA_TOO_OLD"
	// CodeLocked: Another process holds the data directory. Fix: Let it end, or use another
	// `--data-dir`.
	CodeLocked Code = "ENGINE_RUNNING"
	// CodeEngineGone: The engine ended while it worked on the request. Fix: Try again; a run
	// repeats its model call without help.
	CodeEngineGone Code = "ENGINE_GONE"
	// CodeDiskFull: The disk is full. Fix: Make room, then resume.
	CodeDiskFull Code = "DISK_FULL"
	// CodeDatabaseLocked: Another program holds the database. Fix: Close it, then try again.
	CodeDatabaseLocked Code = "DATABASE_LOCKED"
	// CodeDatabaseDown: The database server cannot be reached or accepts no writes; nothing is
	// lost. Fix: Start it, then try again.
	CodeDatabaseDown Code = "DATABASE_DOWN"
	// CodeNoPermission: The operating system denied access. Fix: Change the permissions.
	CodeNoPermission Code = "NO_PERMISSION"
	// CodeReadOnly: The file or directory is read-only. Fix: Change its permissions.
	CodeReadOnly Code = "READ_ONLY"
	// CodeNoModel: No model is configured. Fix: Run `regie setup`.
	CodeNoModel Code = "NO_MODEL"
	// CodePathOutside: The path leaves the workspace. Fix: Name a path inside it.
	CodePathOutside Code = "PATH_OUTSIDE"
	// CodePathInvalid: No file can have this path. Fix: Write a shorter, relative path without
	// control characters.
	CodePathInvalid Code = "PATH_INVALID"
	// CodePathProtected: The path is `.git`, `.regie`, a secret or an ignored file that was not
	// allowed. Fix: Allow it when asked, or do it by hand.
	CodePathProtected Code = "PATH_PROTECTED"
	// CodeFileExists: A new file would replace an existing one. Fix: Choose another name, or
	// overwrite or append.
	CodeFileExists Code = "FILE_EXISTS"
	// CodeFileNotFound: The file or directory does not exist. Fix: List the directory.
	CodeFileNotFound Code = "FILE_NOT_FOUND"
	// CodeNotAFile: The path is a directory or a link. Fix: Name a file.
	CodeNotAFile Code = "NOT_A_FILE"
	// CodeNotADirectory: The path is a file. Fix: Name a directory.
	CodeNotADirectory Code = "NOT_A_DIRECTORY"
	// CodeNotText: The document is not UTF-8 text. Fix: Save it as UTF-8.
	CodeNotText Code = "NOT_TEXT"
	// CodeSpecialFile: The path is a FIFO, device or socket. Fix: Use another program.
	CodeSpecialFile Code = "SPECIAL_FILE"
	// CodeFileTooLarge: The file is larger than the tool handles. Fix: Ask for a part of it.
	CodeFileTooLarge Code = "FILE_TOO_LARGE"
	// CodeFileChanged: The file has changed since the agent read it or the call was prepared.
	// Fix: Read it again.
	CodeFileChanged Code = "FILE_CHANGED"
	// CodeTextNotFound: The file does not contain the text that the edit replaces; nothing was
	// changed. Fix: The hint shows the most similar text.
	CodeTextNotFound Code = "TEXT_NOT_FOUND"
	// CodeTextAmbiguous: The file contains the text a different number of times than the edit
	// says; nothing was changed. Fix: Include more of the surrounding text.
	CodeTextAmbiguous Code = "TEXT_AMBIGUOUS"
	// CodeStalePreview: What was approved is no longer what was shown; nothing was done. Fix:
	// Look at the new preview and approve that.
	CodeStalePreview Code = "STALE_PREVIEW"
	// CodeUndoConflict: A file is not as the run left it, or its former content is gone; nothing
	// was undone. Fix: The sentence names the file; `--force` restores a file that was changed
	// since.
	CodeUndoConflict Code = "UNDO_CONFLICT"
	// CodeBadPattern: The pattern does not parse or is too costly. Fix: Simplify it.
	CodeBadPattern Code = "BAD_PATTERN"
	// CodeUnknownTool: No tool has this name here. Fix: The hint names the nearest ones.
	CodeUnknownTool Code = "UNKNOWN_TOOL"
	// CodeBadArguments: The arguments do not fit the tool. Fix: The sentence names the
	// parameter.
	CodeBadArguments Code = "INVALID_ARGUMENTS"
	// CodeToolError: The tool failed. Fix: The sentence says how; report a panic.
	CodeToolError Code = "TOOL_ERROR"
	// CodeToolChanged: An MCP server now describes the tool differently; nothing was done. Fix:
	// The agent proposes the call again with the new description.
	CodeToolChanged Code = "TOOL_CHANGED"
	// CodeNoSandbox: The command was not run because no sandbox works here and running without one
	// was not allowed. Fix: Run `regie doctor`.
	CodeNoSandbox Code = "NO_SANDBOX"
	// CodeNoProgram: The command names a program that does not exist or that commands cannot
	// see. Fix: Check its name; `shell.read` shows commands more.
	CodeNoProgram Code = "NO_PROGRAM"
	// CodeProcessLimit: The command started too many processes and was ended with all of them.
	// Fix: Start fewer, or raise `shell.max_processes`.
	CodeProcessLimit Code = "PROCESS_LIMIT"
	// CodeMemoryLimit: The command used too much memory and was ended with all its processes.
	// Fix: Use less, or raise `shell.max_memory_bytes`.
	CodeMemoryLimit Code = "MEMORY_LIMIT"
	// CodeServerDown: The tool's MCP server cannot be reached; nothing was done. Fix: Check that
	// it runs; the next run tries it again.
	CodeServerDown Code = "SERVER_DOWN"
	// CodeNotDelivered: A notification did not reach its receiver. Fix: Nothing: Regie tries again
	// for a day. `regie notify test` shows what is wrong.
	CodeNotDelivered Code = "NOT_DELIVERED"
	// CodeServerLost: The connection to the tool's MCP server broke after the call was sent.
	// Fix: Check what it did before you try again.
	CodeServerLost Code = "SERVER_LOST"
	// CodeTimeout: A tool or a model took too long. Fix: Try again with less.
	CodeTimeout Code = "TIMEOUT"
	// CodeOutcomeUnknown: The effect may or may not have happened; it is never repeated
	// automatically. Fix: Check, then run `regie runs resolve`.
	CodeOutcomeUnknown Code = "OUTCOME_UNKNOWN"
	// CodeTruncatedStream: The model's answer was cut off. Fix: Nothing: Regie retries.
	CodeTruncatedStream Code = "TRUNCATED_STREAM"
	// CodeBadReply: The model's answer cannot be used. Fix: Nothing: Regie retries; otherwise use
	// another model.
	CodeBadReply Code = "BAD_REPLY"
	// CodeEmptyReply: The model's answer is empty. Fix: Nothing: Regie retries; otherwise use
	// another model.
	CodeEmptyReply Code = "EMPTY_REPLY"
	// CodeReplyTooLarge: The model's answer is too large. Fix: Ask for less at once, or use
	// another model.
	CodeReplyTooLarge Code = "REPLY_TOO_LARGE"
	// CodeProviderRejected: The server does not accept the request. Fix: Check the model's name
	// and the address.
	CodeProviderRejected Code = "PROVIDER_REJECTED"
	// CodeProviderAuth: The server does not accept the key. Fix: Check the key.
	CodeProviderAuth Code = "PROVIDER_AUTH"
	// CodeProviderQuota: The account has no credit left. Fix: Pay, or use another provider.
	CodeProviderQuota Code = "PROVIDER_QUOTA"
	// CodeProviderBusy: The server is overloaded, limits requests, or has a fault. Fix: The
	// sentence says which; resume later.
	CodeProviderBusy Code = "PROVIDER_BUSY"
	// CodeProviderOffline: The server cannot be reached. Fix: Check the network, or start the
	// server.
	CodeProviderOffline Code = "PROVIDER_OFFLINE"
	// CodeProviderBroken: The connection broke after the request was sent. Fix: Resume the run.
	CodeProviderBroken Code = "PROVIDER_BROKEN"
	// CodePriceUnknown: A budget applies and the model's price is unknown. Fix: Set
	// `providers.NAME.prices`, or remove the budget.
	CodePriceUnknown Code = "PRICE_UNKNOWN"
	// CodeOverBudget: The model call could cost more than the budget leaves, so it was not made.
	// Fix: Raise the budget or wait for the next day, then write again or resume.
	CodeOverBudget Code = "OVER_BUDGET"
	// CodeContextTooLarge: The prompt does not fit the model's window even after shortening. Fix:
	// Say less at once, put it into a file, or use a model with a larger window.
	CodeContextTooLarge Code = "CONTEXT_TOO_LARGE"
	// CodePromptMismatch: A stored model call cannot be rebuilt byte for byte. Fix: Use the
	// settings that it was made with; otherwise its data was changed.
	CodePromptMismatch Code = "PROMPT_MISMATCH"
	// CodeReplayMismatch: The recording has no answer to this request or cannot be read. Fix:
	// The message shows the difference; record again.
	CodeReplayMismatch Code = "REPLAY_MISMATCH"
	// CodeChainBroken: The log was altered. Fix: Compare with a backup.
	CodeChainBroken Code = "CHAIN_BROKEN"
	// CodeInternal: A bug in Regie. Fix: Report it.
	CodeInternal Code = "INTERNAL"
)

// Error is an error with a stable code and a sentence that a person can act on. The sentence is
// kept as format and arguments so that the catalogue can translate it at the edge.
type Error struct {
	Code   Code
	Format string
	Args   []any
	Err    error // the cause, may be nil
}

// Errorf returns an Error with a code and a sentence. An argument that is an error becomes its
// cause, as with %w, regardless of its verb.
func Errorf(code Code, format string, args ...any) *Error {
	e := &Error{Code: code, Format: format, Args: args}
	for _, arg := range args {
		if err, ok := arg.(error); ok {
			e.Err = err
		}
	}
	return e
}

// Error returns the English sentence.
func (e *Error) Error() string { return fmt.Sprintf(e.Format, e.Args...) }

// Unwrap returns the cause.
func (e *Error) Unwrap() error { return e.Err }

// CodeOf returns the code of the first Error in err's chain, "" for nil and CodeInternal for any
// other error.
func CodeOf(err error) Code {
	var coded *Error
	switch {
	case err == nil:
		return ""
	case errors.As(err, &coded):
		return coded.Code
	default:
		return CodeInternal
	}
}
