package main

import (
	"slices"
	"time"

	"github.com/spf13/cobra"

	"github.com/regie-run/regie"
	"github.com/regie-run/regie/internal/app"
	"github.com/regie-run/regie/internal/dispatch"
	"github.com/regie-run/regie/internal/sanitize"
	"github.com/regie-run/regie/internal/store"
)

// newNotifyCommand tries the channels for notifications and lists what they delivered (decision
// 60).
func newNotifyCommand(env *environment) *cobra.Command {
	notify := &cobra.Command{Use: "notify", Short: env.T("Test the channels for notifications and list what was sent")}
	var all, asJSON bool
	test := &cobra.Command{
		Use: "test [CHANNEL]", Args: checkArgCount(0, 1), Short: env.T("Send a test notification to a channel, or to all of them"),
		Long: env.T("Send a test notification to a channel of regie.yaml (notifications), or to all of them. The engine sends it, with the settings and variables that it was started with."),
		RunE: func(cmd *cobra.Command, args []string) error {
			sent, err := writeStore(cmd.Context(), env, func(conn *app.Conn) ([]store.Delivery, error) {
				return conn.Notifications.Test(cmd.Context(), dispatch.NotificationTest{Channel: append(args, "")[0]})
			})
			err = printDeliveries(env, asJSON, sent, err)
			if err == nil && slices.ContainsFunc(sent, func(d store.Delivery) bool { return !d.Error.IsZero() }) {
				err = regie.Errorf(regie.CodeNotDelivered, "a test notification was not sent")
			}
			return err
		},
	}
	list := &cobra.Command{
		Use: "list", Args: checkArgCount(0, 0), Short: env.T("List the newest notifications of this workspace"),
		RunE: func(cmd *cobra.Command, _ []string) error {
			found, err := readWorkspace(cmd.Context(), env, all, []store.Delivery{},
				func(conn *app.Conn, root string) ([]store.Delivery, error) {
					return conn.Notifications.List(cmd.Context(), store.DeliveryFilter{Root: root})
				})
			return printDeliveries(env, asJSON, found, err)
		},
	}
	addJSONFlag(env, test, &asJSON)
	addViewFlags(env, list, &all, &asJSON)
	notify.AddCommand(test, list)
	return notify
}

// printDeliveries prints each delivery with the error of its last attempt.
func printDeliveries(env *environment, asJSON bool, found []store.Delivery, err error) error {
	return printLines(env, asJSON, found, err, func(p *printer) {
		for i := range found {
			d := &found[i]
			p.printLine("%s  %-12s  %-12s  %-7s  %s", d.CreatedAt.Local().Format(time.DateTime), d.Channel, d.Kind,
				d.State, sanitize.Line(env.text.Sentence(d.Error)))
		}
	})
}
