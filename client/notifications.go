package client

import (
	"context"
	"net/http"

	"github.com/regie-run/regie/internal/dispatch"
	"github.com/regie-run/regie/internal/store"
)

// The types of notifications, for programs outside of this module (see types.go).
type (
	// Delivery is a notification on its way through a channel.
	Delivery = store.Delivery
	// DeliveryFilter selects deliveries.
	DeliveryFilter = store.DeliveryFilter
	// NotificationTest asks for a test notification.
	NotificationTest = dispatch.NotificationTest
)

// Notifications are the channels of the settings, as control.Notifications.
type Notifications struct{ client *Client }

// List returns the newest deliveries.
func (n *Notifications) List(ctx context.Context, filter store.DeliveryFilter) ([]store.Delivery, error) {
	return all[store.Delivery](ctx, n.client, "/api/v1/notifications?"+queryOf(filter))
}

// Test sends a notification to a channel, or to all for "", and returns what came of it.
func (n *Notifications) Test(ctx context.Context, in dispatch.NotificationTest) ([]store.Delivery, error) {
	sent, err := ask[page[store.Delivery]](ctx, n.client, http.MethodPost, "/api/v1/notifications/test", in)
	return sent.Items, err
}
