package config

import (
	"cmp"
	"maps"
	"path/filepath"
	"regexp"
	"slices"

	"github.com/regie-run/regie"
)

// Widget is a chat for visitors of other sites (spec 10.3).
type Widget struct {
	// Agent is the one that answers. It must be in this file and name its tools: what it may read,
	// visitors may read.
	Agent string `yaml:"agent"`
	// Workspace is the directory that it works in, an absolute path.
	Workspace string `yaml:"workspace"`
	// Origins are the sites that may show the widget on their pages, such as https://shop.example.
	Origins []string `yaml:"origins"`
	// Title is the name of the chat, by default the name of the widget.
	Title string `yaml:"title"`
	// Company owns the agent, for the line below the title.
	Company string `yaml:"company"`
	// MessagesPerVisitor is how many messages one visitor may send in ten minutes.
	MessagesPerVisitor int `yaml:"messages_per_visitor"`
	// MessagesPerWidget is how many messages all visitors may send in ten minutes.
	MessagesPerWidget int `yaml:"messages_per_widget"`
	// USDPerDay is what all visitors may cost in a day: the model needs a known price.
	USDPerDay Cap `yaml:"usd_per_day"`
}

// The defaults of Widget, per ten minutes.
const (
	visitorMessages = 20
	widgetMessages  = 200
)

// Messages returns how many messages one visitor and all visitors may send in ten minutes.
func (w *Widget) Messages() (visitor, all int) {
	return cmp.Or(w.MessagesPerVisitor, visitorMessages), cmp.Or(w.MessagesPerWidget, widgetMessages)
}

// Name returns the title of a widget, by default the name under which it is configured.
func (w *Widget) Name(key string) string { return cmp.Or(w.Title, key) }

// siteOrigin is the origin of a page as browsers and policies write it.
var siteOrigin = regexp.MustCompile(`^https?://[a-z0-9]([a-z0-9.-]*[a-z0-9])?(:[0-9]{1,5})?$`)

func (w *Widget) checkValues() error {
	for _, origin := range w.Origins {
		if !siteOrigin.MatchString(origin) {
			return regie.Errorf(regie.CodeBadRequest,
				"origins has %q: write the origin of a site in small letters and without a path, such as https://shop.example", origin)
		}
	}
	if len(w.Origins) == 0 {
		return regie.Errorf(regie.CodeBadRequest, "origins is empty: name the sites that may show the widget")
	}
	if !filepath.IsAbs(w.Workspace) {
		return regie.Errorf(regie.CodeBadRequest, "the workspace %q is not an absolute path", w.Workspace)
	}
	return nil
}

// checkWidgets checks the widgets of the settings: each has a name for addresses, and an agent that
// cannot use all tools.
func (c *Config) checkWidgets() error {
	for _, name := range slices.Sorted(maps.Keys(c.File.Widgets)) {
		widget := c.File.Widgets[name]
		agent, there := c.File.Agents[widget.Agent]
		var err error
		switch {
		case !providerName.MatchString(name):
			err = regie.Errorf(regie.CodeBadRequest,
				"%q is not a valid name of a widget: use up to 40 small letters, digits, - and _, and begin with a letter", name)
		case !there:
			err = regie.Errorf(regie.CodeBadRequest,
				"the widget %s names the agent %q, which is not in regie.yaml: add it under agents", name, widget.Agent)
		case len(agent.Tools) == 0:
			err = regie.Errorf(regie.CodeBadRequest,
				"the widget %s needs an agent that names its tools, because visitors can have it use them all: set agents.%s.tools",
				name, widget.Agent)
		}
		if err != nil {
			return regie.Errorf(regie.CodeBadRequest, "%v (in %s)", err, c.sourceOf("widgets."+name))
		}
	}
	return nil
}
