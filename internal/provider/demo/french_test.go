package demo

import "testing"

// TestWords: what the tools say of what they did is French in a French conversation.
func TestWords(t *testing.T) {
	for said, want := range map[string]string{
		"created todo.txt, 1 line, 16 bytes":                                  "todo.txt créé, 1 ligne, 16 octets",
		"created a/b c.txt, 2 lines, 7 bytes; made the directory a":           "a/b c.txt créé, 2 lignes, 7 octets ; dossier a créé",
		"appended 2 lines to todo.txt, now 3 lines, 27 bytes":                 "2 lignes ajoutées à todo.txt, maintenant 3 lignes, 27 octets",
		"edited todo.txt at lines 1, 3, now 3 lines, 40 bytes":                "todo.txt modifié (lignes 1, 3), maintenant 3 lignes, 40 octets",
		"deleted x, 4 bytes; its content is kept, and a person can undo this": "x supprimé, 4 octets ; son contenu est gardé, et une personne peut annuler cela",
		"replaced x, 1 line, 4 bytes; that is what it held before":            "x remplacé, 1 ligne, 4 octets ; c'est ce qu'il contenait déjà",
		"edited my line.txt at line 1, now 1 line, 4 bytes":                   "my line.txt modifié (ligne 1), maintenant 1 ligne, 4 octets",
		"something of another version":                                        "something of another version",
	} {
		if got := (&thread{french: true}).words(said); got != want {
			t.Errorf("%q: %q", said, got)
		}
		if got := (&thread{}).words(said); got != said {
			t.Errorf("%q: %q", said, got)
		}
	}
}
