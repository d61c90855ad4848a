package notify

import (
	"context"
	"html"
	"os/exec"
	"runtime"
	"time"

	"github.com/regie-run/regie"
	"github.com/regie-run/regie/internal/config"
)

// sender makes one attempt to deliver a message, and obeys its context.
type sender interface {
	send(ctx context.Context, m *Message) error
}

// newSender returns the sender of a channel. The settings have checked its type.
func newSender(c config.Channel) sender {
	switch c.Type {
	case config.ChannelWebhook:
		return &webhook{c.URL, c.Secret}
	case config.ChannelNtfy:
		return &ntfy{c.URL, c.Secret}
	case config.ChannelSMTP:
		return &mailer{c}
	default:
		return desktop{}
	}
}

// desktop shows notifications on the screen of the machine that the engine runs on.
type desktop struct{}

func (desktop) send(ctx context.Context, m *Message) error {
	argv := desktopCommand(runtime.GOOS, m)
	command := exec.CommandContext(ctx, argv[0], argv[1:]...)
	command.WaitDelay = time.Second
	if out, err := command.CombinedOutput(); err != nil {
		return regie.Errorf(regie.CodeNotDelivered, "%s could not show the notification: %s", argv[0],
			clip(err.Error()+" "+string(out)))
	}
	return nil
}

// desktopCommand returns the command that shows a message. Texts are arguments and no part of a
// script; notify-send reads the second one as markup.
func desktopCommand(system string, m *Message) []string {
	if system == "darwin" {
		const script = "on run argv\ndisplay notification (item 2 of argv) with title (item 1 of argv)\nend run"
		return []string{"osascript", "-e", script, m.Title, m.body()}
	}
	return []string{"notify-send", "--app-name=Regie", "--", m.Title, html.EscapeString(m.body())}
}
