package notify

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"mime"
	"net/http"
	"net/url"
	"strconv"
	"time"

	standardwebhooks "github.com/standard-webhooks/standard-webhooks/libraries/go"

	"github.com/regie-run/regie"
)

// receivers is the client for all receivers. It dials private addresses too, because only the
// operator's own settings name a receiver. It follows no redirect, which could lead elsewhere, and
// uses no proxy of the environment.
var receivers = &http.Client{
	Transport:     &http.Transport{IdleConnTimeout: time.Minute, ForceAttemptHTTP2: true},
	CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
}

// webhook sends notifications as Standard Webhooks.
type webhook struct{ url, secret string }

func (s *webhook) send(ctx context.Context, m *Message) error {
	signer, err := standardwebhooks.NewWebhook(s.secret)
	if err != nil {
		return regie.Errorf(regie.CodeNotDelivered, "the secret is not one of Standard Webhooks: write it as whsec_ and base64")
	}
	now := time.Now()
	body, _ := json.Marshal(m)                            // of texts, ids and a time
	signature, _ := signer.Sign(m.ID.String(), now, body) // a hash takes everything
	return post(ctx, s.url, string(body), "Content-Type", "application/json",
		standardwebhooks.HeaderWebhookID, m.ID.String(), standardwebhooks.HeaderWebhookSignature, signature,
		standardwebhooks.HeaderWebhookTimestamp, strconv.FormatInt(now.Unix(), 10))
}

// ntfy publishes notifications to a topic. Where a sequence id comes again, the message replaces
// the one before (ntfy 2.16).
type ntfy struct{ url, token string }

func (s *ntfy) send(ctx context.Context, m *Message) error {
	header := []string{
		"Title", mime.BEncoding.Encode("utf-8", m.Title), "Tags", string(m.Kind), "X-Sequence-Id", m.ID.String(),
		"Content-Type", "text/plain; charset=utf-8",
	}
	if !m.ObjectID.IsZero() || m.Kind == regie.NotifyFailure {
		header = append(header, "Priority", "high")
	}
	if m.URL != "" {
		header = append(header, "Click", m.URL)
	}
	if s.token != "" {
		header = append(header, "Authorization", "Bearer "+s.token)
	}
	return post(ctx, s.url, cmp.Or(m.Text, m.Title), header...) // ntfy says "triggered" for nothing
}

// post sends a body with names and values of headers. Its error does not name the address, which
// may be a secret.
func post(ctx context.Context, address, body string, header ...string) error {
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, address, bytes.NewReader([]byte(body)))
	if err != nil {
		return regie.Errorf(regie.CodeNotDelivered, "the address of the receiver cannot be used")
	}
	request.Header.Set("User-Agent", "Regie (+https://github.com/regie-run/regie)")
	for i := 0; i+1 < len(header); i += 2 {
		request.Header.Set(header[i], header[i+1])
	}
	response, err := receivers.Do(request)
	if err != nil {
		if inner, is := errors.AsType[*url.Error](err); is {
			err = inner.Err
		}
		return explainFailure(ctx, err)
	}
	_ = response.Body.Close()
	if code := response.StatusCode; code/100 != 2 {
		return regie.Errorf(regie.CodeNotDelivered, "the receiver answered %s", strconv.Itoa(code))
	}
	return nil
}

// explainFailure returns the error of a receiver that did not take a message, nil for none.
func explainFailure(ctx context.Context, err error) error {
	switch {
	case err == nil:
		return nil
	case errors.Is(ctx.Err(), context.DeadlineExceeded):
		return regie.Errorf(regie.CodeNotDelivered, "the receiver did not answer in time")
	}
	return regie.Errorf(regie.CodeNotDelivered, "the receiver did not take it: %s", clip(err.Error()))
}
