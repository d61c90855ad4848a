package app_test

import (
	"net/http"
	"strings"
	"testing"

	"github.com/regie-run/regie"
	"github.com/regie-run/regie/internal/config"
)

// inFrench has the agent of a bed spoken to in French.
func inFrench(b *bed) *bed {
	b.settings.File.Agents = map[string]config.Agent{"main": {Language: "fr"}}
	return b
}

// TestFrenchJSON: a model that is spoken to in French is told so in French how to reply and what is
// wrong with a reply, and its requests can be shown again.
func TestFrenchJSON(t *testing.T) {
	t.Parallel()
	m := newModel(t, says(`{"texte":"C'est fait."}`), says(`{"pre_text":"C'est fait."}`))
	b := inFrench(newBed(t, m))
	conn := b.connect()
	defer conn.Close()
	run, err := conn.Submit(t.Context(), b.inJSON(everything))
	if err != nil {
		t.Fatal(err)
	}
	b.await(conn, run)
	if level1 := sentMessages(t, m.requests[0])[0].Content; !strings.Contains(level1, "Toute ta réponse est exactement un objet JSON") || strings.Contains(level1, "Your whole reply") {
		t.Errorf("told %s", level1)
	}
	all := sentMessages(t, m.requests[1])
	if said := all[len(all)-1].Content; !strings.HasPrefix(said, "[FORMAT_ERROR] Ta dernière réponse n'a pas été prise") || !strings.Contains(said, "trouvé : un champ qui n'existe pas") {
		t.Errorf("corrected with %s", said)
	}
	b.shown(conn, run, 2)
}

// TestFrenchNudge: so it is where an automation stops without a word that its work is done.
func TestFrenchNudge(t *testing.T) {
	t.Parallel()
	inBoth(t, func(t *testing.T, d regie.Dialect, act, done, silent func(int) http.HandlerFunc) {
		t.Helper()
		m := newModel(t, act(1), silent(0), done(0))
		b := inFrench(newBed(t, m))
		b.ask(b.unattended(d))
		if !strings.Contains(m.last(), "[COMPLETE_REFUSED] Personne ne lit cette exécution") {
			t.Errorf("read %s", m.last())
		}
	})
}

// TestFrenchSummaries: a summary is asked for in French and stands there in French; where it says
// nothing, so does what is left out instead.
func TestFrenchSummaries(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct{ summary, next string }{
		"a summary": {"Résumé : les premières notes ont été lues, note1.md parle du jardin." + gist, "ce qu'ils disaient :\n\nRésumé : les premières notes"},
		"empty words": {
			strings.Repeat("La conversation a abordé plusieurs sujets, et le travail avance bien dans tous les domaines. ", 2) + "Il reste à continuer dans le même esprit, sans rien oublier de ce " +
				"qui compte, avec le soin habituel et dans le calme, comme la personne le souhaite depuis le début de cet échange qui se passe très bien pour tout le monde.",
			"octets est omis pour faire de la place ; relis-le avec session__read_result",
		},
	} {
		t.Run(name, func(t *testing.T) {
			m := newReader(t, reads(14), func(int) http.HandlerFunc { return says(c.summary) })
			b := inFrench(library(t, m, config.Budget{ContextTokens: 6600}))
			notes(t, b.root, 14, 4000)
			conn := b.observed()
			defer conn.Close()
			view := b.job(conn, regie.ID{}, theJob)
			if view.Round.End != regie.EndAnswered {
				t.Fatalf("%s: %s", view.Round.End, view.Round.EndNote)
			}
			asked, stands := false, false
			for _, a := range m.all {
				if last := a.messages[len(a.messages)-1].Content; a.summary {
					asked = true
					if !strings.HasPrefix(last, "[CONTEXT_SUMMARY] Cette conversation va se poursuivre") || !strings.Contains(last, "sans appeler d'outil") {
						t.Errorf("asked with %s", last)
					}
				}
				for _, message := range a.messages {
					stands = stands || strings.Contains(message.Content, c.next)
				}
				if strings.Contains(string(a.body), "to make room") {
					t.Errorf("told in English: %s", a.body)
				}
			}
			if !asked || !stands {
				t.Errorf("asked: %v, stands there: %v; the last begins with %s", asked, stands, m.all[len(m.all)-1].messages[1].Content)
			}
			rebuilt(t, conn, m, view)
		})
	}
}
