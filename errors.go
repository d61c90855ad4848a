package regie

import (
	"errors"
	"fmt"
)

// Code is a stable, documented name of an error. Programs branch on it; it never changes once
// released.
type Code string

// The codes. README lists what each one means and what to do.
const (
	CodeBadID      Code = "BAD_ID"      // a malformed id
	CodeBadRequest Code = "BAD_REQUEST" // input that does not validate
	// no such object in this workspace (spec 2.1: also another tenant's)
	CodeNotFound        Code = "NOT_FOUND"
	CodeConflict        Code = "CONFLICT"          // the object is not in a state that allows this
	CodeRoundInProgress Code = "ROUND_IN_PROGRESS" // the session is busy and the message was not to wait (spec 3)
	CodeExpired         Code = "EXPIRED"           // the answer came after the deadline
	CodeTooLarge        Code = "TOO_LARGE"         // a request over the bounds (spec 11.3)
	CodeKeyReused       Code = "KEY_REUSED"        // an Idempotency-Key came with another request before (spec 10.2)
	// the first request with an Idempotency-Key is still being answered (spec 10.2)
	CodeKeyInUse        Code = "KEY_IN_USE"
	CodeNoMethod        Code = "METHOD_NOT_ALLOWED" // an address that is there, by a method that it does not have
	CodeRequestTimeout  Code = "REQUEST_TIMEOUT"    // a request whose body did not come in time
	CodeNoToken         Code = "NO_TOKEN"           // a request to a server without a token that it knows (spec 11.2)
	CodeTokenEnded      Code = "TOKEN_ENDED"        // a request with a token that is expired or revoked
	CodeMissingScope    Code = "MISSING_SCOPE"      // a token that does not open what was asked
	CodeTooManyRequests Code = "TOO_MANY_REQUESTS"  // a token asks too often, or too much at once
	CodeUserRejected    Code = "USER_REJECTED"      // a person denied the call (spec 4.4)
	CodeForbidden       Code = "FORBIDDEN"          // a rule forbids the call (decision 19)
	CodeStale           Code = "STALE_EPOCH"        // another holder has taken the session over (invariant 8)
	CodeStopRequested   Code = "STOP_REQUESTED"     // a stopping word came first, or cut it (decision 6)
	CodeCorrupt         Code = "CORRUPT"            // the store holds something it must not
	CodeNewerSchema     Code = "NEWER_SCHEMA"       // the database was written by a newer program (spec 11.1)
	CodeSchemaTooOld    Code = "SCHEMA_TOO_OLD"     // the database was written by a program of before the first release
	CodeLocked          Code = "ENGINE_RUNNING"     // another engine holds the data directory (decision 1)
	CodeEngineGone      Code = "ENGINE_GONE"        // the engine ended while it was asked, or while it asked a model
	CodeDiskFull        Code = "DISK_FULL"          // no room on the disk
	CodeDatabaseLocked  Code = "DATABASE_LOCKED"    // another program holds the database file
	CodeDatabaseDown    Code = "DATABASE_DOWN"      // the database server cannot be reached, or takes nothing for now
	CodeNoPermission    Code = "NO_PERMISSION"      // the operating system refused
	CodeReadOnly        Code = "READ_ONLY"          // the directory or file cannot be written
	CodeNoModel         Code = "NO_MODEL"           // no model is configured
	CodePathOutside     Code = "PATH_OUTSIDE"       // a path leaves the workspace
	CodePathInvalid     Code = "PATH_INVALID"       // NUL, too long, empty
	CodePathProtected   Code = "PATH_PROTECTED"     // .git, .regie, secrets
	CodeFileExists      Code = "FILE_EXISTS"        // mode=create on an existing file
	CodeFileNotFound    Code = "FILE_NOT_FOUND"     // no such file or directory
	CodeNotAFile        Code = "NOT_A_FILE"         // a directory where a file is needed
	CodeNotADirectory   Code = "NOT_A_DIRECTORY"    // a file where a directory is needed
	CodeNotText         Code = "NOT_TEXT"           // bytes where a text is wanted
	CodeSpecialFile     Code = "SPECIAL_FILE"       // FIFO, device, socket
	CodeFileTooLarge    Code = "FILE_TOO_LARGE"     // larger than a tool handles
	CodeFileChanged     Code = "FILE_CHANGED"       // the file is not what it was when the call was prepared
	CodeTextNotFound    Code = "TEXT_NOT_FOUND"     // what an edit is to replace does not stand in the file
	CodeTextAmbiguous   Code = "TEXT_AMBIGUOUS"     // it stands there another number of times than the edit says
	CodeStalePreview    Code = "STALE_PREVIEW"      // what an approval showed is no longer so (decision 20)
	// a file is not as the run left it: nothing was undone (decision 16)
	CodeUndoConflict     Code = "UNDO_CONFLICT"
	CodeBadPattern       Code = "BAD_PATTERN"       // a glob that does not parse or is too costly
	CodeUnknownTool      Code = "UNKNOWN_TOOL"      // no tool of that name in scope
	CodeBadArguments     Code = "INVALID_ARGUMENTS" // arguments that do not fit the tool's schema
	CodeToolError        Code = "TOOL_ERROR"        // a tool failed or panicked
	CodeToolChanged      Code = "TOOL_CHANGED"      // a tool is no longer what was shown (spec 11.3)
	CodeNoSandbox        Code = "NO_SANDBOX"        // a command was not run because nothing confines it (spec 8.2)
	CodeNoProgram        Code = "NO_PROGRAM"        // a command names a program that is not there
	CodeProcessLimit     Code = "PROCESS_LIMIT"     // a command had more processes than it may have (decision 70)
	CodeMemoryLimit      Code = "MEMORY_LIMIT"      // a command used more memory than it may
	CodeServerDown       Code = "SERVER_DOWN"       // a tool's server cannot be reached: nothing was sent
	CodeServerLost       Code = "SERVER_LOST"       // the connection to a tool's server broke after the call was sent
	CodeTimeout          Code = "TIMEOUT"           // a tool or model took too long
	CodeOutcomeUnknown   Code = "OUTCOME_UNKNOWN"   // the effect may or may not have happened (decision 5)
	CodeTruncatedStream  Code = "TRUNCATED_STREAM"  // a model stream ended before its terminal marker (spec 12.6)
	CodeBadReply         Code = "BAD_REPLY"         // a model reply that cannot be used
	CodeEmptyReply       Code = "EMPTY_REPLY"       // a model reply without text and calls
	CodeReplyTooLarge    Code = "REPLY_TOO_LARGE"   // a model reply over the bounds
	CodeProviderRejected Code = "PROVIDER_REJECTED" // 400, 404, 422: the request will not be accepted
	CodeProviderAuth     Code = "PROVIDER_AUTH"     // 401, 403: the key
	CodeProviderQuota    Code = "PROVIDER_QUOTA"    // no credit left: final
	CodeProviderBusy     Code = "PROVIDER_BUSY"     // 429, 5xx, 529: try again later
	CodeProviderOffline  Code = "PROVIDER_OFFLINE"  // the request was certainly not sent (decision 42)
	CodeProviderBroken   Code = "PROVIDER_BROKEN"   // the connection broke after the request was sent
	// a budget holds, and nobody knows what the model costs (decision 29)
	CodePriceUnknown Code = "PRICE_UNKNOWN"
	// the call was not made: it could cost more than a budget leaves (decision 29)
	CodeOverBudget Code = "OVER_BUDGET"
	// a prompt that the model's window does not hold, whatever is left out (spec 3.4)
	CodeContextTooLarge Code = "CONTEXT_TOO_LARGE"
	// a stored model call cannot be rebuilt byte for byte (decision 14)
	CodePromptMismatch Code = "PROMPT_MISMATCH"
	CodeReplayMismatch Code = "REPLAY_MISMATCH" // the recording holds no answer to this request
	CodeChainBroken    Code = "CHAIN_BROKEN"    // the audit chain does not verify (decision 15)
	CodeInternal       Code = "INTERNAL"        // a bug of ours
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
// cause, as with %w, whatever verb prints it.
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
