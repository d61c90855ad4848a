package demo

import "regexp"

// The tools speak English, because models read them; a person who is spoken to in French reads
// French.
var inFrench = []struct {
	english *regexp.Regexp
	french  string
}{
	{regexp.MustCompile(`^created (.+?), (\d+) line(s?), (\d+) bytes`), "${1} créé, ${2} ligne${3}, ${4} octets"},
	{regexp.MustCompile(`^replaced (.+?), (\d+) line(s?), (\d+) bytes`), "${1} remplacé, ${2} ligne${3}, ${4} octets"},
	{
		regexp.MustCompile(`^appended (\d+) line(s?) to (.+?), now (\d+) line(s?), (\d+) bytes`),
		"${1} ligne${2} ajoutée${2} à ${3}, maintenant ${4} ligne${5}, ${6} octets",
	},
	{
		regexp.MustCompile(`^edited (.+?) at line(s?) ([\d, ]*\d)(?: and \d+ more)?, now (\d+) line(s?), (\d+) bytes`),
		"${1} modifié (ligne${2} ${3}), maintenant ${4} ligne${5}, ${6} octets",
	},
	{
		regexp.MustCompile(`^deleted (.+?), (\d+) bytes; its content is kept, and a person can undo this`),
		"${1} supprimé, ${2} octets ; son contenu est gardé, et une personne peut annuler cela",
	},
	{
		regexp.MustCompile(`^deleted (.+?), (\d+) bytes; it lies in the trash, from where a person can take it back`),
		"${1} supprimé, ${2} octets ; il est dans la corbeille, d'où une personne peut le reprendre",
	},
	{regexp.MustCompile(`; made the directory (.+?)(;|$)`), " ; dossier ${1} créé${2}"},
	{
		regexp.MustCompile(`; line ends written as (CRLF|LF) like the rest of the file`),
		" ; fins de ligne en ${1} comme le reste du fichier",
	},
	{
		regexp.MustCompile(`; the last line had no end and got one first`),
		" ; la dernière ligne n'avait pas de fin et en a reçu une",
	},
	{regexp.MustCompile(`; that is what it held before`), " ; c'est ce qu'il contenait déjà"},
}

// words are a tool's words on what it did to a file, in the language of the conversation.
func (t *thread) words(said string) string {
	if !t.french {
		return said
	}
	for _, one := range inFrench {
		said = one.english.ReplaceAllString(said, one.french)
	}
	return said
}
