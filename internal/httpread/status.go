package httpread

import (
	"net/http"

	"github.com/regie-run/regie"
)

// statuses is the only mapping from codes to HTTP. Every code of the root package is here, so a new
// code gets its status when it is added. Any tool's refusal can reach a client when a person edits
// a call.
var statuses = map[regie.Code]int{
	// The request says something that cannot be meant.
	regie.CodeBadID:        http.StatusBadRequest,
	regie.CodeBadRequest:   http.StatusBadRequest,
	regie.CodeBadPattern:   http.StatusBadRequest,
	regie.CodeBadArguments: http.StatusBadRequest,
	regie.CodePathInvalid:  http.StatusBadRequest,
	regie.CodePathOutside:  http.StatusBadRequest,

	// It is understood, and nothing here can do it.
	regie.CodeNoModel:         http.StatusUnprocessableEntity,
	regie.CodePriceUnknown:    http.StatusUnprocessableEntity,
	regie.CodeOverBudget:      http.StatusPaymentRequired,
	regie.CodeNotAFile:        http.StatusUnprocessableEntity,
	regie.CodeTextNotFound:    http.StatusUnprocessableEntity,
	regie.CodeTextAmbiguous:   http.StatusUnprocessableEntity,
	regie.CodeNotADirectory:   http.StatusUnprocessableEntity,
	regie.CodeNotText:         http.StatusUnprocessableEntity,
	regie.CodeSpecialFile:     http.StatusUnprocessableEntity,
	regie.CodeReplayMismatch:  http.StatusUnprocessableEntity,
	regie.CodeFileTooLarge:    http.StatusRequestEntityTooLarge,
	regie.CodeContextTooLarge: http.StatusRequestEntityTooLarge,
	regie.CodeProcessLimit:    http.StatusUnprocessableEntity,
	regie.CodeMemoryLimit:     http.StatusUnprocessableEntity,

	regie.CodeTooLarge:       http.StatusRequestEntityTooLarge,
	regie.CodeRequestTimeout: http.StatusRequestTimeout,
	regie.CodeNoMethod:       http.StatusMethodNotAllowed,

	// What it names is not here.
	regie.CodeNotFound:     http.StatusNotFound,
	regie.CodeFileNotFound: http.StatusNotFound,
	regie.CodeUnknownTool:  http.StatusNotFound,
	regie.CodeNoProgram:    http.StatusNotFound,
	regie.CodeExpired:      http.StatusGone,

	regie.CodeNoToken:         http.StatusUnauthorized,
	regie.CodeTokenEnded:      http.StatusUnauthorized,
	regie.CodeTooManyRequests: http.StatusTooManyRequests,

	// A person or the operating system refused.
	regie.CodeForbidden:     http.StatusForbidden,
	regie.CodeMissingScope:  http.StatusForbidden,
	regie.CodeNoSandbox:     http.StatusForbidden,
	regie.CodeUserRejected:  http.StatusForbidden,
	regie.CodePathProtected: http.StatusForbidden,
	regie.CodeNoPermission:  http.StatusForbidden,
	regie.CodeReadOnly:      http.StatusForbidden,

	// The world is not as the request takes it to be: look again, then decide.
	regie.CodeConflict:        http.StatusConflict,
	regie.CodeNotDelivered:    http.StatusBadGateway,
	regie.CodeKeyReused:       http.StatusConflict,
	regie.CodeKeyInUse:        http.StatusConflict,
	regie.CodeRoundInProgress: http.StatusConflict,
	regie.CodeStale:           http.StatusConflict,
	regie.CodeStopRequested:   http.StatusConflict,
	regie.CodeLocked:          http.StatusConflict,
	regie.CodeFileExists:      http.StatusConflict,
	regie.CodeFileChanged:     http.StatusConflict,
	regie.CodeStalePreview:    http.StatusConflict,
	regie.CodeUndoConflict:    http.StatusConflict,
	regie.CodeToolChanged:     http.StatusConflict,
	regie.CodeOutcomeUnknown:  http.StatusConflict,

	// The same request may succeed later.
	regie.CodeEngineGone:     http.StatusServiceUnavailable,
	regie.CodeDatabaseLocked: http.StatusServiceUnavailable,
	regie.CodeDatabaseDown:   http.StatusServiceUnavailable,
	regie.CodeProviderBusy:   http.StatusServiceUnavailable,
	regie.CodeServerDown:     http.StatusServiceUnavailable,
	regie.CodeDiskFull:       http.StatusInsufficientStorage,

	// A model or a tool's server, behind this one, has failed. Its key is not the client's, so it
	// is no 401.
	regie.CodeTruncatedStream:  http.StatusBadGateway,
	regie.CodeBadReply:         http.StatusBadGateway,
	regie.CodeEmptyReply:       http.StatusBadGateway,
	regie.CodeReplyTooLarge:    http.StatusBadGateway,
	regie.CodeProviderRejected: http.StatusBadGateway,
	regie.CodeProviderAuth:     http.StatusBadGateway,
	regie.CodeProviderQuota:    http.StatusBadGateway,
	regie.CodeProviderOffline:  http.StatusBadGateway,
	regie.CodeProviderBroken:   http.StatusBadGateway,
	regie.CodeServerLost:       http.StatusBadGateway,
	regie.CodeTimeout:          http.StatusGatewayTimeout,

	// This program, or its store, has failed.
	regie.CodeCorrupt:        http.StatusInternalServerError,
	regie.CodeNewerSchema:    http.StatusInternalServerError,
	regie.CodeSchemaTooOld:   http.StatusInternalServerError,
	regie.CodeChainBroken:    http.StatusInternalServerError,
	regie.CodePromptMismatch: http.StatusInternalServerError,
	regie.CodeToolError:      http.StatusInternalServerError,
	regie.CodeInternal:       http.StatusInternalServerError,
}

// Status returns the HTTP status of a code; a code outside the root package is a bug.
func Status(code regie.Code) int {
	if status, ok := statuses[code]; ok {
		return status
	}
	return http.StatusInternalServerError
}
