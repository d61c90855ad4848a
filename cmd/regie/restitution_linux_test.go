package main

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// unlike are the parts of a transcript that differ between runs.
var unlike = regexp.MustCompile(`\d+,\d+ ms|[0-9a-f]{8}(?:-[0-9a-f-]{27})?|\d\d:\d\d`)

// TestRestitutionTranscript holds the dialogues of seed 002 as a French reader sees them: a success
// that the model apologises for, one that it gives no readable answer about, an error that it
// corrects, and a refusal that it explains (decisions 63 and 65).
func TestRestitutionTranscript(t *testing.T) {
	t.Parallel()
	const raw = `{"name": "files__read_file", "success": true, "duration_ms": 2}`
	note := func(id, arguments string) called { return called{id, "write_file", arguments} }
	s := newStage(t,
		calls("Je crée la note.", note("a", `{"path": "projets/budget.md", "content": "# Budget\n"}`)),
		reply("Je suis désolé pour la création de la note."),
		reply("J'ai créé la note *Budget* comme vous l'avez demandé. Voulez-vous que j'ajoute des catégories ?"),

		calls("Je lis le journal.", called{"b", "read_file", `{"path": "journal.md"}`}),
		reply(raw), reply(raw), reply(raw), //nolint:gocritic // it says the same again

		calls("Je crée la note.", note("c", `{"content": "Vide.\n"}`)),
		calls("Il manquait le chemin.", note("d", `{"path": "projets/voyage.md", "content": "Vide.\n"}`)),
		reply("J'ai créé la note *Voyage* : le chemin manquait au premier essai. Voulez-vous y noter des étapes ?"),

		calls("Je supprime.", called{"e", "delete_file", `{"path": "journal.md"}`}),
		reply("Je voulais supprimer le journal parce que vous parliez de faire le ménage. Voulez-vous que je l'archive plutôt ?"),
	)
	s.env = append(s.env, "REGIE_LANG=fr")
	if err := os.WriteFile(s.work("journal.md"), []byte("lundi\nmardi\nmercredi\njeudi\nvendredi\nsamedi\ndimanche\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	c := s.regie("chat", "--plain", "--allow", "files.write_file")
	c.expect("> ")
	c.enter("Crée une note Budget dans projets")
	c.expect("catégories ?")
	c.expect("> ")
	c.enter("Que dit mon journal ?")
	c.expect("La suite : /show ")
	c.expect("> ")
	c.enter("/show " + regexp.MustCompile(`/show ([0-9a-f]{8})`).FindStringSubmatch(c.all())[1])
	c.expect("dimanche")
	c.expect("> ")
	c.enter("Crée une note Voyage vide")
	c.expect("étapes ?")
	if told := s.read(); !strings.Contains(told, "[Indication, pas de la personne]") || !strings.Contains(told, `\"success\":false`) || !strings.Contains(told, `\"param\":\"path\"`) {
		t.Errorf("the model was told %s", told)
	}
	c.expect("> ")
	c.enter("Fais le ménage")
	c.expect("[l] plus tard")
	c.enter("n")
	c.expect("plutôt ?")
	if told := s.read(); !strings.Contains(told, "pourquoi tu le demandais") {
		t.Errorf("the model was told %s", told)
	}
	c.expect("> ")
	c.enter("/exit")
	c.ends(0)
	got := unlike.ReplaceAllString(strings.NewReplacer("\r", "", s.dir, "DIR").Replace(c.all()), "…")
	golden := filepath.Join("testdata", "restitution_fr.txt")
	if *update {
		if err := os.WriteFile(golden, []byte(got), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	want, _ := os.ReadFile(golden)
	if diff := cmp.Diff(string(want), got); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}
