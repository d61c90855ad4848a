package demo

import (
	"path"
	"strings"
	"unicode"
)

// set is a set of lower-case words.
type set map[string]bool

func words(list string) set {
	out := set{}
	for word := range strings.FieldsSeq(list) {
		out[word] = true
	}
	return out
}

// The words that the rules know, of both languages.
var (
	listing     = words("list ls dir liste lister listez listes énumère énumérer")
	reading     = words("read show open cat print display view lis lire lisez montre montrer montrez ouvre ouvrir ouvrez affiche afficher affichez")
	writing     = words("write save put create écris écrire écrivez ecris ecrire mets mettre mettez crée créer créez enregistre enregistrer note noter")
	appending   = words("append add ajoute ajouter ajoutez rajoute")
	overwriting = words("overwrite replace écrase écraser écrasez remplace remplacer remplacez")
	asking      = words("what what's which qu que quels quelles quel quelle")
	files       = words("file files fichier fichiers")
	recursive   = words("recursively recursive everything récursivement récursif tree arborescence subdirectories subfolders sous-dossiers")

	// What may stand before the name of a place, and between the two.
	source  = words("in from of inside under dans de du depuis sous d")
	target  = words("to into onto vers à")
	fillers = words("the my our this a file files folder directory called named le la les l mon ma mes un une fichier dossier répertoire nommé appelé")
	// What is never the name of a place.
	nowhere = words(`here it them each every all this that me you us workspace project there note text line lines summary one
		ici lui eux elle elles chaque chacun chacune tout tous toute toutes ce cet cette ces moi toi projet texte ligne lignes résumé une un`)

	// What tells the languages apart.
	english = words(`the a an in into of to each every all file files read write list show append add what which can you and me my is it please
		hello hi help summary summarise summarize note notes line with this that do`)
	french = words(`le la les un une de des du dans à chaque tous toutes fichier fichiers lis lire écris écrire ecris liste montre affiche ajoute
		que quels quelles peux tu vous et moi mon ma mes est bonjour salut aide résumé résume résumer s'il merci avec ce cette fais il y a qu d l au aux`)
)

// token is a word of a request, or a quoted piece of it.
type token struct {
	text   string
	word   string // the text in lower case; "" for a quoted piece
	quoted bool
}

// closers are the ends of quotations by their beginnings.
var closers = map[rune]rune{'"': '"', '“': '”', '«': '»', '`': '`', '\'': '\'', '‘': '’', '„': '“'}

// tokens cuts a request into words and quotations. An apostrophe inside a word (it's, d'une) quotes nothing.
func tokens(request string) []token {
	var out []token
	runes := []rune(request)
	for i := 0; i < len(runes); {
		if end := quotation(runes, i); end > 0 {
			out = append(out, token{text: strings.TrimSpace(string(runes[i+1 : end])), quoted: true})
			i = end + 1
			continue
		}
		if unicode.IsSpace(runes[i]) {
			i++
			continue
		}
		from := i
		for i < len(runes) && !unicode.IsSpace(runes[i]) && (i == from || quotation(runes, i) == 0) {
			i++
		}
		out = append(out, plainTokens(string(runes[from:i]))...)
	}
	return out
}

// quotation returns the place of the mark that ends the quotation which begins at i, or 0 if none begins there.
func quotation(runes []rune, i int) int {
	closer, opens := closers[runes[i]]
	if !opens || i > 0 && letter(runes[i-1]) {
		return 0
	}
	for j := i + 1; j < len(runes); j++ {
		if runes[j] == closer && j > i+1 && (j+1 == len(runes) || !letter(runes[j+1])) {
			return j
		}
	}
	return 0
}

func letter(r rune) bool { return unicode.IsLetter(r) || unicode.IsDigit(r) }

// plainTokens makes tokens of what stands between two spaces: without the punctuation around it, and with the elided words of French
// (l'index, d'une) on their own.
func plainTokens(text string) []token {
	text = strings.TrimLeft(text, "([{\"'“«‘")
	if text != "." && text != ".." {
		text = strings.TrimRight(text, ".,;:!?…)]}\"'”»’")
	}
	if text == "" {
		return nil
	}
	for _, elided := range []string{"l", "d", "qu", "s", "j", "n"} {
		for _, mark := range []string{"'", "’"} {
			if head := elided + mark; len(text) > len(head) && strings.EqualFold(text[:len(head)], head) {
				return append([]token{{text: elided, word: elided}}, plainTokens(text[len(head):])...)
			}
		}
	}
	return []token{{text: text, word: strings.ToLower(text)}}
}

// isPath reports whether a word looks like a path rather than like a word: notes/, notes/a.md, hello.txt.
func isPath(text string) bool {
	if strings.Contains(text, "://") || strings.Contains(text, "*") {
		return false
	}
	if strings.Contains(text, "/") {
		return text != "/" && strings.ContainsFunc(text, letter)
	}
	ext := path.Ext(text)
	return len(ext) > 1 && len(ext) <= 9 && len(text) > len(ext) && unicode.IsLetter(rune(ext[1])) && !abbreviations[strings.ToLower(text)]
}

// isFrench compares how many words of each language stand in a request.
func isFrench(list []token) bool {
	balance := 0
	for _, t := range list {
		switch {
		case french[t.word] && !english[t.word]:
			balance++
		case english[t.word] && !french[t.word]:
			balance--
		case !t.quoted && strings.ContainsAny(t.word, "éèêàçùîô"):
			balance++
		}
	}
	return balance > 0
}
