package web

import (
	"strings"

	"github.com/regie-run/regie"
	"github.com/regie-run/regie/internal/control"
	"github.com/regie-run/regie/internal/dispatch"
)

// providerForm is a provider with the form that changes it, or the form for a new one.
type providerForm struct {
	dispatch.ProviderView
	Page           *settingsPage
	ID             string // of its fields in the page
	Problem, Field string // of a refused form
	Types          []string
	Keyring        bool
}

// loadProviders builds the forms. A refused one keeps what was typed, except the key.
func (p *settingsPage) loadProviders(v *visit) error {
	all, err := v.site.Service.Catalog.Providers(v.r.Context())
	for i := range all {
		p.Providers = append(p.Providers, &providerForm{ProviderView: all[i], Page: p, ID: "-" + all[i].Name})
	}
	p.NewProvider = &providerForm{Page: p, Types: control.ProviderTypes()}
	for _, form := range append([]*providerForm{p.NewProvider}, p.Providers...) {
		if p.Problem == "" || form.ID != p.About {
			continue
		}
		form.Problem, form.Field = p.Problem, p.Field
		if p.Typed["do"] != "delete" {
			form.BaseURL, form.Model, form.Chosen = p.Typed["base_url"], p.Typed["model"], p.Typed["chosen"] != ""
			form.Keyring = p.Typed["keyring"] != ""
		}
		if form.ID == "" {
			form.Name, form.Type = p.Typed["name"], p.Typed["type"]
		}
	}
	return err
}

// changeProvider adds, changes or deletes a stored provider. It returns why the provider was stored
// without a test, where it was.
func changeProvider(v *visit) (untested string, err error) {
	ctx, catalog, name := v.r.Context(), v.site.Service.Catalog, v.field("name")
	in := dispatch.ProviderFields{
		BaseURL: v.field("base_url"), Key: v.field("key"), Model: v.field("model"),
		Keyring: v.field("keyring") != "", Chosen: v.field("chosen") != "",
	}
	var now dispatch.ProviderView
	switch v.field("do") {
	case "add":
		now, err = catalog.AddProvider(ctx, dispatch.NewProvider{Name: name, Type: v.field("type"), ProviderFields: in})
	case "delete":
		err = catalog.RemoveProvider(ctx, name)
	default:
		now, err = catalog.ChangeProvider(ctx, dispatch.ProviderEdit{Name: name, ProviderFields: in})
	}
	return now.Untested, err
}

// providerField returns the field of the form that an error is about, empty for the whole form.
func providerField(err error) string {
	switch regie.CodeOf(err) {
	case regie.CodeProviderAuth, regie.CodeProviderQuota:
		return "key"
	case regie.CodeNoModel:
		return "model"
	case regie.CodeConflict:
		return "name"
	case regie.CodeBadRequest:
		if strings.Contains(err.Error(), "is not a name for") {
			return "name"
		}
		return "base_url"
	case regie.CodeProviderOffline, regie.CodeProviderRejected, regie.CodeProviderBusy, regie.CodeProviderBroken:
		return "base_url"
	}
	return ""
}

// checkGroup are the findings of the doctor about one subject.
type checkGroup struct {
	Title string
	Rows  []checkRow
}

type checkRow struct {
	Status string
	Text   string
	Fixes  []checkFix
}

type checkFix struct{ Command, Text string }

// loadChecks examines the server's machine.
func (p *settingsPage) loadChecks(v *visit) error {
	report, err := v.site.Service.Catalog.Check(v.r.Context())
	t, last := v.text, ""
	titles := map[string]string{
		"configuration": t.T("Configuration"), "model": t.T("Model"), "data": t.T("Data directory"),
		"disk": t.T("Disk"), "database": t.T("Database"), "engine": t.T("Engine"),
		"workspace": t.T("Workspace"), "sandbox": t.T("Confining commands"),
	}
	for i := range report {
		f := &report[i]
		if f.Group != last {
			p.Checks, last = append(p.Checks, checkGroup{Title: titles[f.Group]}), f.Group
		}
		row := checkRow{Status: f.Status, Text: t.Sentence(f.Text)}
		if f.Cause != nil {
			row.Text = t.Error(f.Cause)
		}
		for _, fix := range f.Fixes {
			row.Fixes = append(row.Fixes, checkFix{fix.Command, t.Sentence(fix.Text)})
		}
		switch f.Status {
		case "failed":
			p.Failed++
		case "warning":
			p.Warnings++
		}
		group := &p.Checks[len(p.Checks)-1]
		group.Rows = append(group.Rows, row)
	}
	return err
}
