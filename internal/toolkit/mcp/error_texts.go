package mcp

import (
	"context"
	"errors"
	"net/http"
	"net/url"
	"strings"

	"github.com/regie-run/regie"
)

const maxSaid = 1000 // bytes of what a server says in an error

// quoteServer cleans what a server says in an error.
func (s *Server) quoteServer(text string) string {
	if text = cleanText(hideSecrets(strings.ToValidUTF8(text, ""), s.secrets), maxSaid); text == "" {
		return "without a word"
	}
	return text
}

// downError is the error of a server that was not reached.
func (s *Server) downError(err error) error {
	code := regie.CodeServerDown
	if refusal, ok := errors.AsType[*regie.Error](err); ok && refusal.Code == regie.CodeNoPermission {
		code = refusal.Code // an address that may not be dialled
	}
	return regie.Errorf(code, "the MCP server %s cannot be reached: %s", s.config.Name, s.errorCause(err))
}

// unansweredError is the error of a server that was started or reached, and did not introduce
// itself.
func (s *Server) unansweredError(session *session, err error) error {
	if refusal, ok := errors.AsType[*regie.Error](err); ok && refusal.Code == regie.CodeNoPermission {
		return s.downError(err)
	}
	if status := session.hello.status.Load(); status == http.StatusUnauthorized || status == http.StatusForbidden {
		return regie.Errorf(regie.CodeNoPermission, "the MCP server %s answered with HTTP status %d: check its headers",
			s.config.Name, status)
	}
	if errors.Is(err, context.DeadlineExceeded) {
		return regie.Errorf(regie.CodeServerDown, "the MCP server %s did not initialize within %s: %s",
			s.config.Name, s.config.startTimeout(), s.describeEnd(session, nil))
	}
	return regie.Errorf(regie.CodeServerDown, "the MCP server %s cannot be used: %s",
		s.config.Name, s.describeEnd(session, err))
}

// errorCause returns an error's sentence without the address, which may hold a key.
func (s *Server) errorCause(err error) string {
	if failed, ok := errors.AsType[*url.Error](err); ok {
		err = failed.Err
	}
	return s.quoteServer(err.Error())
}

// describeEnd describes a session or its end: the error, the end of its process, and its last
// words.
func (s *Server) describeEnd(session *session, err error) string {
	var parts []string
	if err != nil {
		parts = append(parts, s.errorCause(err))
	}
	if session != nil && session.process != nil && session.isOver() {
		parts = append(parts, "its process ended ("+session.process.state+")")
	}
	if session != nil {
		if quote := session.log.lastLines(s.secrets); quote != "" {
			parts = append(parts, "its last words: "+quote)
		}
	}
	if len(parts) == 0 {
		return "it says nothing"
	}
	return strings.Join(parts, "; ")
}
