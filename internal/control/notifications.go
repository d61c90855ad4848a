package control

import (
	"context"

	"github.com/regie-run/regie/internal/dispatch"
	"github.com/regie-run/regie/internal/store"
)

// Notifications are the channels of the settings and what they deliver (decision 60).
type Notifications struct{ *core }

// Test sends a notification to a channel, or to all for "", and returns what came of it. It returns
// CodeNotFound for an unknown channel.
func (n *Notifications) Test(ctx context.Context, in dispatch.NotificationTest) ([]store.Delivery, error) {
	if _, err := n.authorizeAll(ctx, "test_notifications"); err != nil {
		return nil, err
	}
	return n.TestChannel(ctx, in.Channel)
}

// List returns the newest deliveries in the workspace at the filter's root, or in all for "".
func (n *Notifications) List(ctx context.Context, filter store.DeliveryFilter) ([]store.Delivery, error) {
	if _, err := n.authorizeIn(ctx, "list_notifications", &filter.Root); err != nil {
		return nil, err
	}
	return n.Store.Deliveries(ctx, filter)
}
